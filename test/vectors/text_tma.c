// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors of tensor copies.
#include <stdio.h>
#include <string.h>

#include "kernel_text.h"

static uint32_t num_offsets(const tv_vector *v) {
  return v->map.is_im2col ? v->map.rank - 2 : 0;
}

static void put_arguments(tl_strbuf *arguments, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) tl_strbuf_appendf(arguments, ",%%a%u", first + i);
}

// Of tensormap.replace: whether the field's new value is an argument.
static bool has_value(const char *field) {
  return strcmp(field, "elemtype") && strcmp(field, "interleave_layout") && strcmp(field, "swizzle_mode") &&
         strcmp(field, "fill_mode");
}

// The map's 128 bytes, and what is done to the copy, for all threads alike but by the first alone.
static void write_replacement(tv_writer *w, const char *field) {
  const tv_vector *v = w->vector;
  bool in_shared = tv_setting_is(v, "space", "shared");
  long ordinal = tv_setting(v, "ordinal", -1);
  char name[96], signature[16], arguments[96], scope[16], fence[96];
  const char *place = in_shared ? "@shared_map" : "%map_copy";
  tl_strbuf_append_c(&w->body, " %copied_map = addrspacecast ptr addrspace(1) %map_copy to ptr\n");
  tv_open_if(w, "%first");
  tl_strbuf_appendf(&w->body, " %%map_bytes = load [16 x i64], ptr %%map\n store [16 x i64] %%map_bytes, %s %s\n",
                    tv_type(in_shared ? 'p' : 'g'), place);
  snprintf(name, sizeof name, "llvm.nvvm.tensormap.replace.%s.p%d", field, in_shared ? 3 : 1);
  for (char *at = name; (at = strchr(at, '_'));) *at = '.';
  bool wide = !strcmp(field, "global_address") || !strcmp(field, "global_stride");
  snprintf(signature, sizeof signature, "(%c%s%s)", in_shared ? 'p' : 'g', ordinal >= 0 ? "I" : "",
           !has_value(field) ? "I"
           : wide            ? "l"
                             : "i");
  if (!strcmp(field, "global_address"))
    tl_strbuf_appendf(&w->body, " %%new = ptrtoint ptr addrspace(1) %%a%u to i64\n", v->map.rank + 1);
  snprintf(arguments, sizeof arguments, "%s,", place);
  if (ordinal >= 0) snprintf(arguments + strlen(arguments), 24, "%ld,", ordinal);
  if (!strcmp(field, "global_address"))
    strcat(arguments, "%new");
  else if (has_value(field))
    snprintf(arguments + strlen(arguments), 24, "%%a%u", v->map.rank + 1);
  else
    snprintf(arguments + strlen(arguments), 24, "%ld", tv_setting(v, "value", 0));
  tv_call(w, "", name, signature, arguments);
  if (in_shared)
    tl_strbuf_append_c(&w->body,
                       " %shared_bytes = load [16 x i64], ptr addrspace(3) @shared_map\n"
                       " store [16 x i64] %shared_bytes, ptr addrspace(1) %map_copy\n");
  sscanf(strstr(v->setting, "scope="), "scope=%15[a-z]", scope);
  snprintf(fence, sizeof fence, "llvm.nvvm.fence.proxy.tensormap_generic.release.%s", scope);
  tv_call(w, "", fence, "()", "");
  snprintf(fence, sizeof fence, "llvm.nvvm.fence.proxy.tensormap_generic.acquire.%s", scope);
  tv_call(w, "", fence, "(mI)", "%copied_map,128");
  tv_close_if(w);
}

// Arguments: destination, coordinates, (value of a replacement,) (offsets,) (mask,) whether to issue.
static void write_load(tv_writer *w) {
  const tv_vector *v = w->vector;
  uint32_t rank = v->map.rank, offsets = num_offsets(v), next = rank + 1;
  bool multicast = strstr(v->name, "multicast"), cta = strstr(v->name, ".cta"), replaces = strstr(v->name, "replace");
  char name[96], signature[48], bytes[16], condition[16], field[32] = "";
  if (replaces) sscanf(strstr(v->setting, "field="), "field=%31[a-z_]", field);
  snprintf(bytes, sizeof bytes, "%ld", tv_setting(v, "bytes", 0));
  snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.g2s%s.%s.%ud", cta ? ".cta" : "",
           offsets ? "im2col" : "tile", rank);
  snprintf(signature, sizeof signature, "(%cpm%.*s%.*s%s)", cta ? 'p' : 'P', (int)rank, "iiiii", (int)offsets, "sss",
           cta ? "lB" : "slBBI");
  tv_put_expect(w, bytes);
  if (replaces) {
    write_replacement(w, field);
    next += has_value(field);
  }
  tl_strbuf arguments = {0};
  tl_strbuf_appendf(&arguments, "%s,@bar,%s", cta ? "%a0" : "%to", replaces ? "%copied_map" : "%map");
  put_arguments(&arguments, 1, rank);
  put_arguments(&arguments, next, offsets);
  next += offsets;
  if (multicast)
    tl_strbuf_appendf(&arguments, ",%%a%u,0,true,false,0", next++);
  else
    tl_strbuf_append_c(&arguments, cta ? ",0,false" : ",0,0,false,false,0");
  snprintf(condition, sizeof condition, "%%a%u", next);
  tl_strbuf_append_c(&w->body, " %to = addrspacecast ptr addrspace(3) %a0 to ptr addrspace(7)\n");
  tv_open_if(w, condition);
  tv_call(w, "", name, signature, tl_strbuf_c(&arguments));
  tv_close_if(w);
  tl_strbuf_fini(&arguments);
  tv_put_wait(w);
}

static void write_store(tv_writer *w) {
  const tv_vector *v = w->vector;
  uint32_t rank = v->map.rank;
  const char *mode = v->map.is_im2col ? "im2col" : "tile";
  char name[96], signature[40], condition[16], op[8] = "";
  if (sscanf(v->name, "tma.reduce.%7[a-z]", op) == 1)
    snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.reduce.%s.%s.%ud", op, mode, rank);
  else
    snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.s2g.%s.%ud", mode, rank);
  snprintf(signature, sizeof signature, "(pm%.*slB)", (int)rank, "iiiii");
  snprintf(condition, sizeof condition, "%%a%u", rank + 1);
  tl_strbuf arguments = {0};
  tl_strbuf_append_c(&arguments, "%a0,%map");
  put_arguments(&arguments, 1, rank);
  tl_strbuf_append_c(&arguments, ",0,false");
  tv_open_if(w, condition);
  tv_call(w, "", name, signature, tl_strbuf_c(&arguments));
  tv_put_commit(w);
  tv_close_if(w);
  tl_strbuf_fini(&arguments);
}

static void write_prefetch(tv_writer *w) {
  const tv_vector *v = w->vector;
  uint32_t rank = v->map.rank, offsets = num_offsets(v);
  char name[96], signature[40], condition[16];
  snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.prefetch.%s.%ud", offsets ? "im2col" : "tile", rank);
  snprintf(signature, sizeof signature, "(m%.*s%.*slB)", (int)rank, "iiiii", (int)offsets, "sss");
  snprintf(condition, sizeof condition, "%%a%u", rank + offsets);
  tl_strbuf arguments = {0};
  tl_strbuf_append_c(&arguments, "%map");
  put_arguments(&arguments, 0, rank + offsets);
  tl_strbuf_append_c(&arguments, ",0,false");
  tv_open_if(w, condition);
  tv_call(w, "", name, signature, tl_strbuf_c(&arguments));
  tv_close_if(w);
  tl_strbuf_fini(&arguments);
}

bool tv_write_tma(tv_writer *w) {
  const char *name = w->vector->name;
  if (strncmp(name, "tma.", 4)) return false;
  if (!strcmp(name, "tma.prefetch_map")) {
    tv_open_if(w, "%a0");
    tv_call(w, "", "llvm.nvvm.prefetch.tensormap.p0", "(m)", "%map");
    tv_close_if(w);
    return true;
  }
  if (!strncmp(name, "tma.load", 8) || !strncmp(name, "tma.replace", 11))
    write_load(w);
  else if (!strncmp(name, "tma.prefetch", 12))
    write_prefetch(w);
  else
    write_store(w);
  return true;
}
