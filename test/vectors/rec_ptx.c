// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel around one instruction: operands from slots, shared memory filled before and written back after.
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

typedef struct text {
  char *data;
  size_t len, room;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  size_t need = (size_t)vsnprintf(NULL, 0, format, args) + 1;
  va_end(args);
  if (t->len + need > t->room) {
    t->room = (t->len + need) * 2;
    t->data = realloc(t->data, t->room);
    if (!t->data) abort();
  }
  vsnprintf(t->data + t->len, need, format, again);
  va_end(again);
  t->len += need - 1;
}

int rec_results(const char *signature) {
  return (int)(strchr(signature, '(') - signature);
}

int rec_arguments(const char *signature) {
  return (int)strlen(signature) - rec_results(signature) - 2;
}

char rec_letter(const char *signature, int operand) {
  return signature[operand < rec_results(signature) ? operand : operand + 1];
}

int rec_letter_bytes(char letter) {
  switch (letter) {
    case 'b':
      return 1;
    case 's':
    case 'e':
    case 'y':
      return 2;
    case 'l':
    case 'd':
    case 'g':
      return 8;
    default:
      return 4;
  }
}

static const char *register_type(char letter) {
  switch (letter) {
    case 'b':
      return "pred";
    case 'f':
      return "f32";
    case 'd':
      return "f64";
    default:
      return rec_letter_bytes(letter) == 2 ? "b16" : rec_letter_bytes(letter) == 8 ? "b64" : "b32";
  }
}

static void load_operand(text *t, char letter, int operand, int slot) {
  switch (letter) {
    case 'b':
      put(t, " ld.global.u8 %%t0, [%%in+%d];\n setp.ne.u32 %%v%d, %%t0, 0;\n", slot * 8, operand);
      return;
    case 'p':
      put(t, " ld.global.u32 %%t0, [%%in+%d];\n mov.u32 %%t1, buffer;\n add.u32 %%v%d, %%t0, %%t1;\n", slot * 8,
          operand);
      return;
    case 'g':
      put(t, " ld.global.u64 %%w0, [%%in+%d];\n add.u64 %%v%d, %%w0, %%global;\n", slot * 8, operand);
      return;
    default:
      put(t, " ld.global.%s %%v%d, [%%in+%d];\n", register_type(letter), operand, slot * 8);
  }
}

static void store_result(text *t, char letter, int operand) {
  if (letter == 'b')
    put(t, " selp.u32 %%t0, 1, 0, %%v%d;\n st.global.u8 [%%out+%d], %%t0;\n", operand, operand * 8);
  else
    put(t, " st.global.%s [%%out+%d], %%v%d;\n", register_type(letter), operand * 8, operand);
}

// All threads of a block move its shared memory, word by word.
static void move_shared(text *t, const rec_vector *v, bool fill) {
  if (!v->shared_bytes) return;
  const char *name = fill ? "fill" : "dump";
  put(t, " mov.u32 %%t0, %%tid.x;\n shl.b32 %%t0, %%t0, 2;\n%s_loop:\n", name);
  put(t, " setp.ge.u32 %%p0, %%t0, %u;\n @%%p0 bra %s_done;\n", v->shared_bytes, name);
  put(t, " cvt.u64.u32 %%w0, %%t0;\n add.u64 %%w0, %%w0, %%io;\n mov.u32 %%t1, buffer;\n add.u32 %%t1, %%t1, %%t0;\n");
  if (fill)
    put(t, " ld.global.b32 %%t2, [%%w0];\n st.shared.b32 [%%t1], %%t2;\n");
  else
    put(t, " ld.shared.b32 %%t2, [%%t1];\n st.global.b32 [%%w0], %%t2;\n");
  put(t, " add.u32 %%t0, %%t0, %u;\n bra %s_loop;\n%s_done:\n", v->threads * 4, name, name);
}

// Generic accesses before it are visible to every thread and to the asynchronous proxy after it.
static void synchronise(text *t, const rec_vector *v) {
  put(t, " fence.proxy.async;\n");
  if (v->blocks > 1)
    put(t, " barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;\n");
  else
    put(t, " bar.sync 0;\n");
}

static void put_body(text *t, const char *body) {
  put(t, " ");
  for (; *body; body++) {
    if (*body == '$' && isdigit((unsigned char)body[1])) {
      put(t, "%%v");
    } else {
      put(t, "%c", *body);
      if (*body == ';' && body[1]) put(t, "\n");
    }
  }
  put(t, "\n");
}

static void put_header(text *t, const rec_vector *v) {
  put(t,
      ".version 8.7\n.target sm_90a\n.address_size 64\n%s"
      ".visible .entry k(.param .u64 p_in, .param .u64 p_out, .param .u64 p_io, .param .u64 p_global,"
      " .param .align 64 .b8 p_map[128])\n.reqntid %u\n",
      strstr(v->body, "map_copy") ? ".global .align 128 .b8 map_copy[128];\n" : "", v->threads);
  if (v->blocks > 1) put(t, ".explicitcluster\n.reqnctapercluster %u\n", v->blocks);
  put(t, "{\n .shared .align 8 .b64 bar;\n .shared .align 8 .b64 bar2;\n");
  if (strstr(v->body, "shared_map")) put(t, " .shared .align 128 .b8 shared_map[128];\n");
  if (v->shared_bytes) put(t, " .shared .align 1024 .b8 buffer[%u];\n", v->shared_bytes);
  put(t, " .reg .b64 %%in, %%out, %%io, %%global, %%map, %%w<8>;\n .reg .b32 %%t<8>;\n .reg .pred %%p<8>, %%first;\n");
}

static void put_addresses(text *t, const rec_vector *v) {
  static const char *const names[] = {"in", "out", "io", "global"};
  for (int i = 0; i < 4; i++)
    put(t, " ld.param.u64 %%%s, [p_%s];\n cvta.to.global.u64 %%%s, %%%s;\n", names[i], names[i], names[i], names[i]);
  put(t,
      " mov.b64 %%map, p_map;\n cvta.param.u64 %%map, %%map;\n mov.u32 %%t0, %%tid.x;\n setp.eq.u32 %%first, %%t0, "
      "0;\n");
  put(t, " mov.u32 %%t1, %%ctaid.x;\n mad.lo.u32 %%t0, %%t1, %u, %%t0;\n", v->threads);
  put(t, " mad.wide.u32 %%in, %%t0, %d, %%in;\n", rec_arguments(v->signature) * 8);
  put(t, " mad.wide.u32 %%out, %%t0, %d, %%out;\n", rec_results(v->signature) * 8);
  put(t, " mad.wide.u32 %%io, %%t1, %u, %%io;\n", v->shared_bytes);
}

char *rec_ptx(const rec_vector *v) {
  text t = {0};
  int results = rec_results(v->signature), operands = results + rec_arguments(v->signature);
  put_header(&t, v);
  for (int i = 0; i < operands; i++) put(&t, " .reg .%s %%v%d;\n", register_type(rec_letter(v->signature, i)), i);
  put_addresses(&t, v);
  for (int i = results; i < operands; i++) load_operand(&t, rec_letter(v->signature, i), i, i - results);
  move_shared(&t, v, true);
  synchronise(&t, v);
  put_body(&t, v->body);
  synchronise(&t, v);
  for (int i = 0; i < results; i++) store_result(&t, rec_letter(v->signature, i), i);
  move_shared(&t, v, false);
  put(&t, " ret;\n}\n");
  return t.data;
}
