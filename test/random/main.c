// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-random-spec: writes random specs, or runs them in the emulator and reduces those that fail.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "test/random/families.h"
#include "test/random/reduce.h"
#include "test/random/run.h"

static const char usage[] =
    "Usage: tl-random-spec [options]\n"
    "Random kernel specs with references that are derived with them. A seed makes the same spec everywhere.\n\n"
    "  --seed=N           the first seed (default 1)\n"
    "  --count=N          how many, with seeds from the first on (default 1)\n"
    "  --family=NAME      only this kind of spec\n"
    "  --choices=1,2,…    replay these choices instead of a seed\n"
    "  --directory=DIR    write each spec to DIR/random_SEED.yaml\n"
    "  --run              check each spec in the emulator; failing specs are reduced and printed\n"
    "  --jobs=N           processes at a time with --run (default 2)\n"
    "  --timeout=SECONDS  of the processor, for one spec (default 60)\n"
    "  --target=NAME      for every spec (default: sm_80 and sm_90a in turns)\n"
    "  --via-ptx          run the PTX text too, which must give the same bits\n"
    "  --tries=N          of a reduction (default 400; 0: do not reduce)\n"
    "  --failures=DIR     write failing specs there, as drawn and reduced\n"
    "  --list-families --help\n"
    "Without --run and --directory the specs are printed. Exit status 1: a spec failed.\n";

typedef struct tool {
  uint64_t seed;
  uint64_t count;
  int family;  // -1: any
  tl_rspec_list replay;
  bool replays, runs;
  const char *directory, *failures, *target;
  bool via_ptx;
  int num_jobs, tries;
  double timeout_s;
  uint64_t num_failed, num_refused;
} tool;

static void make_spec(const tool *t, uint64_t seed, tl_rspec_list *out_choices, tl_strbuf *out) {
  tl_rspec_choices choices;
  tl_rspec_choices_init(&choices, seed);
  if (t->replays) tl_rspec_choices_replay(&choices, &t->replay);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_rspec_make(&choices, t->family, &text);
  tl_strbuf_clear(out);
  tl_strbuf_append(out, tl_strbuf_view(&text));
  tl_strbuf_fini(&text);
  *out_choices = choices.taken;
}

// ---- reduction

typedef struct reduction {
  const tool *t;
  const tl_rspec_run_options *options;
  const char *kind;
  tl_strbuf best;
  TL_VEC(uint64_t) passed;  // hashes of specs that do not fail this way
} reduction;

static uint64_t hash(tl_str text) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < text.len; i++) h = (h ^ (unsigned char)text.data[i]) * 1099511628211u;
  return h;
}

static bool still_fails(void *user, const tl_rspec_list *list) {
  reduction *r = user;
  tl_rspec_choices choices;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_rspec_choices_replay(&choices, list);
  tl_rspec_make(&choices, r->t->family, &text);
  tl_rspec_choices_fini(&choices);
  uint64_t key = hash(tl_strbuf_view(&text));
  bool fails = tl_str_equal(tl_strbuf_view(&text), tl_strbuf_view(&r->best)), known = fails;
  for (size_t i = 0; !known && i < r->passed.len; i++) known = r->passed.items[i] == key;
  if (!known) {
    tl_rspec_outcome outcome;
    tl_rspec_run(&text, r->options, &outcome);
    fails = outcome.failed && strcmp(outcome.kind, r->kind) == 0;
    tl_rspec_outcome_fini(&outcome);
    if (!fails) tl_vec_push(&r->passed, key);
  }
  if (fails) {
    tl_strbuf_clear(&r->best);
    tl_strbuf_append(&r->best, tl_strbuf_view(&text));
  }
  tl_strbuf_fini(&text);
  return fails;
}

static void write_file(const char *directory, const char *format, uint64_t seed, const char *text) {
  char path[1024], name[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(name, sizeof(name), format, (unsigned long long)seed);
#pragma GCC diagnostic pop
  snprintf(path, sizeof(path), "%s/%s", directory, name);
  mkdir(directory, 0777);
  FILE *file = fopen(path, "w");
  if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

static void report_failure(tool *t, uint64_t seed, const tl_rspec_run_options *options,
                           const tl_rspec_outcome *outcome) {
  tl_rspec_list choices = {0};
  reduction r = {.t = t, .options = options, .kind = outcome->kind};
  tl_strbuf_init(&r.best);
  make_spec(t, seed, &choices, &r.best);
  printf("FAILED: seed %llu (%s, %s landing): %s\n%s", (unsigned long long)seed,
         options->target ? options->target : "its target", options->early ? "early" : "late", outcome->kind,
         tl_strbuf_c(&outcome->report));
  if (t->failures) write_file(t->failures, "random_%llu.yaml", seed, tl_strbuf_c(&r.best));
  if (t->tries > 0) {
    int tries = tl_rspec_reduce(&choices, still_fails, &r, t->tries);
    printf("--- reduced in %d tries\n", tries);
    if (t->failures) write_file(t->failures, "reduced_%llu.yaml", seed, tl_strbuf_c(&r.best));
  }
  printf("%s---\n", tl_strbuf_c(&r.best));
  fflush(stdout);
  tl_vec_fini(&choices);
  tl_vec_fini(&r.passed);
  tl_strbuf_fini(&r.best);
}

// ---- running

typedef struct slot {
  bool busy;
  uint64_t seed;
  tl_rspec_run_options options;
  tl_rspec_job job;
} slot;

static void start(tool *t, slot *s, uint64_t seed) {
  tl_strbuf text;
  tl_rspec_list choices;
  tl_strbuf_init(&text);
  make_spec(t, seed, &choices, &text);
  s->busy = true;
  s->seed = seed;
  s->options = (tl_rspec_run_options){.early = seed / 2 % 2, .via_ptx = t->via_ptx, .timeout_s = t->timeout_s};
  // A spec that names a target needs at least that one.
  bool names_target = strstr(tl_strbuf_c(&text), "\ntarget: ") != NULL;
  s->options.target = t->target ? t->target : seed % 2 ? "sm_90a" : names_target ? NULL : "sm_80";
  tl_rspec_start(&text, &s->options, &s->job);
  tl_vec_fini(&choices);
  tl_strbuf_fini(&text);
}

static void run_all(tool *t) {
  slot *slots = tl_xcalloc((size_t)t->num_jobs, sizeof(slot));
  uint64_t next = 0, done = 0;
  struct timespec pause = {0, 2000000};
  while (done < t->count) {
    bool moved = false;
    for (int i = 0; i < t->num_jobs; i++) {
      slot *s = &slots[i];
      tl_rspec_outcome outcome;
      if (!s->busy && next < t->count) start(t, s, t->seed + next++);
      if (!s->busy || !tl_rspec_poll(&s->job, 0, &outcome)) continue;
      s->busy = false;
      moved = true;
      done++;
      t->num_refused += outcome.refused;
      if (outcome.failed) {
        t->num_failed++;
        report_failure(t, s->seed, &s->options, &outcome);
      }
      tl_rspec_outcome_fini(&outcome);
    }
    if (!moved) nanosleep(&pause, NULL);
  }
  free(slots);
  printf("%llu specs, %llu failed, %llu refused for want of room\n", (unsigned long long)t->count,
         (unsigned long long)t->num_failed, (unsigned long long)t->num_refused);
}

static void write_all(const tool *t) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  for (uint64_t i = 0; i < t->count; i++) {
    tl_rspec_list choices;
    make_spec(t, t->seed + i, &choices, &text);
    tl_vec_fini(&choices);
    if (t->directory) {
      write_file(t->directory, "random_%llu.yaml", t->seed + i, tl_strbuf_c(&text));
    } else {
      printf("%s%s", i ? "---\n" : "", tl_strbuf_c(&text));
    }
  }
  tl_strbuf_fini(&text);
}

static void parse_choices(tool *t, const char *text) {
  t->replays = true;
  while (*text) {
    char *end;
    tl_vec_push(&t->replay, (uint32_t)strtoul(text, &end, 10));
    if (end == text) break;
    text = *end == ',' ? end + 1 : end;
  }
}

static void fail_usage(const char *text) {
  fprintf(stderr, "tl-random-spec: %s\n%s", text, usage);
  exit(2);
}

static void parse_options(tool *t, int argc, char **argv) {
  static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                          {"count", required_argument, NULL, 'n'},
                                          {"family", required_argument, NULL, 'f'},
                                          {"choices", required_argument, NULL, 'c'},
                                          {"directory", required_argument, NULL, 'd'},
                                          {"run", no_argument, NULL, 'r'},
                                          {"jobs", required_argument, NULL, 'j'},
                                          {"timeout", required_argument, NULL, 't'},
                                          {"target", required_argument, NULL, 'T'},
                                          {"via-ptx", no_argument, NULL, 'v'},
                                          {"tries", required_argument, NULL, 'k'},
                                          {"failures", required_argument, NULL, 'F'},
                                          {"list-families", no_argument, NULL, 'l'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
  int option;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    if (option == 's') t->seed = strtoull(optarg, NULL, 10);
    if (option == 'n') t->count = strtoull(optarg, NULL, 10);
    if (option == 'c') parse_choices(t, optarg);
    if (option == 'd') t->directory = optarg;
    if (option == 'r') t->runs = true;
    if (option == 'j') t->num_jobs = atoi(optarg);
    if (option == 't') t->timeout_s = atof(optarg);
    if (option == 'T') t->target = optarg;
    if (option == 'v') t->via_ptx = true;
    if (option == 'k') t->tries = atoi(optarg);
    if (option == 'F') t->failures = optarg;
    if (option == 'f' && (t->family = tl_rspec_find_family(optarg)) < 0) fail_usage("there is no such family");
    if (option == 'h') {
      printf("%s", usage);
      exit(0);
    }
    if (option == 'l') {
      for (int i = 0; i < tl_rspec_num_families(); i++) printf("%s\n", tl_rspec_family_name(i));
      exit(0);
    }
    if (option == '?') fail_usage("see the options");
  }
  if (optind < argc || t->num_jobs < 1) fail_usage("see the options");
}

int main(int argc, char **argv) {
  tool t = {.seed = 1, .count = 1, .family = -1, .num_jobs = 2, .tries = 400, .timeout_s = 60};
  parse_options(&t, argc, argv);
  if (t.runs) {
    run_all(&t);
  } else {
    write_all(&t);
  }
  tl_vec_fini(&t.replay);
  return t.num_failed ? 1 : 0;
}
