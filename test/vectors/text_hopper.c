// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors of several ops: wgmma, bulk copies, clusters.
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
void tv_meet(tv_writer *w) {
  if (w->vector->blocks > 1) {
    tv_call(w, "", "llvm.nvvm.barrier.cluster.arrive.aligned", "()", "");
    tv_call(w, "", "llvm.nvvm.barrier.cluster.wait.aligned", "()", "");
  } else {
    tv_call(w, "", "llvm.nvvm.barrier.cta.sync.aligned.all", "(i)", "0");
  }
}

void tv_open_if(tv_writer *w, const char *condition) {
  int n = ++w->temporaries;
  tl_strbuf_appendf(&w->body, " br i1 %s, label %%then%d, label %%join%d\nthen%d:\n", condition, n, n, n);
}

void tv_close_if(tv_writer *w) {
  tl_strbuf_appendf(&w->body, " br label %%join%d\njoin%d:\n", w->temporaries, w->temporaries);
}

void tv_put_expect(tv_writer *w, const char *bytes) {
  char arguments[64];
  snprintf(arguments, sizeof arguments, "@bar,%s", bytes);
  tv_open_if(w, "%first");
  tv_call(w, "", "llvm.nvvm.mbarrier.init.shared", "(pi)", "@bar,1");
  tv_call(w, "", "llvm.nvvm.fence.mbarrier_init.release.cluster", "()", "");
  tv_call(w, "%armed", "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", "l(pi)", arguments);
  tv_close_if(w);
  tv_meet(w);
}

void tv_put_wait_of(tv_writer *w, const char *op) {
  int n = ++w->temporaries;
  tl_strbuf_appendf(&w->body, " br label %%entry%d\nentry%d:\n br label %%again%d\nagain%d:\n", n, n, n, n);
  tl_strbuf_appendf(&w->body, " %%tries = phi i32 [ 0, %%entry%d ], [ %%tries.next, %%tried%d ]\n", n, n);
  tv_call(w, "%arrived", op, "b(pi)", "@bar,0");
  tl_strbuf_appendf(
      &w->body,
      " br i1 %%arrived, label %%over%d, label %%tried%d\ntried%d:\n %%tries.next = add i32 %%tries, 1\n"
      " %%more = icmp ult i32 %%tries.next, 100\n br i1 %%more, label %%again%d, label %%over%d\nover%d:\n"
      " %%r0 = phi i1 [ true, %%again%d ], [ false, %%tried%d ]\n",
      n, n, n, n, n, n, n, n);
}

void tv_put_wait(tv_writer *w) {
  tv_put_wait_of(w, "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta");
}

void tv_put_commit(tv_writer *w) {
  tv_call(w, "", "llvm.nvvm.cp.async.bulk.commit.group", "()", "");
  tv_call(w, "", "llvm.nvvm.cp.async.bulk.wait.group", "(I)", "0");
}

// An mbarrier of one's own that expects %a2 bytes, and in block %a3 the places %to and %tell.
static void put_peer(tv_writer *w) {
  tv_put_expect(w, "%a2");
  tv_call(w, "%to", "llvm.nvvm.mapa.shared.cluster", "P(pi)", "%a0,%a3");
  tv_call(w, "%tell", "llvm.nvvm.mapa.shared.cluster", "P(pi)", "@bar,%a3");
}

bool tv_write_bulk(tv_writer *w) {
  const char *name = w->vector->name;
  if (!begins(name, "bulk.")) return false;
  if (begins(name, "bulk.reduce.peer.")) {
    char op[96];
    snprintf(op, sizeof op, "tl.cp.reduce.async.bulk.cluster.%s", name + strlen("bulk.reduce.peer."));
    put_peer(w);
    tv_open_if(w, "%a4");
    tv_call(w, "", op, "(PpiP)", "%to,%a1,%a2,%tell");
    tv_close_if(w);
    tv_put_wait(w);
  } else if (!strcmp(name, "bulk.prefetch")) {
    tv_open_if(w, "%a2");
    tv_call(w, "", "llvm.nvvm.cp.async.bulk.prefetch.L2", "(gilB)", "%a0,%a1,0,false");
    tv_close_if(w);
  } else if (!strcmp(name, "bulk.load.cta")) {
    tv_put_expect(w, "%a2");
    tv_open_if(w, "%a3");
    tv_call(w, "", "llvm.nvvm.cp.async.bulk.global.to.shared.cta", "(ppgilB)", "%a0,@bar,%a1,%a2,0,false");
    tv_close_if(w);
    tv_put_wait(w);
  } else if (begins(name, "bulk.reduce.")) {
    char op[96];
    snprintf(op, sizeof op, "tl.cp.reduce.async.bulk.global.%s", name + strlen("bulk.reduce."));
    tv_open_if(w, "%a3");
    tv_call(w, "", op, "(gpi)", "%a0,%a1,%a2");
    tv_put_commit(w);
    tv_close_if(w);
  } else if (begins(name, "bulk.store")) {
    tv_open_if(w, "%a3");
    tv_call(w, "", "llvm.nvvm.cp.async.bulk.shared.cta.to.global", "(gpilB)", "%a0,%a1,%a2,0,false");
    if (strcmp(name, "bulk.store")) {
      tv_call(w, "", "llvm.nvvm.cp.async.bulk.commit.group", "()", "");
      tv_call(w, "", "llvm.nvvm.cp.async.bulk.wait.group.read", "(I)", "0");
    }
    tv_put_commit(w);
    tv_close_if(w);
  } else if (!strcmp(name, "bulk.peer")) {
    put_peer(w);
    tv_open_if(w, "%a4");
    tv_call(w, "", "llvm.nvvm.cp.async.bulk.shared.cta.to.cluster", "(PPpi)", "%to,%tell,%a1,%a2");
    tv_close_if(w);
    tv_put_wait(w);
  } else {
    bool multicast = strstr(name, "multicast") != NULL;
    tv_put_expect(w, "%a2");
    tl_strbuf_append_c(&w->body, " %to = addrspacecast ptr addrspace(3) %a0 to ptr addrspace(7)\n");
    tv_open_if(w, multicast ? "%a4" : "%a3");
    tv_call(w, "", "llvm.nvvm.cp.async.bulk.global.to.shared.cluster", "(PpgislBB)",
            multicast ? "%to,@bar,%a1,%a2,%a3,0,true,false" : "%to,@bar,%a1,%a2,0,0,false,false");
    tv_close_if(w);
    tv_put_wait(w);
  }
  return true;
}

// ---- clusters: a pointer of one's own, a rank, a value
bool tv_write_cluster(tv_writer *w) {
  const char *name = w->vector->name;
  if (!begins(name, "cluster.")) return false;
  if (!strcmp(name, "cluster.rank.generic")) {
    tl_strbuf_append_c(&w->body, " %anywhere = addrspacecast ptr addrspace(3) @bar to ptr\n %rank = and i32 %a0, 1\n");
    tv_call(w, "%there", "llvm.nvvm.mapa", "m(mi)", "%anywhere,%rank");
    tv_call(w, "%r0", "llvm.nvvm.getctarank", "i(m)", "%there");
    return true;
  }
  tv_call(w, "%peer", "llvm.nvvm.mapa.shared.cluster", "P(pi)", "%a0,%a1");
  if (begins(name, "cluster.meet.")) {
    bool alone = strstr(name, ".alone"), relaxed = strstr(name, ".relaxed");
    char arrive[96];
    snprintf(arrive, sizeof arrive, "llvm.nvvm.barrier.cluster.arrive%s%s", relaxed ? ".relaxed" : "",
             alone ? "" : ".aligned");
    tl_strbuf_append_c(&w->body, " store i32 %a2, ptr addrspace(7) %peer\n");
    tv_call(w, "", arrive, "()", "");
    tv_call(w, "", alone ? "llvm.nvvm.barrier.cluster.wait" : "llvm.nvvm.barrier.cluster.wait.aligned", "()", "");
    tl_strbuf_append_c(&w->body, " %r0 = load i32, ptr addrspace(3) %a0\n");
    return true;
  }
  if (!strcmp(name, "cluster.exchange"))
    tl_strbuf_append_c(&w->body, " %r0 = load i32, ptr addrspace(7) %peer\n store i32 %a2, ptr addrspace(7) %peer\n");
  else if (!strcmp(name, "cluster.add"))
    tl_strbuf_append_c(&w->body, " %r0 = atomicrmw add ptr addrspace(7) %peer, i32 %a2 monotonic\n");
  else
    tv_call(w, "%r0", "llvm.nvvm.getctarank.shared.cluster", "i(P)", "%peer");
  return true;
}
