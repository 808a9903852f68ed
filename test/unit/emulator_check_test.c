// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checker's core without a kernel: threads of one block take turns by hand.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/sanitize/sanitizer.h"

enum { THREADS = 64, SHARED_BYTES = 1024, SITES = 8 };

typedef struct machine {
  tl_emu_worker worker;
  tl_emu_launch_state launch;
  tl_emu_block block;
  tl_emu_cluster cluster;
  tl_emu_fiber fibers[THREADS];
  tl_emu_site sites[SITES];
  tl_emu_raw_list found;
  tl_debug_info debug;
} machine;

static void machine_init(machine *m) {
  static const char *const ops[SITES] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  memset(m, 0, sizeof *m);
  for (int i = 0; i < SITES; i++) m->sites[i] = (tl_emu_site){.op = ops[i], .ordinal = (uint32_t)i + 1};
  m->launch = (tl_emu_launch_state){.kernel_name = "k",
                                    .grid = {1, 1, 1},
                                    .cluster = {1, 1, 1},
                                    .cluster_size = 1,
                                    .num_threads = THREADS,
                                    .num_workers = 1,
                                    .shared_bytes = SHARED_BYTES,
                                    .shared_granule = 4,
                                    .checks = TL_EMU_SANITIZE_ALL,
                                    .sites = m->sites,
                                    .num_sites = SITES,
                                    .debug = &m->debug,
                                    .found = &m->found};
  m->launch.global = tl_emu_global_create(m->launch.checks, 4);
  ck_assert(!tl_emu_memory_acquire(1, &m->worker.memory));
  uint8_t *shared;
  ck_assert(!tl_emu_memory_set_shared(m->worker.memory, 1, SHARED_BYTES, 16, &shared));
  m->worker.launch = &m->launch;
  m->worker.block = m->worker.blocks = m->cluster.blocks = &m->block;
  m->worker.clusters = &m->cluster;
  m->worker.num_blocks = m->worker.num_clusters = 1;
  m->worker.num_threads = THREADS;
  m->block.worker = &m->worker;
  m->block.cluster = &m->cluster;
  m->block.shared = shared;
  m->block.num_live = THREADS;
  for (int i = 0; i < THREADS; i++) {
    m->fibers[i].block = &m->block;
    m->fibers[i].thread = (uint16_t)i;
  }
  m->worker.current = m->fibers;
  tl_emu_self = &m->worker;
  tl_emu_sanitize_hooks.create_cluster(&m->cluster);
  tl_emu_sanitize_hooks.begin_cluster(&m->cluster);
}

static void on(machine *m, int thread) {
  m->worker.current = &m->fibers[thread];
}

static void touch(machine *m, int thread, int offset, tl_emu_access_kind kind, int site) {
  on(m, thread);
  ck_assert(tl_emu_touch(m->block.shared + offset, 4, 4, kind, &m->sites[site]));
}

// Ends the block; its findings.
static tl_emu_findings machine_end(machine *m) {
  tl_emu_sanitize_hooks.end_cluster(&m->cluster, true);
  tl_emu_sanitize_hooks.destroy_cluster(&m->cluster);
  tl_emu_findings findings = {0};
  tl_emu_report_found(&m->launch, &findings);
  tl_emu_global_destroy(m->launch.global);
  tl_emu_memory_release(m->worker.memory);
  tl_emu_self = NULL;
  return findings;
}

// Ends the block; the findings must be `wanted`: letters of both sites and the kind, "ab:race".
static void machine_fini(machine *m, const char *wanted) {
  tl_emu_findings findings = machine_end(m);
  tl_strbuf text;
  tl_strbuf_init(&text);
  for (size_t i = 0; i < findings.list.len; i++) {
    const tl_emu_finding *finding = &findings.list.items[i];
    tl_strbuf_appendf(&text, "%s%s%s:%s", i ? " " : "", finding->now.op, finding->before.op ? finding->before.op : "",
                      tl_emu_finding_kind_name(finding->kind));
  }
  ck_assert_str_eq(tl_strbuf_c(&text), wanted);
  tl_strbuf_fini(&text);
  tl_emu_findings_fini(&findings);
}

START_TEST(phases_are_apart) {
  machine m;
  machine_init(&m);
  tl_emu_clock *phases[2] = {0};
  touch(&m, 0, 0, TL_EMU_WRITE, 0);
  tl_emu_release(0, &phases[0]);
  touch(&m, 0, 4, TL_EMU_WRITE, 1);
  tl_emu_release(0, &phases[1]);
  tl_emu_acquire(1, &phases[0]);
  touch(&m, 1, 0, TL_EMU_READ, 2);
  touch(&m, 1, 4, TL_EMU_READ, 3);  // only the second phase tells of it
  tl_emu_acquire(2, &phases[1]);
  touch(&m, 2, 4, TL_EMU_READ, 4);
  machine_fini(&m, "db:race");
}
END_TEST

START_TEST(clocks_start_again) {
  machine m;
  machine_init(&m);
  tl_emu_clock *clock = NULL;
  touch(&m, 0, 0, TL_EMU_WRITE, 0);
  tl_emu_release(0, &clock);
  tl_emu_clock_reset(&clock);
  tl_emu_release(3, &clock);
  tl_emu_acquire(1, &clock);
  touch(&m, 1, 0, TL_EMU_READ, 1);
  machine_fini(&m, "ba:race");
}
END_TEST

// What one learned, others learn from it.
START_TEST(order_is_transitive) {
  machine m;
  machine_init(&m);
  tl_emu_clock *first = NULL, *second = NULL;
  touch(&m, 0, 0, TL_EMU_WRITE, 0);
  tl_emu_release(0, &first);
  tl_emu_acquire(1, &first);
  tl_emu_release(1, &second);
  tl_emu_acquire(40, &second);
  touch(&m, 40, 0, TL_EMU_WRITE, 1);
  touch(&m, 1, 0, TL_EMU_READ, 2);
  machine_fini(&m, "cb:race");
}
END_TEST

START_TEST(readers_count) {
  machine m;
  machine_init(&m);
  tl_emu_clock *all = NULL;
  touch(&m, 0, 0, TL_EMU_WRITE, 0);
  tl_emu_release(0, &all);
  for (int t = 1; t < 4; t++) {
    tl_emu_acquire((uint32_t)t, &all);
    touch(&m, t, 0, TL_EMU_READ, t);
  }
  tl_emu_clock *two = NULL;
  for (uint32_t t = 1; t < 3; t++) tl_emu_release(t, &two);
  tl_emu_acquire(0, &two);
  touch(&m, 0, 0, TL_EMU_WRITE, 4);  // thread 3 may still read
  machine_fini(&m, "ed:race");
}
END_TEST

// Whichever of many readers the writer does not know of, it is told; and again after the write.
START_TEST(no_reader_is_forgotten) {
  enum { READERS = 40 };
  for (int missing = 0; missing <= READERS; missing++) {  // 0: none
    machine m;
    machine_init(&m);
    for (int round = 0; round < 2; round++) {
      tl_emu_clock *before = NULL, *after = NULL;
      touch(&m, 0, 8, TL_EMU_WRITE, 0);
      tl_emu_release(0, &before);
      for (int t = 1; t <= READERS; t++) {
        tl_emu_acquire((uint32_t)t, &before);
        for (int again = 0; again < 2; again++) {
          touch(&m, t, 8, TL_EMU_READ, 1);
          tl_emu_fence_proxy_async((uint32_t)t, TL_EMU_PROXY_ALL);  // a later moment
        }
      }
      for (int t = 1; t <= READERS; t++)
        if (t != missing || round == 0) tl_emu_release((uint32_t)t, &after);
      tl_emu_acquire(0, &after);
    }
    touch(&m, 0, 8, TL_EMU_WRITE, 2);
    machine_fini(&m, missing ? "cb:race" : "");
  }
}
END_TEST

// 1000 places are told, the rest is counted; what happens at one place again is counted there.
START_TEST(places_beyond_the_limit) {
  enum { PLACES = 1200, TOLD = 1000, AGAIN = 5000 };
  machine m;
  machine_init(&m);
  tl_emu_site *sites = calloc(PLACES, sizeof *sites);
  m.launch.sites = sites;
  m.launch.num_sites = PLACES;
  for (int i = 0; i < PLACES; i++) {
    sites[i] = (tl_emu_site){.op = "x", .ordinal = (uint32_t)i + 1};
    ck_assert(!tl_emu_touch(m.block.shared + 1, 4, 4, TL_EMU_READ, &sites[i]));
  }
  for (int i = 0; i < AGAIN; i++) ck_assert(!tl_emu_touch(m.block.shared + 1, 4, 4, TL_EMU_READ, &sites[7]));
  tl_emu_findings findings = machine_end(&m);
  ck_assert_uint_eq(findings.list.len, TOLD);
  ck_assert_uint_eq(findings.list.items[7].count, 1 + AGAIN);
  ck_assert_uint_eq(findings.untold, PLACES - TOLD);
  tl_strbuf text = {0}, json = {0};
  tl_emu_findings_print(&findings, 1, &text);
  ck_assert(strstr(tl_strbuf_c(&text), "and 999 more\nand, at further places that are not told, 200 accesses\n") !=
            NULL);
  tl_emu_findings_print_json(&findings, &json);
  ck_assert(strstr(tl_strbuf_c(&json), "\n], \"untold\": 200}\n") != NULL);
  tl_strbuf_fini(&text);
  tl_strbuf_fini(&json);
  tl_emu_findings_fini(&findings);
  free(sites);
}
END_TEST

START_TEST(copies_in_flight) {
  machine m;
  machine_init(&m);
  tl_emu_clock *full = NULL;
  on(&m, 0);
  tl_emu_async *load = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, &m.sites[0]);
  ck_assert(tl_emu_touch_async(load, m.block.shared, 64, 16, TL_EMU_WRITE));
  tl_emu_async *other = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, &m.sites[1]);
  ck_assert(tl_emu_touch_async(other, m.block.shared + 64, 64, 16, TL_EMU_WRITE));
  touch(&m, 0, 0, TL_EMU_READ, 2);  // even its issuer has to wait
  tl_emu_async_complete(load, &full);
  tl_emu_async_end(load, true);
  tl_emu_acquire(5, &full);
  touch(&m, 5, 4, TL_EMU_READ, 3);
  touch(&m, 5, 64, TL_EMU_READ, 4);  // of the other copy nothing is known
  tl_emu_async_end(other, false);
  machine_fini(&m, "ca:race eb:race b:unawaited operation");
}
END_TEST

START_TEST(a_stage_is_reused_too_early) {
  machine m;
  machine_init(&m);
  tl_emu_clock *full = NULL, *empty = NULL;
  on(&m, 0);
  tl_emu_async *load = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, &m.sites[0]);
  ck_assert(tl_emu_touch_async(load, m.block.shared, 16, 16, TL_EMU_WRITE));
  tl_emu_async_complete(load, &full);
  tl_emu_async_end(load, true);
  for (uint32_t t = 32; t < 34; t++) {
    tl_emu_acquire(t, &full);
    touch(&m, (int)t, 0, TL_EMU_READ, 1 + (int)t - 32);
  }
  tl_emu_release(32, &empty);  // 33 forgets
  on(&m, 0);
  tl_emu_acquire(0, &empty);
  load = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, &m.sites[3]);
  ck_assert(tl_emu_touch_async(load, m.block.shared, 16, 16, TL_EMU_WRITE));
  tl_emu_async_end(load, true);
  machine_fini(&m, "dc:race");
}
END_TEST

START_TEST(proxy_fences) {
  for (int fenced = 0; fenced < 3; fenced++) {  // not; before the write, which is too early; after it
    machine m;
    machine_init(&m);
    tl_emu_clock *barrier = NULL;
    if (fenced == 1) tl_emu_fence_proxy_async(1, TL_EMU_PROXY_ALL);
    touch(&m, 1, 0, TL_EMU_WRITE, 0);
    if (fenced == 2) tl_emu_fence_proxy_async(1, TL_EMU_PROXY_ALL);
    tl_emu_release(1, &barrier);
    tl_emu_acquire(0, &barrier);
    on(&m, 0);
    tl_emu_async *store = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, &m.sites[1]);
    ck_assert(tl_emu_touch_async(store, m.block.shared, 4, 4, TL_EMU_READ));
    tl_emu_async_end(store, true);
    machine_fini(&m, fenced == 2 ? "" : "ba:missing proxy fence");
  }
}
END_TEST

// A fence after what orders the two comes too late; one by the issuer for its own writes is enough.
START_TEST(late_proxy_fences) {
  machine m;
  machine_init(&m);
  tl_emu_clock *barrier = NULL;
  touch(&m, 1, 0, TL_EMU_WRITE, 0);
  tl_emu_release(1, &barrier);
  tl_emu_fence_proxy_async(1, TL_EMU_PROXY_ALL);
  tl_emu_acquire(0, &barrier);
  touch(&m, 0, 4, TL_EMU_WRITE, 1);
  tl_emu_fence_proxy_async(0, TL_EMU_PROXY_ALL);
  tl_emu_async *store = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, &m.sites[2]);
  ck_assert(tl_emu_touch_async(store, m.block.shared + 4, 4, 4, TL_EMU_READ));
  ck_assert(tl_emu_touch_async(store, m.block.shared, 4, 4, TL_EMU_READ));
  tl_emu_async_end(store, true);
  machine_fini(&m, "ca:missing proxy fence");
}
END_TEST

START_TEST(cp_async_by_groups) {
  machine m;
  machine_init(&m);
  tl_emu_clock *barrier = NULL;
  on(&m, 0);
  for (int group = 0; group < 3; group++) {
    ck_assert(tl_emu_touch_copy(m.block.shared + 16 * group, 16, 16, &m.sites[0]));
    tl_emu_copies_commit();
  }
  tl_emu_copies_wait(1);  // the first two
  touch(&m, 0, 16, TL_EMU_READ, 1);
  touch(&m, 0, 32, TL_EMU_READ, 2);
  tl_emu_release(0, &barrier);
  tl_emu_acquire(1, &barrier);
  touch(&m, 1, 0, TL_EMU_READ, 3);
  touch(&m, 1, 32, TL_EMU_READ, 4);
  on(&m, 0);
  tl_emu_clock *full = NULL;
  tl_emu_copies_complete(&full);
  tl_emu_acquire(2, &full);
  touch(&m, 2, 36, TL_EMU_READ, 5);
  on(&m, 0);
  tl_emu_copies_wait_all();
  tl_emu_sanitize_hooks.end_thread(m.worker.current);
  machine_fini(&m, "ca:race ea:race");
}
END_TEST

START_TEST(warps_meet) {
  machine m;
  machine_init(&m);
  tl_emu_warp *warp = &m.block.warps[1];
  warp->index = 1;
  touch(&m, 32, 0, TL_EMU_WRITE, 0);
  touch(&m, 33, 4, TL_EMU_WRITE, 1);
  tl_emu_sanitize_meet(warp, 0x5);
  touch(&m, 34, 0, TL_EMU_READ, 2);
  touch(&m, 34, 4, TL_EMU_READ, 3);  // lane 1 was not there
  machine_fini(&m, "db:race");
}
END_TEST

// Two tiles in the same memory at different times: rows of 8 bytes and 8 of padding, and 64 bytes of elements. A byte
// is padding or not by the tiles of the line that reads it; where nothing is known of the line, by all.
START_TEST(padding_is_of_the_tiles_of_the_line) {
  tl_debug_tile tiles[2] = {
      {.name = "rows", .bytes = 64, .depth = 1, .dtype = TL_DTYPE_I32, .rank = 2, .dims = {4, 2}, .layout = {16, 0, 0}},
      {.name = "dense", .bytes = 64, .depth = 1, .dtype = TL_DTYPE_I32, .rank = 1, .dims = {16}, .layout = {64, 0, 0}}};
  tl_debug_use uses[] = {{1, 0}, {2, 1}, {3, 0}, {3, 1}};
  tl_debug_source source = {.name = "k.yaml"};
  static const struct {
    uint32_t line;
    int offset;
    const char *findings;
  } reads[] = {{1, 8, ""},
               {1, 0, "a:uninitialised read"},
               {2, 8, "a:uninitialised read"},
               {3, 24, "a:uninitialised read"},
               {4, 24, "a:uninitialised read"},
               {1, 60, ""}};
  for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
    machine m;
    machine_init(&m);
    m.debug = (tl_debug_info){
        .sources = &source, .num_sources = 1, .tiles = tiles, .num_tiles = 2, .uses = uses, .num_uses = 4};
    m.sites[0].file = "k.yaml";
    m.sites[0].line = reads[i].line;
    touch(&m, 0, reads[i].offset, TL_EMU_READ, 0);
    machine_fini(&m, reads[i].findings);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator check");
  TCase *cases = tcase_create("check");
  tcase_add_test(cases, phases_are_apart);
  tcase_add_test(cases, clocks_start_again);
  tcase_add_test(cases, order_is_transitive);
  tcase_add_test(cases, readers_count);
  tcase_add_test(cases, no_reader_is_forgotten);
  tcase_add_test(cases, places_beyond_the_limit);
  tcase_add_test(cases, copies_in_flight);
  tcase_add_test(cases, a_stage_is_reused_too_early);
  tcase_add_test(cases, proxy_fences);
  tcase_add_test(cases, late_proxy_fences);
  tcase_add_test(cases, cp_async_by_groups);
  tcase_add_test(cases, warps_meet);
  tcase_add_test(cases, padding_is_of_the_tiles_of_the_line);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
