// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel around an op, and the vectors that are one op.
#include "kernel_text.h"

#include <stdio.h>
#include <string.h>

#include "emulator/ops/ops.h"

const char *tv_type(char letter) {
  return letter == 'm' ? "ptr" : tl_emu_letter_type(letter);
}

static void put_result_type(tl_strbuf *out, const char *signature) {
  int results = tv_results(signature);
  if (results <= 1) {
    tl_strbuf_append_c(out, results ? tv_type(signature[0]) : "void");
    return;
  }
  for (int i = 0; i < results; i++) tl_strbuf_appendf(out, "%s%s", i ? ", " : "{", tv_type(signature[i]));
  tl_strbuf_append_c(out, "}");
}

void tv_declare(tv_writer *w, const char *name, const char *signature) {
  char mark[160];
  snprintf(mark, sizeof mark, " @%s(", name);
  if (w->declarations.data && strstr(tl_strbuf_c(&w->declarations), mark)) return;
  tl_strbuf_append_c(&w->declarations, "declare ");
  put_result_type(&w->declarations, signature);
  tl_strbuf_append_c(&w->declarations, mark);
  const char *arguments = strchr(signature, '(') + 1;
  for (int i = 0; arguments[i] != ')'; i++)
    tl_strbuf_appendf(&w->declarations, "%s%s%s", i ? ", " : "", tv_type(arguments[i]),
                      strchr("IB", arguments[i]) ? " immarg" : "");
  tl_strbuf_append_c(&w->declarations, ")\n");
}

void tv_call(tv_writer *w, const char *result, const char *name, const char *signature, const char *arguments) {
  tv_declare(w, name, signature);
  tl_strbuf_append_c(&w->body, " ");
  if (tv_results(signature)) tl_strbuf_appendf(&w->body, "%s = ", result);
  tl_strbuf_append_c(&w->body, "call ");
  put_result_type(&w->body, signature);
  tl_strbuf_appendf(&w->body, " @%s(", name);
  for (const char *letter = strchr(signature, '(') + 1; *letter != ')'; letter++) {
    int length = (int)strcspn(arguments, ",");
    tl_strbuf_appendf(&w->body, "%s%s %.*s", letter[-1] == '(' ? "" : ", ", tv_type(*letter), length, arguments);
    arguments += length + (arguments[length] == ',');
  }
  tl_strbuf_append_c(&w->body, ")\n");
}

void tv_unpack(tv_writer *w, const char *result, const char *signature) {
  int results = tv_results(signature);
  for (int i = 0; i < results; i++) {
    tl_strbuf_appendf(&w->body, " %%r%d = ", i);
    if (results > 1) {
      tl_strbuf_append_c(&w->body, "extractvalue ");
      put_result_type(&w->body, signature);
      tl_strbuf_appendf(&w->body, " %s, %d\n", result, i);
    } else {
      tl_strbuf_appendf(&w->body, "bitcast %s %s to %s\n", tv_type(signature[0]), result, tv_type(signature[0]));
    }
  }
}

static void write_direct(tv_writer *w) {
  const tv_vector *v = w->vector;
  tl_strbuf arguments = {0};
  char signature[TV_MAX_SIGNATURE];
  tl_strbuf_append_c(&arguments, "");
  snprintf(signature, sizeof signature, "%s", v->signature);
  for (int i = 0; i < tv_arguments(v->signature); i++) tl_strbuf_appendf(&arguments, "%s%%a%d", i ? "," : "", i);
  long selector = tv_setting(v, "selector", -1);  // the last operand of mma.sp
  if (selector >= 0) {
    strcpy(strchr(signature, ')'), "I)");
    tl_strbuf_appendf(&arguments, ",%ld", selector);
  }
  tv_call(w, "%result", v->name, signature, tl_strbuf_c(&arguments));
  tl_strbuf_fini(&arguments);
  tv_unpack(w, "%result", v->signature);
  // Lanes with different member masks go on one group after the other.
  if (strstr(v->setting, "groups=")) tv_call(w, "", "llvm.nvvm.bar.warp.sync", "(i)", "-1");
  if (tv_setting_is(v, "then", "cp.async.wait.all")) tv_call(w, "", "llvm.nvvm.cp.async.wait.all", "()", "");
  if (tv_setting_is(v, "then", "cp.async.wait.group")) {
    tv_call(w, "", "llvm.nvvm.cp.async.commit.group", "()", "");
    tv_call(w, "", "llvm.nvvm.cp.async.wait.group", "(I)", "0");
  }
}

static void write_atomic(tv_writer *w) {
  const char *type = tv_type(w->vector->signature[0]);
  if (!strcmp(w->vector->name, "cmpxchg"))
    tl_strbuf_appendf(&w->body,
                      " %%pair = cmpxchg ptr addrspace(1) %%a0, %s %%a1, %s %%a2 monotonic monotonic\n"
                      " %%r0 = extractvalue {%s, i1} %%pair, 0\n",
                      type, type, type);
  else
    tl_strbuf_appendf(&w->body, " %%r0 = %s ptr addrspace(1) %%a0, %s %%a1 monotonic\n", w->vector->name, type);
}

static bool write_op(tv_writer *w) {
  const char *name = w->vector->name;
  if (!strncmp(name, "llvm.", 5) || !strncmp(name, "tl.", 3)) return write_direct(w), true;
  if (!strncmp(name, "atomicrmw ", 10) || !strcmp(name, "cmpxchg")) return write_atomic(w), true;
  return tv_write_wgmma(w) || tv_write_tma(w) || tv_write_bulk(w) || tv_write_cluster(w) || tv_write_script(w) ||
         tv_write_arrivals(w) || tv_write_block(w);
}

static void write_loads(tv_writer *w) {
  const tv_vector *v = w->vector;
  int results = tv_results(v->signature);
  for (int i = 0; i < tv_arguments(v->signature); i++) {
    char letter = tv_letter(v->signature, results + i);
    tl_strbuf_appendf(&w->body, " %%in%d = getelementptr i64, ptr addrspace(1) %%mine, i32 %d\n", i, i);
    if (letter == 'p' || letter == 'g')
      tl_strbuf_appendf(&w->body,
                        " %%offset%d = load i64, ptr addrspace(1) %%in%d\n"
                        " %%a%d = getelementptr i8, %s %s, i64 %%offset%d\n",
                        i, i, i, tv_type(letter), letter == 'p' ? "@buffer" : "%global", i);
    else if (letter == 'b')
      tl_strbuf_appendf(&w->body, " %%byte%d = load i8, ptr addrspace(1) %%in%d\n %%a%d = trunc i8 %%byte%d to i1\n", i,
                        i, i, i);
    else
      tl_strbuf_appendf(&w->body, " %%a%d = load %s, ptr addrspace(1) %%in%d\n", i, tv_type(letter), i);
  }
}

static void write_stores(tv_writer *w) {
  const char *signature = w->vector->signature;
  for (int i = 0; i < tv_results(signature); i++) {
    tl_strbuf_appendf(&w->body, " %%out%d = getelementptr i64, ptr addrspace(1) %%theirs, i32 %d\n", i, i);
    if (signature[i] == 'b')
      tl_strbuf_appendf(&w->body, " %%wide%d = zext i1 %%r%d to i8\n store i8 %%wide%d, ptr addrspace(1) %%out%d\n", i,
                        i, i, i);
    else
      tl_strbuf_appendf(&w->body, " store %s %%r%d, ptr addrspace(1) %%out%d\n", tv_type(signature[i]), i, i);
  }
}

// A function that moves a block's part of %io to or from @buffer, a word at a time, all threads together.
static void write_move(tl_strbuf *out, const char *name, const char *from, const char *to, size_t bytes,
                       uint32_t threads) {
  tl_strbuf_appendf(out,
                    "define internal void @%s(ptr addrspace(1) %%io, i32 %%tid) {\nentry:\n"
                    " %%some = icmp ult i32 %%tid, %zu\n br i1 %%some, label %%loop, label %%done\nloop:\n"
                    " %%i = phi i32 [ %%tid, %%entry ], [ %%j, %%loop ]\n"
                    " %%g = getelementptr i32, ptr addrspace(1) %%io, i32 %%i\n"
                    " %%s = getelementptr i32, ptr addrspace(3) @buffer, i32 %%i\n"
                    " %%v = load i32, ptr %s\n store i32 %%v, ptr %s\n"
                    " %%j = add i32 %%i, %u\n %%more = icmp ult i32 %%j, %zu\n"
                    " br i1 %%more, label %%loop, label %%done\ndone:\n ret void\n}\n",
                    name, bytes / 4, from, to, threads, bytes / 4);
}

// What makes shared memory the same for all threads of the cluster and for asynchronous copies.
static void write_meeting(tv_writer *w) {
  bool hopper = strncmp(w->vector->name, "llvm.", 5) || w->vector->blocks > 1;
  if (hopper && w->vector->shared_bytes) tv_call(w, "", "llvm.nvvm.fence.proxy.async", "()", "");
  if (w->vector->blocks > 1) {
    tv_call(w, "", "llvm.nvvm.barrier.cluster.arrive.aligned", "()", "");
    tv_call(w, "", "llvm.nvvm.barrier.cluster.wait.aligned", "()", "");
  } else {
    tv_call(w, "", "llvm.nvvm.barrier.cta.sync.aligned.all", "(i)", "0");
  }
}

bool tv_write_kernel(const tv_vector *v, tl_strbuf *out) {
  tv_writer w = {.vector = v};
  size_t shared = v->shared_bytes / v->blocks;
  tv_call(&w, "%tid", "llvm.nvvm.read.ptx.sreg.tid.x", "i()", "");
  tv_call(&w, "%cta", "llvm.nvvm.read.ptx.sreg.ctaid.x", "i()", "");
  tl_strbuf_appendf(
      &w.body,
      " %%first = icmp eq i32 %%tid, 0\n %%before = mul i32 %%cta, %u\n %%thread = add i32 %%before, %%tid\n"
      " %%part = mul i32 %%cta, %zu\n %%io = getelementptr i8, ptr addrspace(1) %%all, i32 %%part\n"
      " %%slot = mul i32 %%thread, %d\n %%mine = getelementptr i64, ptr addrspace(1) %%in, i32 %%slot\n"
      " %%place = mul i32 %%thread, %d\n %%theirs = getelementptr i64, ptr addrspace(1) %%out, i32 %%place\n",
      v->threads, shared, tv_arguments(v->signature), tv_results(v->signature));
  write_loads(&w);
  if (shared) tl_strbuf_append_c(&w.body, " call void @fill(ptr addrspace(1) %io, i32 %tid)\n");
  write_meeting(&w);
  bool known = write_op(&w);
  write_meeting(&w);
  if (shared) tl_strbuf_append_c(&w.body, " call void @dump(ptr addrspace(1) %io, i32 %tid)\n");
  write_stores(&w);
  tl_strbuf_append(out, tl_strbuf_view(&w.declarations));
  tl_strbuf_appendf(out, "@buffer = internal addrspace(3) global [%zu x i8] undef, align 1024\n", shared ? shared : 16);
  tl_strbuf_append_c(out, "@bar = internal addrspace(3) global i64 undef, align 8\n");
  tl_strbuf_append_c(out, "@shared_map = internal addrspace(3) global [128 x i8] undef, align 128\n");
  if (shared) write_move(out, "fill", "addrspace(1) %g", "addrspace(3) %s", shared, v->threads);
  if (shared) write_move(out, "dump", "addrspace(3) %s", "addrspace(1) %g", shared, v->threads);
  tl_strbuf_append_c(out,
                     "define ptx_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out, ptr addrspace(1) %all, "
                     "ptr addrspace(1) %global, ptr byval([128 x i8]) align 64 %map, ptr addrspace(1) %map_copy) {\n"
                     "entry:\n");
  tl_strbuf_append(out, tl_strbuf_view(&w.body));
  tl_strbuf_append_c(out, " ret void\n}\n");
  tl_strbuf_fini(&w.declarations);
  tl_strbuf_fini(&w.body);
  return known;
}
