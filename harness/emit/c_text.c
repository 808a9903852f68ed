// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names, types and expressions of generated C.
#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "harness/emit/c_internal.h"

bool c_is_argument(const tl_manifest_param *param) {
  return param->kind == TL_MPARAM_TENSOR || param->kind == TL_MPARAM_SCALAR;
}
bool c_is_name(const tl_manifest_param *param) {
  return param->kind == TL_MPARAM_DYNAMIC || param->kind == TL_MPARAM_STRIDE;
}

// Words of C and C++, parameters that generated functions have beside those of the spec, and macros without parameters
// of the headers that the sources include and of common others. A word with a `*` is a family, as of fnmatch.
static bool is_taken(const char *name) {
  static const char *const words[] = {
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
      "char8_t", "char16_t", "char32_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
      "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
      "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
      "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
      "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return",
      "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
      "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union",
      "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "_[A-Z]*",
      // parameters
      "out_bytes", "stream", "workspace", "workspace_bytes", "tlk_*",
      // types and macros
      "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "size_t", "assert",
      "errno", "linux", "offsetof", "sched_priority", "stderr", "stdin", "stdout", "unix", "BUFSIZ", "EOF",
      "MB_CUR_MAX", "NULL", "RAND_MAX", "TIME_UTC", "TIMER_ABSTIME", "TMP_MAX", "ATOMIC_*", "CLOCK*", "EXIT_*",
      "FILENAME_MAX", "FOPEN_MAX", "INT*_MAX", "INT*_MIN", "L_tmpnam", "L_ctermid", "PTHREAD_*", "PTRDIFF_*", "RTLD_*",
      "SCHED_*", "SEEK_*", "SIG_*", "SIZE_MAX", "TLK_*", "TL_KERNEL_*", "UINT*_MAX", "WCHAR_*", "WINT_*"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (fnmatch(words[i], name, 0) == 0) return true;
  return false;
}

const tl_manifest_param *c_workspace(const tl_manifest_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (kernel->params[i].kind == TL_MPARAM_WORKSPACE) return &kernel->params[i];
  return NULL;
}

void c_identifier(const char *name, tl_strbuf *out) {
  for (const char *p = name; *p; p++) tl_strbuf_append_char(out, isalnum((unsigned char)*p) ? *p : '_');
  if (is_taken(name)) tl_strbuf_append_char(out, '_');
}

// A backslash before the end of a line, also as a trigraph, would draw the next line into the comment.
static bool joins_lines(const char *end, const char *text) {
  if (end > text && end[-1] == '\\') return true;
  return end - text >= 3 && end[-1] == '/' && end[-2] == '?' && end[-3] == '?';
}

void c_comment(const char *text, const char *next, tl_strbuf *out) {
  size_t len = strlen(text);
  if (len && text[len - 1] == '\n') len--;
  for (size_t i = 0; i <= len; i++) {
    bool ends = i == len || text[i] == '\n';
    if (ends && joins_lines(text + i, text)) tl_strbuf_append_c(out, " //");
    if (i == len) break;
    if (ends)
      tl_strbuf_append_c(out, next);
    else
      tl_strbuf_append_char(out, (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i]);
  }
}

void c_string(const char *text, tl_strbuf *out) {
  tl_strbuf_append_char(out, '"');
  for (const char *p = text; *p; p++) {
    if (*p == '"' || *p == '\\' || *p == '?')
      tl_strbuf_appendf(out, "\\%c", *p);
    else if ((unsigned char)*p < ' ')
      tl_strbuf_appendf(out, "\\%03o", (unsigned)*p);
    else
      tl_strbuf_append_char(out, *p);
  }
  tl_strbuf_append_char(out, '"');
}

const char *c_scalar_type(tl_dtype dtype) {
  switch (dtype) {
    case TL_DTYPE_F64:
      return "double";
    case TL_DTYPE_F32:
    case TL_DTYPE_TF32:
    case TL_DTYPE_F16:
    case TL_DTYPE_BF16:
      return "float";
    case TL_DTYPE_I64:
      return "int64_t";
    case TL_DTYPE_I32:
      return "int32_t";
    case TL_DTYPE_I16:
      return "int16_t";
    case TL_DTYPE_I8:
      return "int8_t";
    case TL_DTYPE_U64:
      return "uint64_t";
    case TL_DTYPE_U32:
      return "uint32_t";
    case TL_DTYPE_U16:
      return "uint16_t";
    case TL_DTYPE_U8:
      return "uint8_t";
    case TL_DTYPE_BOOL:
      return "bool";
    default:
      return NULL;
  }
}

static void print_name(const char *name, void *user, tl_strbuf *out) {
  const c_scope *scope = user;
  if (strcmp(name, "num_sms") == 0) {
    tl_strbuf_append_c(out, "tlk_m->num_sms");
  } else if (strcmp(name, "resident_blocks") == 0) {
    tl_strbuf_appendf(out, "tlk_m->kernels[%u].resident_blocks", scope->kernel);
  } else {
    tl_strbuf_append_c(out, scope->prefix);
    c_identifier(name, out);
  }
}

void c_expr(const tl_mexpr *expr, const c_scope *scope, tl_strbuf *out) {
  c_scope copy = *scope;
  tl_mexpr_print_c(expr, &(tl_mexpr_c_names){print_name, &copy}, out);
}

void c_parameter(const tl_manifest_param *param, const char *prefix, tl_strbuf *out) {
  switch (param->kind) {
    case TL_MPARAM_TENSOR:
      tl_strbuf_appendf(out, "%svoid *%s", param->access == 0 ? "const " : "", prefix);
      break;
    case TL_MPARAM_SCALAR:
      tl_strbuf_appendf(out, "%s %s", c_scalar_type(param->dtype), prefix);
      break;
    default:
      tl_strbuf_appendf(out, "int64_t %s", prefix);
      break;
  }
  c_identifier(param->name, out);
}

void c_parameters(const c_signature *signature, const char *stream, tl_strbuf *out) {
  tl_strbuf_appendf(out, "tl_stream %s", stream);
  for (uint32_t i = 0; i < signature->kernel->num_params; i++) {
    if (!c_is_argument(&signature->kernel->params[i])) continue;
    tl_strbuf_append_c(out, ", ");
    c_parameter(&signature->kernel->params[i], "", out);
  }
  for (uint32_t i = 0; i < signature->num_names; i++) {
    tl_strbuf_append_c(out, ", int64_t ");
    c_identifier(signature->names[i], out);
  }
  if (signature->has_workspace) tl_strbuf_append_c(out, ", void *workspace, size_t workspace_bytes");
}

void c_bad(const char *what, const char *kernel, tl_strbuf *out) {
  tl_strbuf_append_c(out,
                     "  if (tlk_bad)\n    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, \"%s of '%s': these sizes "
                     "overflow, or divide by zero\", ");
  c_string(what, out);
  tl_strbuf_append_c(out, ", ");
  c_string(kernel, out);
  tl_strbuf_append_c(out, ");\n");
}
