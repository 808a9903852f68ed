// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbarriers: every form of every operation once, by one thread, named by LLVM's names.
#include <stdio.h>
#include <string.h>

#include "record.h"

// What the operation is executed on, and what comes before and behind it; results are whether phases are complete.
typedef enum kind { ARRIVE, ARRIVE_TX, EXPECT, COMPLETE, TEST, TRY } kind;
typedef struct form {
  const char *name, *ptx;  // the operation alone
  kind kind;
  bool drops, has_parity, has_limit;
} form;

static const form forms[] = {
    {"arrive", "arrive", ARRIVE},
    {"arrive.drop", "arrive_drop", ARRIVE, true},
    {"arrive.expect.tx", "arrive.expect_tx", ARRIVE_TX},
    {"arrive.drop.expect.tx", "arrive_drop.expect_tx", ARRIVE_TX, true},
    {"expect.tx", "expect_tx", EXPECT},
    {"complete.tx", "complete_tx", COMPLETE},
    {"test.wait", "test_wait", TEST},
    {"test.wait.parity", "test_wait.parity", TEST, .has_parity = true},
    {"try.wait", "try_wait", TRY},
    {"try.wait.tl", "try_wait", TRY, .has_limit = true},
    {"try.wait.parity", "try_wait.parity", TRY, .has_parity = true},
    {"try.wait.parity.tl", "try_wait.parity", TRY, .has_parity = true, .has_limit = true},
};
#define ASK(RESULT, PARITY) \
  "mbarrier.test_wait.parity.shared::cta.b64 %p1,[bar]," PARITY "; selp.u32 " RESULT ",1,0,%p1; "

// Two arrivals complete the first phase, the second needs two again, or one when one was dropped.
static void put_arrival(char *body, const char *op) {
  sprintf(body + strlen(body), "mbarrier.init.shared::cta.b64 [bar],2; %s%s%s%s%s%s", op, ASK("$0", "0"),
          "mbarrier.arrive.shared::cta.b64 _,[bar]; ", ASK("$1", "0"), "mbarrier.arrive.shared::cta.b64 _,[bar]; ",
          ASK("$2", "1"));
}

static void record(const form *f, bool relaxed, bool cluster_scope, bool cluster_space) {
  bool waits = f->kind >= TEST, counts_bytes = f->kind == EXPECT || f->kind == COMPLETE;
  if ((waits && cluster_space) || (counts_bytes && relaxed)) return;  // no such forms
  char name[128], op[320], body[1536] = "";
  const char *scope = cluster_scope ? "cluster" : "cta", *space = cluster_space ? "cluster" : "cta";
  sprintf(name, "mbarrier.form.%s%s.scope.%s.space.%s", f->name, relaxed ? ".relaxed" : "", scope, space);
  sprintf(op, "mbarrier.%s.%s.%s.shared::%s.b64 ", f->ptx,
          relaxed || counts_bytes ? "relaxed"
          : waits                 ? "acquire"
                                  : "release",
          scope, space);
  if (waits) {
    sprintf(op + strlen(op), "%%p1,[bar],%s%s; selp.u32 $0,1,0,%%p1; ", f->has_parity ? "0" : "state",
            f->has_limit ? ",1000" : "");
    sprintf(
        body,
        ".reg .b64 state; mbarrier.init.shared::cta.b64 [bar],1; mbarrier.arrive.shared::cta.b64 state,[bar]; %s%s%s",
        op, ASK("$1", "0"), ASK("$2", "1"));
  } else if (counts_bytes) {
    strcat(op, "[bar],16; ");
    const char *other = f->kind == EXPECT ? "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar],16; "
                                          : "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar],16; ";
    sprintf(body, "mbarrier.init.shared::cta.b64 [bar],1; %s%s%s%s%s%s", f->kind == EXPECT ? op : other,
            f->kind == EXPECT ? "mbarrier.arrive.shared::cta.b64 _,[bar]; " : "", ASK("$0", "0"),
            f->kind == EXPECT ? other : op, f->kind == EXPECT ? "" : "mbarrier.arrive.shared::cta.b64 _,[bar]; ",
            ASK("$1", "0") ASK("$2", "1"));
  } else {
    sprintf(op + strlen(op), "_,[bar],%s; %s", f->kind == ARRIVE_TX ? "16" : "1",
            f->kind == ARRIVE_TX ? "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar],16; " : "");
    put_arrival(body, op);
  }
  rec_run(&(rec_vector){.name = name, .signature = "iii()", .body = body, .threads = 1});
}

void rec_all_mbarrier(void) {
  rec_file("mbarrier");
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
    for (int bits = 0; bits < 8; bits++) record(&forms[i], bits & 1, bits & 2, bits & 4);
}
