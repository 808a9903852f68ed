// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors of several ops: wgmma, tensor and bulk copies, clusters, mbarriers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_text.h"

static bool begins(const char *name, const char *prefix) {
  return !strncmp(name, prefix, strlen(prefix));
}

// ---- wgmma: sums, A (pointer and rest of a descriptor, or registers), B, whether to add
static void put_descriptor(tv_writer *w, const char *name, int pointer) {
  tl_strbuf_appendf(&w->body,
                    " %%%s.address = ptrtoint ptr addrspace(3) %%a%d to i32\n %%%s.high = lshr i32 %%%s.address, 4\n"
                    " %%%s.field = and i32 %%%s.high, 16383\n %%%s.low = zext i32 %%%s.field to i64\n"
                    " %%%s = or i64 %%%s.low, %%a%d\n",
                    name, pointer, name, name, name, name, name, name, name, name, pointer + 1);
}

bool tv_write_wgmma(tv_writer *w) {
  const tv_vector *v = w->vector;
  if (!begins(v->name, "wgmma.")) return false;
  bool in_registers = tv_setting_is(v, "a", "registers");
  int sums = tv_results(v->signature), next = sums + (in_registers ? 4 : 2);
  char letter = v->signature[0] == 'E' ? 'i' : v->signature[0];
  char name[128], wait[64], signature[300], wait_signature[300];
  snprintf(name, sizeof name, "tl.%s.%s%s%s%s%s%s", v->name, in_registers ? "rs" : "ss",
           tv_setting(v, "trans-a", 0) ? ".ta" : "", tv_setting(v, "trans-b", 0) ? ".tb" : "",
           tv_setting(v, "scale-a", 1) < 0 ? ".na" : "", tv_setting(v, "scale-b", 1) < 0 ? ".nb" : "",
           tv_setting(v, "satfinite", 0) ? ".sat" : "");
  snprintf(wait, sizeof wait, "tl.wgmma.wait.n0.%dx%s", sums,
           letter == 'f'            ? "f32"
           : v->signature[0] == 'E' ? "f16"
                                    : "s32");
  memset(signature, letter, (size_t)sums);
  signature[sums] = '(';
  memset(signature + sums + 1, letter, (size_t)sums);
  memcpy(wait_signature, signature, (size_t)(2 * sums + 1));
  strcpy(wait_signature + 2 * sums + 1, ")");
  strcpy(signature + 2 * sums + 1, in_registers ? "iiiilb)" : "llb)");
  tl_strbuf arguments = {0};
  for (int i = 0; i < sums; i++) {
    if (v->signature[0] == 'E') tl_strbuf_appendf(&w->body, " %%d%d = bitcast <2 x half> %%a%d to i32\n", i, i);
    tl_strbuf_appendf(&arguments, "%%%c%d,", v->signature[0] == 'E' ? 'd' : 'a', i);
  }
  if (in_registers)
    for (int i = 0; i < 4; i++) tl_strbuf_appendf(&arguments, "%%a%d,", sums + i);
  else
    put_descriptor(w, "left", sums), tl_strbuf_append_c(&arguments, "%left,");
  put_descriptor(w, "right", next);
  tl_strbuf_appendf(&arguments, "%%right,%%a%d", next + 2);
  tv_call(w, "", "llvm.nvvm.wgmma.fence.sync.aligned", "()", "");
  tv_call(w, "%issued", name, signature, tl_strbuf_c(&arguments));
  tv_call(w, "", "llvm.nvvm.wgmma.commit_group.sync.aligned", "()", "");
  tl_strbuf_clear(&arguments);
  for (int i = 0; i < sums; i++) {
    tl_strbuf_appendf(&w->body, " %%h%d = extractvalue {", i);
    for (int j = 0; j < sums; j++) tl_strbuf_appendf(&w->body, "%s%s", j ? ", " : "", tv_type(letter));
    tl_strbuf_appendf(&w->body, "} %%issued, %d\n", i);
    tl_strbuf_appendf(&arguments, "%s%%h%d", i ? "," : "", i);
  }
  tv_call(w, "%sums", wait, wait_signature, tl_strbuf_c(&arguments));
  tl_strbuf_fini(&arguments);
  for (int i = 0; i < sums; i++) {
    bool pair = v->signature[0] == 'E';
    tl_strbuf_appendf(&w->body, " %%%s%d = extractvalue {", pair ? "w" : "r", i);
    for (int j = 0; j < sums; j++) tl_strbuf_appendf(&w->body, "%s%s", j ? ", " : "", tv_type(letter));
    tl_strbuf_appendf(&w->body, "} %%sums, %d\n", i);
    if (pair) tl_strbuf_appendf(&w->body, " %%r%d = bitcast i32 %%w%d to <2 x half>\n", i, i);
  }
  return true;
}

// ---- copies that an mbarrier tells of
static void meet(tv_writer *w) {
  if (w->vector->blocks > 1) {
    tv_call(w, "", "llvm.nvvm.barrier.cluster.arrive.aligned", "()", "");
    tv_call(w, "", "llvm.nvvm.barrier.cluster.wait.aligned", "()", "");
  } else {
    tv_call(w, "", "llvm.nvvm.barrier.cta.sync.aligned.all", "(i)", "0");
  }
}

static void open_if(tv_writer *w, const char *condition) {
  int n = ++w->temporaries;
  tl_strbuf_appendf(&w->body, " br i1 %s, label %%then%d, label %%join%d\nthen%d:\n", condition, n, n, n);
}

static void close_if(tv_writer *w) {
  tl_strbuf_appendf(&w->body, " br label %%join%d\njoin%d:\n", w->temporaries, w->temporaries);
}

static void put_expect(tv_writer *w, const char *bytes) {
  char arguments[64];
  snprintf(arguments, sizeof arguments, "@bar,%s", bytes);
  open_if(w, "%first");
  tv_call(w, "", "llvm.nvvm.mbarrier.init.shared", "(pi)", "@bar,1");
  tv_call(w, "", "llvm.nvvm.fence.mbarrier_init.release.cluster", "()", "");
  tv_call(w, "%armed", "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", "l(pi)", arguments);
  close_if(w);
  meet(w);
}

// %r0: whether the bytes have arrived within a number of tries.
static void put_wait(tv_writer *w) {
  int n = ++w->temporaries;
  tl_strbuf_appendf(&w->body, " br label %%entry%d\nentry%d:\n br label %%again%d\nagain%d:\n", n, n, n, n);
  tl_strbuf_appendf(&w->body, " %%tries = phi i32 [ 0, %%entry%d ], [ %%tries.next, %%tried%d ]\n", n, n);
  tv_call(w, "%arrived", "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta", "b(pi)", "@bar,0");
  tl_strbuf_appendf(
      &w->body,
      " br i1 %%arrived, label %%over%d, label %%tried%d\ntried%d:\n %%tries.next = add i32 %%tries, 1\n"
      " %%more = icmp ult i32 %%tries.next, 100\n br i1 %%more, label %%again%d, label %%over%d\nover%d:\n"
      " %%r0 = phi i1 [ true, %%again%d ], [ false, %%tried%d ]\n",
      n, n, n, n, n, n, n, n);
}

static void put_commit(tv_writer *w) {
  tv_call(w, "", "llvm.nvvm.cp.async.bulk.commit.group", "()", "");
  tv_call(w, "", "llvm.nvvm.cp.async.bulk.wait.group", "(I)", "0");
}

static void put_coordinates(tl_strbuf *arguments, int first, uint32_t rank) {
  for (uint32_t i = 0; i < rank; i++) tl_strbuf_appendf(arguments, ",%%a%u", (uint32_t)first + i);
}

static void write_tma_load(tv_writer *w) {
  const tv_vector *v = w->vector;
  uint32_t rank = v->map.rank;
  bool multicast = strstr(v->name, "multicast") != NULL;
  char name[96], signature[40], bytes[16], condition[16];
  snprintf(bytes, sizeof bytes, "%ld", tv_setting(v, "bytes", 0));
  snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.%ud", rank);
  snprintf(signature, sizeof signature, "(Ppm%.*sslBBI)", (int)rank, "iiiii");
  snprintf(condition, sizeof condition, "%%a%u", rank + (multicast ? 2u : 1u));
  put_expect(w, bytes);
  tl_strbuf arguments = {0};
  tl_strbuf_append_c(&arguments, "%to,@bar,%map");
  put_coordinates(&arguments, 1, rank);
  if (multicast)
    tl_strbuf_appendf(&arguments, ",%%a%u,0,true,false,0", rank + 1);
  else
    tl_strbuf_append_c(&arguments, ",0,0,false,false,0");
  tl_strbuf_append_c(&w->body, " %to = addrspacecast ptr addrspace(3) %a0 to ptr addrspace(7)\n");
  open_if(w, condition);
  tv_call(w, "", name, signature, tl_strbuf_c(&arguments));
  close_if(w);
  tl_strbuf_fini(&arguments);
  put_wait(w);
}

static void write_tma_store(tv_writer *w) {
  const tv_vector *v = w->vector;
  uint32_t rank = v->map.rank;
  char name[96], signature[40], condition[16], op[8] = "";
  if (sscanf(v->name, "tma.reduce.%7[a-z]", op) == 1)
    snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.reduce.%s.tile.%ud", op, rank);
  else
    snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.s2g.tile.%ud", rank);
  snprintf(signature, sizeof signature, "(pm%.*slB)", (int)rank, "iiiii");
  snprintf(condition, sizeof condition, "%%a%u", rank + 1);
  tl_strbuf arguments = {0};
  tl_strbuf_append_c(&arguments, "%a0,%map");
  put_coordinates(&arguments, 1, rank);
  tl_strbuf_append_c(&arguments, ",0,false");
  open_if(w, condition);
  tv_call(w, "", name, signature, tl_strbuf_c(&arguments));
  put_commit(w);
  close_if(w);
  tl_strbuf_fini(&arguments);
}

bool tv_write_tma(tv_writer *w) {
  if (!begins(w->vector->name, "tma.")) return false;
  if (begins(w->vector->name, "tma.load"))
    write_tma_load(w);
  else
    write_tma_store(w);
  return true;
}

bool tv_write_bulk(tv_writer *w) {
  const char *name = w->vector->name;
  if (!begins(name, "bulk.")) return false;
  if (begins(name, "bulk.reduce.")) {
    char op[96];
    snprintf(op, sizeof op, "tl.cp.reduce.async.bulk.global.%s", name + strlen("bulk.reduce."));
    open_if(w, "%a3");
    tv_call(w, "", op, "(gpi)", "%a0,%a1,%a2");
    put_commit(w);
    close_if(w);
  } else if (!strcmp(name, "bulk.store")) {
    open_if(w, "%a3");
    tv_call(w, "", "llvm.nvvm.cp.async.bulk.shared.cta.to.global", "(gpilB)", "%a0,%a1,%a2,0,false");
    put_commit(w);
    close_if(w);
  } else if (!strcmp(name, "bulk.peer")) {
    put_expect(w, "%a2");
    tv_call(w, "%to", "llvm.nvvm.mapa.shared.cluster", "P(pi)", "%a0,%a3");
    tv_call(w, "%tell", "llvm.nvvm.mapa.shared.cluster", "P(pi)", "@bar,%a3");
    open_if(w, "%a4");
    tv_call(w, "", "llvm.nvvm.cp.async.bulk.shared.cta.to.cluster", "(PPpi)", "%to,%tell,%a1,%a2");
    close_if(w);
    put_wait(w);
  } else {
    bool multicast = strstr(name, "multicast") != NULL;
    put_expect(w, "%a2");
    tl_strbuf_append_c(&w->body, " %to = addrspacecast ptr addrspace(3) %a0 to ptr addrspace(7)\n");
    open_if(w, multicast ? "%a4" : "%a3");
    tv_call(w, "", "llvm.nvvm.cp.async.bulk.global.to.shared.cluster", "(PpgislBB)",
            multicast ? "%to,@bar,%a1,%a2,%a3,0,true,false" : "%to,@bar,%a1,%a2,0,0,false,false");
    close_if(w);
    put_wait(w);
  }
  return true;
}

// ---- clusters: a pointer of one's own, a rank, a value
bool tv_write_cluster(tv_writer *w) {
  const char *name = w->vector->name;
  if (!begins(name, "cluster.")) return false;
  tv_call(w, "%peer", "llvm.nvvm.mapa.shared.cluster", "P(pi)", "%a0,%a1");
  if (!strcmp(name, "cluster.exchange"))
    tl_strbuf_append_c(&w->body, " %r0 = load i32, ptr addrspace(7) %peer\n store i32 %a2, ptr addrspace(7) %peer\n");
  else if (!strcmp(name, "cluster.add"))
    tl_strbuf_append_c(&w->body, " %r0 = atomicrmw add ptr addrspace(7) %peer, i32 %a2 monotonic\n");
  else
    tv_call(w, "%r0", "llvm.nvvm.getctarank.shared.cluster", "i(P)", "%peer");
  return true;
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
};

bool tv_write_script(tv_writer *w) {
  if (strcmp(w->vector->name, "mbarrier.script")) return false;
  int results = 0, states = 0;
  for (const char *word = strchr(w->vector->setting, ' '); word; word = strchr(word + 1, ' ')) {
    char letter = word[1], arguments[64], result[32] = "";
    unsigned number = (unsigned)strtoul(word + 2, NULL, 10);
    size_t step = 0;
    while (steps[step].letter != letter) step++;
    bool of_state = letter == 's' || letter == 'p';
    snprintf(arguments, sizeof arguments, "%s%s%u", letter == 'p' ? "" : "@bar,", of_state ? "%state" : "", number);
    if (steps[step].signature[0] == 'l')
      snprintf(result, sizeof result, "%%state%d", states++);
    else if (steps[step].signature[0] == 'b')
      snprintf(result, sizeof result, "%%test%d", results);
    else
      snprintf(result, sizeof result, "%%r%d", results);
    tv_call(w, result, steps[step].name, steps[step].signature, arguments);
    if (steps[step].signature[0] == 'b')
      tl_strbuf_appendf(&w->body, " %%r%d = zext i1 %%test%d to i32\n", results, results);
    results += strchr("tsp", letter) != NULL;
  }
  return true;
}
