// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// rows LIST FILE…: every row of llvm_backend/device/device_ops.def and of the emulator's bindings is executed by a
// recorded vector, or LIST says why not: a name, where a star at the end stands for any rest, and the reason. Exit
// status 1 when an operation is neither, or one of the list is recorded, or a line of it stands for nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "llvm_backend/device/device_ops.h"
#include "vector.h"

typedef struct excuse {
  char name[128];
  unsigned used;
} excuse;

static excuse *excuses;
static unsigned num_excuses, num_rows, num_wrong;
static tl_strbuf executed;  // "\nname\n…"

static void read_list(const char *path) {
  FILE *stream = fopen(path, "r");
  char line[256];
  if (!stream) {
    perror(path);
    exit(2);
  }
  while (fgets(line, sizeof line, stream)) {
    size_t length = strcspn(line, " \n");
    if (!length || line[0] == '#') continue;
    if (strlen(line) < length + 8) {
      fprintf(stderr, "%s: no reason for %s\n", path, line);
      exit(2);
    }
    excuses = realloc(excuses, (num_excuses + 1) * sizeof *excuses);
    if (!excuses) abort();
    excuses[num_excuses] = (excuse){.used = 0};
    snprintf(excuses[num_excuses++].name, sizeof excuses->name, "%.*s", (int)length, line);
  }
  fclose(stream);
}

static bool is_executed(const char *name) {
  char line[192];
  snprintf(line, sizeof line, "\n%s\n", name);
  return strstr(tl_strbuf_c(&executed), line) != NULL;
}

// The names that the kernel of a vector declares are those that it calls.
static void add_kernel(const tv_vector *v) {
  tl_strbuf text = {0};
  if (!tv_write_kernel(v, &text)) {
    printf("%s: no operation for it\n", v->name);
    num_wrong++;
  }
  for (const char *at = tl_strbuf_c(&text); (at = strstr(at, "declare ")); at++) {
    const char *name = strchr(at, '@') + 1;
    char copy[160];
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(name, "("), name);
    if (!is_executed(copy)) tl_strbuf_appendf(&executed, "%s\n", copy);
  }
  tl_strbuf_fini(&text);
}

static bool is_excused(const char *name) {
  for (unsigned i = 0; i < num_excuses; i++) {
    size_t length = strlen(excuses[i].name);
    bool star = excuses[i].name[length - 1] == '*';
    if (star ? strncmp(excuses[i].name, name, length - 1) : strcmp(excuses[i].name, name)) continue;
    excuses[i].used++;
    return true;
  }
  return false;
}

static void check(const char *name) {
  bool has_vector = is_executed(name), excused = is_excused(name);
  num_rows++;
  if (has_vector != excused) return;
  printf("%s: %s\n", name,
         excused ? "is recorded, and listed as not" : "no vector executes it, and no reason is listed");
  num_wrong++;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: rows LIST FILE...\n");
    return 2;
  }
  read_list(argv[1]);
  tl_strbuf_append_c(&executed, "\n");
  for (int i = 2; i < argc; i++) {
    tv_file file = tv_open(argv[i]);
    tv_vector v;
    while (tv_next(&file, &v)) add_kernel(&v);
    tv_close(&file);
  }
  for (int i = 0; i < TL_DEVOP_COUNT; i++) check(tl_device_op_of((tl_device_op_id)i)->name);
  size_t count;
  const tl_emu_binding *bindings = tl_emu_bindings(&count);
  for (size_t i = 0; i < count; i++) {  // those with a star are parsed names, or rows that were looked at
    bool is_row = tl_device_op_find((tl_str){bindings[i].name, strlen(bindings[i].name)}) != TL_DEVOP_COUNT;
    if (!is_row && !strchr(bindings[i].name, '*')) check(bindings[i].name);
  }
  for (unsigned i = 0; i < num_excuses; i++) {
    if (excuses[i].used) continue;
    printf("%s: the list names it, but there is no such operation\n", excuses[i].name);
    num_wrong++;
  }
  printf("%u operations, %u wrong\n", num_rows, num_wrong);
  free(excuses);
  tl_strbuf_fini(&executed);
  return num_wrong != 0;
}
