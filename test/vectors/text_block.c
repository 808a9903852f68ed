// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors of mbarriers, barriers of blocks, windows of addresses.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_text.h"

static bool begins(const char *name, const char *prefix) {
  return !strncmp(name, prefix, strlen(prefix));
}

// ---- mbarriers: the letters of rec_bulk.c
static const struct {
  char letter;
  const char *name, *signature;
} steps[] = {
    {'i', "llvm.nvvm.mbarrier.init.shared", "(pi)"},
    {'a', "llvm.nvvm.mbarrier.arrive.scope.cta.space.cta", "l(pi)"},
    {'n', "llvm.nvvm.mbarrier.arrive.noComplete.shared", "l(pi)"},
    {'d', "llvm.nvvm.mbarrier.arrive.drop.scope.cta.space.cta", "l(pi)"},
    {'e', "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", "l(pi)"},
    {'x', "llvm.nvvm.mbarrier.expect.tx.scope.cta.space.cta", "(pi)"},
    {'c', "llvm.nvvm.mbarrier.complete.tx.scope.cta.space.cta", "(pi)"},
    {'t', "llvm.nvvm.mbarrier.test.wait.parity.scope.cta.space.cta", "b(pi)"},
    {'s', "llvm.nvvm.mbarrier.test.wait.scope.cta.space.cta", "b(pl)"},
    {'p', "llvm.nvvm.mbarrier.pending.count", "i(l)"},
    {'v', "llvm.nvvm.mbarrier.inval.shared", "(p)"},
    {'k', "llvm.nvvm.mbarrier.arrive.shared", "l(p)"},
    {'q', "llvm.nvvm.mbarrier.arrive.drop.shared", "l(p)"},
    {'m', "llvm.nvvm.mbarrier.arrive.drop.noComplete.shared", "l(pi)"},
    {'w', "llvm.nvvm.mbarrier.test.wait.shared", "b(pl)"},
    {'y', "llvm.nvvm.mbarrier.try.wait.scope.cta.space.cta", "b(pl)"},
    {'r', "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta", "b(pi)"},
    {'I', "llvm.nvvm.mbarrier.init", "(mi)"},
    {'V', "llvm.nvvm.mbarrier.inval", "(m)"},
    {'A', "llvm.nvvm.mbarrier.arrive", "l(m)"},
    {'N', "llvm.nvvm.mbarrier.arrive.noComplete", "l(mi)"},
    {'D', "llvm.nvvm.mbarrier.arrive.drop", "l(m)"},
    {'M', "llvm.nvvm.mbarrier.arrive.drop.noComplete", "l(mi)"},
    {'S', "llvm.nvvm.mbarrier.test.wait", "b(ml)"},
};

// cp.async.mbarrier.arrive: every lane copies, tells the mbarrier, and waits for all of them.
static void write_copies(tv_writer *w) {
  const char *name = w->vector->name;
  bool noinc = strstr(name, ".noinc") != NULL, shared = strstr(name, ".shared") != NULL;
  char op[96];
  snprintf(op, sizeof op, "llvm.nvvm.cp.async.mbarrier.arrive%s%s", noinc ? ".noinc" : "", shared ? ".shared" : "");
  tl_strbuf_append_c(&w->body, " %anywhere = addrspacecast ptr addrspace(3) @bar to ptr\n");
  tv_open_if(w, "%first");
  tv_call(w, "", "llvm.nvvm.mbarrier.init.shared", "(pi)", "@bar,32");
  tv_close_if(w);
  tv_meet(w);
  tv_call(w, "", "llvm.nvvm.cp.async.ca.shared.global.16", "(pg)", "%a0,%a1");
  tv_call(w, "", op, shared ? "(p)" : "(m)", shared ? "@bar" : "%anywhere");
  if (!noinc) tv_call(w, "%arrival", "llvm.nvvm.mbarrier.arrive.shared", "l(p)", "@bar");
  tv_put_wait(w);
}

// Arrivals at the mbarrier of block %a0.
static void write_remote(tv_writer *w) {
  bool expects = strstr(w->vector->name, ".expect.tx") != NULL;
  char op[96];
  snprintf(op, sizeof op, "llvm.nvvm.mbarrier.%s.scope.cluster.space.cluster",
           w->vector->name + strlen("mbarrier.remote."));
  tv_open_if(w, "%first");
  tv_call(w, "", "llvm.nvvm.mbarrier.init.shared", "(pi)", "@bar,32");
  tv_call(w, "", "llvm.nvvm.fence.mbarrier_init.release.cluster", "()", "");
  tv_close_if(w);
  tv_meet(w);
  tv_call(w, "%peer", "llvm.nvvm.mapa.shared.cluster", "P(pi)", "@bar,%a0");
  tv_call(w, "", op, "(Pi)", expects ? "%peer,16" : "%peer,1");
  if (expects) tv_call(w, "", "llvm.nvvm.mbarrier.complete.tx.scope.cluster.space.cluster", "(Pi)", "%peer,16");
  tv_put_wait_of(w, "llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta");
}

bool tv_write_arrivals(tv_writer *w) {
  const char *name = w->vector->name;
  if (begins(name, "cp.async.mbarrier")) return write_copies(w), true;
  if (begins(name, "mbarrier.remote.")) return write_remote(w), true;
  return false;
}

bool tv_write_script(tv_writer *w) {
  if (strcmp(w->vector->name, "mbarrier.script")) return false;
  int results = 0, states = 0;
  tl_strbuf_append_c(&w->body, " %anywhere = addrspacecast ptr addrspace(3) @bar to ptr\n");
  for (const char *word = strchr(w->vector->setting, ' '); word; word = strchr(word + 1, ' ')) {
    char letter = word[1], arguments[64], result[32] = "";
    unsigned number = (unsigned)strtoul(word + 2, NULL, 10);
    size_t step = 0;
    while (steps[step].letter != letter) step++;
    const char *signature = steps[step].signature, *operands = strchr(signature, '(') + 1;
    int count = tv_arguments(signature);
    bool of_state = operands[count - 1] == 'l';
    const char *place = operands[0] == 'm' ? "%anywhere" : operands[0] == 'p' ? "@bar" : "";
    snprintf(arguments, sizeof arguments, "%s%s", place, count > 1 ? "," : "");
    if (count > 1 || of_state) snprintf(arguments + strlen(arguments), 32, of_state ? "%%state%u" : "%u", number);
    if (signature[0] == 'l')
      snprintf(result, sizeof result, "%%state%d", states++);
    else if (signature[0] == 'b')
      snprintf(result, sizeof result, "%%test%d", results);
    else
      snprintf(result, sizeof result, "%%r%d", results);
    tv_call(w, result, steps[step].name, signature, arguments);
    if (signature[0] == 'b') tl_strbuf_appendf(&w->body, " %%r%d = zext i1 %%test%d to i32\n", results, results);
    results += tv_results(signature) && signature[0] != 'l';
  }
  return true;
}

// ---- one form of an operation of mbarriers, as in rec_mbarrier.c
static void ask(tv_writer *w, int result, const char *parity) {
  char arguments[16], name[16];
  snprintf(arguments, sizeof arguments, "@bar,%s", parity);
  snprintf(name, sizeof name, "%%asked%d", result);
  tv_call(w, name, "llvm.nvvm.mbarrier.test.wait.parity.scope.cta.space.cta", "b(pi)", arguments);
  tl_strbuf_appendf(&w->body, " %%r%d = zext i1 %%asked%d to i32\n", result, result);
}

static void arrive(tv_writer *w) {
  char name[24];
  snprintf(name, sizeof name, "%%arrival%d", w->temporaries++);
  tv_call(w, name, "llvm.nvvm.mbarrier.arrive.shared", "l(p)", "@bar");
}

static void count_bytes(tv_writer *w, bool completes) {
  tv_call(w, "",
          completes ? "llvm.nvvm.mbarrier.complete.tx.scope.cta.space.cta"
                    : "llvm.nvvm.mbarrier.expect.tx.scope.cta.space.cta",
          "(pi)", "@bar,16");
}

static void write_form_of_arrival(tv_writer *w, const char *op, bool in_cluster) {
  bool counts = strstr(op, ".tx.") != NULL;
  const char *place = in_cluster ? "%far" : "@bar";
  char arguments[24];
  snprintf(arguments, sizeof arguments, "%s,%d", place, counts ? 16 : 1);
  tv_call(w, "", "llvm.nvvm.mbarrier.init.shared", "(pi)", "@bar,2");
  tv_call(w, in_cluster ? "" : "%state", op, in_cluster ? "(Pi)" : "l(pi)", arguments);
  if (counts) count_bytes(w, true);
  ask(w, 0, "0");
  arrive(w);
  ask(w, 1, "0");
  arrive(w);
  ask(w, 2, "1");
}

static void write_form_of_bytes(tv_writer *w, const char *op, bool in_cluster) {
  bool completes = strstr(op, "complete.tx") != NULL;
  tv_call(w, "", "llvm.nvvm.mbarrier.init.shared", "(pi)", "@bar,1");
  if (completes)
    count_bytes(w, false);
  else
    tv_call(w, "", op, in_cluster ? "(Pi)" : "(pi)", in_cluster ? "%far,16" : "@bar,16"), arrive(w);
  ask(w, 0, "0");
  if (completes)
    tv_call(w, "", op, in_cluster ? "(Pi)" : "(pi)", in_cluster ? "%far,16" : "@bar,16"), arrive(w);
  else
    count_bytes(w, true);
  ask(w, 1, "0");
  ask(w, 2, "1");
}

static void write_form_of_wait(tv_writer *w, const char *op) {
  bool parity = strstr(op, ".parity"), limit = strstr(op, ".tl.");
  char signature[16], arguments[32];
  snprintf(signature, sizeof signature, "b(p%s%s)", parity ? "i" : "l", limit ? "i" : "");
  snprintf(arguments, sizeof arguments, "@bar,%s%s", parity ? "0" : "%state", limit ? ",1000" : "");
  tv_call(w, "", "llvm.nvvm.mbarrier.init.shared", "(pi)", "@bar,1");
  tv_call(w, "%state", "llvm.nvvm.mbarrier.arrive.shared", "l(p)", "@bar");
  tv_call(w, "%asked0", op, signature, arguments);
  tl_strbuf_append_c(&w->body, " %r0 = zext i1 %asked0 to i32\n");
  ask(w, 1, "0");
  ask(w, 2, "1");
}

static void write_form(tv_writer *w) {
  const char *form = w->vector->name + strlen("mbarrier.form.");
  bool in_cluster = strstr(form, ".space.cluster") != NULL;
  char op[128];
  snprintf(op, sizeof op, "llvm.nvvm.mbarrier.%s", form);
  tl_strbuf_append_c(&w->body, " %far = addrspacecast ptr addrspace(3) @bar to ptr addrspace(7)\n");
  if (begins(form, "arrive"))
    write_form_of_arrival(w, op, in_cluster);
  else if (strstr(form, "wait"))
    write_form_of_wait(w, op);
  else
    write_form_of_bytes(w, op, in_cluster);
}

// ---- barriers: a word to the thread 32 places further
static void write_barrier(tv_writer *w) {
  const char *form = w->vector->name + strlen("barrier.");
  bool arrives = begins(form, "arrive"), counted = strstr(form, "count") != NULL;
  char op[96], sync[96];
  snprintf(op, sizeof op, "llvm.nvvm.barrier.cta.%s", form);
  snprintf(sync, sizeof sync, "llvm.nvvm.barrier.cta.sync%s", strchr(form, '.'));
  tl_strbuf_append_c(&w->body, " store i32 %a2, ptr addrspace(3) %a0\n");
  if (arrives) {
    tl_strbuf_append_c(&w->body, " %gives = icmp ult i32 %tid, 32\n br i1 %gives, label %give, label %take\ngive:\n");
    tv_call(w, "", op, "(ii)", "3,64");
    tl_strbuf_append_c(&w->body, " br label %met\ntake:\n");
    tv_call(w, "", sync, "(ii)", "3,64");
    tl_strbuf_append_c(&w->body,
                       " br label %met\nmet:\n %from = select i1 %gives, ptr addrspace(3) %a0, ptr addrspace(3) %a1\n");
  } else {
    tv_call(w, "", op, counted ? "(ii)" : "(i)", counted ? "3,64" : "3");
    tl_strbuf_append_c(&w->body, " %from = getelementptr i8, ptr addrspace(3) %a1, i32 0\n");
  }
  tl_strbuf_append_c(&w->body, " %r0 = load i32, ptr addrspace(3) %from\n");
}

// ---- windows: which of four addresses %a0 says
static void write_window(tv_writer *w) {
  char op[64];
  snprintf(op, sizeof op, "llvm.nvvm.%s", w->vector->name);
  tl_strbuf_append_c(&w->body,
                     " %own = alloca i64\n %inside = addrspacecast ptr addrspace(3) @bar to ptr\n"
                     " %outside = addrspacecast ptr addrspace(1) %global to ptr\n");
  tv_call(w, "%rank", "llvm.nvvm.read.ptx.sreg.cluster.ctarank", "i()", "");
  tl_strbuf_append_c(&w->body, " %other = xor i32 %rank, 1\n");
  tv_call(w, "%there", "llvm.nvvm.mapa", "m(mi)", "%inside,%other");
  tl_strbuf_append_c(&w->body,
                     " %is1 = icmp eq i32 %a0, 1\n %is2 = icmp eq i32 %a0, 2\n %is3 = icmp eq i32 %a0, 3\n"
                     " %p1 = select i1 %is1, ptr %inside, ptr %outside\n"
                     " %p2 = select i1 %is2, ptr %there, ptr %p1\n %p3 = select i1 %is3, ptr %own, ptr %p2\n");
  tv_call(w, "%r0", op, "b(m)", "%p3");
}

bool tv_write_block(tv_writer *w) {
  const char *name = w->vector->name;
  if (begins(name, "mbarrier.form.")) return write_form(w), true;
  if (begins(name, "barrier.")) return write_barrier(w), true;
  if (begins(name, "isspacep.")) return write_window(w), true;
  return false;
}
