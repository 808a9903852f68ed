// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// replay LIST [--via=ptx] FILE…: executes recorded vectors in the emulator and compares; with --via=ptx the text that
// the GPU ran, else what the operation is in LLVM IR. LIST names the operations that the
// emulator does not have, one a line; a star at the end stands for any rest. Exit status 1 when anything differs, when
// an operation is missing that is not in the list, or one of the list is there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vector.h"

static unsigned compared, differ, missing;
static char (*absent)[128];
static unsigned num_absent;

static void read_list(const char *path) {
  FILE *stream = fopen(path, "r");
  char line[128];
  if (!stream) {
    perror(path);
    exit(2);
  }
  while (fgets(line, sizeof line, stream)) {
    line[strcspn(line, "\n")] = 0;
    if (!line[0] || line[0] == '#') continue;
    absent = realloc(absent, (num_absent + 1) * sizeof *absent);
    if (!absent) abort();
    strcpy(absent[num_absent++], line);
  }
  fclose(stream);
}

static bool is_absent(const char *name) {
  for (unsigned i = 0; i < num_absent; i++) {
    size_t length = strlen(absent[i]);
    bool star = length && absent[i][length - 1] == '*';
    if (star ? !strncmp(absent[i], name, length - 1) : !strcmp(absent[i], name)) return true;
  }
  return false;
}

static void *buffer(size_t bytes) {
  void *made = malloc(bytes + 1);
  if (!made) abort();
  return made;
}

static void replay(const tv_vector *v) {
  tv_result result = {buffer(v->out_bytes), buffer(v->shared_bytes), buffer(v->global_bytes)};
  tl_status status = tv_execute(v, v->in, &result);
  bool listed = is_absent(v->name), unsupported = status && tl_status_code_of(status) == TL_STATUS_UNSUPPORTED;
  if (listed != unsupported) {
    differ++;
    printf("%s: %s\n", v->name, listed ? "is emulated, and listed as not" : tl_status_message(status));
  } else if (unsupported) {
    missing++;
  } else if (!status) {
    compared++;
    differ += !tv_compare(v, &result);
  } else {
    differ++;
    printf("%s (%s): %s\n", v->name, v->setting, tl_status_message(status));
  }
  tl_status_free(status);
  free(result.out);
  free(result.shared);
  free(result.global);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: replay LIST [--via=ptx] FILE...\n");
    return 2;
  }
  read_list(argv[1]);
  tv_via_ptx = argc > 3 && !strcmp(argv[2], "--via=ptx");
  for (int i = 2 + tv_via_ptx; i < argc; i++) {
    tv_file file = tv_open(argv[i]);
    tv_vector v;
    while (tv_next(&file, &v)) replay(&v);
    tv_close(&file);
  }
  tv_execute_end();
  free(absent);
  tv_print_errors();
  printf("%u vectors compared, %u differ, %u are not emulated\n", compared, differ, missing);
  return differ != 0;
}
