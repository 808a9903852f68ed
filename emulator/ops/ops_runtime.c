// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of the device's runtime: formatted output and assertions.
#include <stdio.h>
#include <string.h>

#include "emulator/machine/args.h"
#include "emulator/ops/ops.h"

typedef struct printf_args {
  const char *format;
  const char *values;  // each at its natural alignment
} printf_args;

// Takes the next value of `bytes` out of the memory behind a format.
static uint64_t take(const char *values, size_t *at, size_t bytes) {
  uint64_t value = 0;
  *at = (*at + bytes - 1) / bytes * bytes;
  memcpy(&value, values + *at, bytes);
  *at += bytes;
  return value;
}

// Appends one conversion ("%-8.3f", "%lld") with its value. Returns what follows it; NULL when it is not known.
static const char *append_conversion(tl_strbuf *out, const char *spec, const char *values, size_t *at) {
  char one[32], text[400];
  size_t len = 1 + strspn(spec + 1, "-+ #0123456789.");
  size_t length = strspn(spec + len, "hlLqjzt");
  bool wide = memchr(spec + len, 'l', length) || memchr(spec + len, 'z', length) || memchr(spec + len, 'j', length);
  char kind = spec[len + length];
  const char *rest = spec + len + length + 1;
  if (kind == '%') {
    tl_strbuf_append_char(out, '%');
    return rest;
  }
  if (len + 4 > sizeof one || !kind || !strchr("diuxXocspeEfFgGaA", kind)) return NULL;
  memcpy(one, spec, len);
  bool is_float = strchr("eEfFgGaA", kind) != NULL, is_pointer = kind == 's' || kind == 'p';
  bool is_signed = kind == 'd' || kind == 'i';
  uint64_t bits = take(values, at, wide || is_float || is_pointer ? 8 : 4);
  snprintf(one + len, sizeof one - len, "%s%c", is_float || is_pointer || kind == 'c' ? "" : "ll", kind);
  double real;
  memcpy(&real, &bits, sizeof real);
  if (is_float)
    snprintf(text, sizeof text, one, real);
  else if (is_pointer)
    snprintf(text, sizeof text, one, (const void *)(uintptr_t)bits);
  else if (kind == 'c')
    snprintf(text, sizeof text, one, (int)bits);
  else
    snprintf(text, sizeof text, one, is_signed && !wide ? (long long)(int32_t)bits : (long long)bits);
  tl_strbuf_append_c(out, text);
  return rest;
}

void tl_emu_op_vprintf(void *result, const void *args, const tl_emu_site *site) {
  const printf_args *call = args;
  tl_strbuf line = {0};
  size_t at = 0;
  tl_emu_access_begin(site, tl_emu_self->current->thread);
  for (const char *c = call->format; *c;) {
    size_t plain = strcspn(c, "%");
    tl_strbuf_append(&line, (tl_str){c, plain});
    c += plain;
    if (!*c) break;
    const char *rest = append_conversion(&line, c, call->values, &at);
    if (!rest) {
      tl_strbuf_fini(&line);  // the failure does not return
      tl_emu_fail("vprintf: the conversion at '%.20s' is not known", c);
    }
    c = rest;
  }
  tl_emu_access_end();
  fwrite(tl_strbuf_c(&line), 1, line.len, stdout);  // a line at once: other workers print too
  *(int32_t *)result = (int32_t)line.len;
  tl_strbuf_fini(&line);
}

typedef struct assert_args {
  const char *text, *file;
  uint32_t line;
  const char *function;
  uint64_t char_bytes;
} assert_args;

void tl_emu_op_assertfail(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)site;
  const assert_args *call = args;
  tl_emu_fail("%s:%u: assertion `%s` failed", call->file, call->line, call->text);
}

void tl_emu_op_assume(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  (void)site;
  tl_emu_args args = {operands, 0};
  const char *text = tl_emu_args_pointer(&args), *file = tl_emu_args_pointer(&args);
  uint32_t line = tl_emu_args_i32(&args);
  if (!tl_emu_args_bool(&args)) tl_emu_fail("%s:%u: the assumption `%s` is false", file, line, text);
}
