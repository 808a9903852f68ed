// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-mutants: puts every mistake of mutants.def into the scheduled IR of specs, one at a time, and lets their own check
// cases run. A mutant that no case finds is a survivor: a gap of the checks, or equivalent (equivalent.c says why).
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/vec.h"
#include "test/mutants/equivalent.h"
#include "test/mutants/run.h"

static const char usage[] =
    "Usage: tl-mutants [options] SPEC.yaml …\n"
    "Changes the scheduled IR of each kernel at every site of every class and runs its check cases in the emulator.\n\n"
    "  --class=NAME       only this class (--list names them)\n"
    "  --site=N           only this site, from 0, with the report of its run\n"
    "  --target=NAME      compile for this target (default: the spec's)\n"
    "  --jobs=N           processes at a time (default 2)\n"
    "  --timeout=SECONDS  of the processor, for one mutant (default 60)\n"
    "  --part=K/N         only every N-th mutant, from the K-th (1 to N) on\n"
    "  --list --help\n"
    "Exit status 1: a mutant survived that is not known to be equivalent.\n";

enum { MAX_JOBS = 64 };

typedef struct tally {
  uint32_t total, found, equivalent, survived, crashed;
} tally;

typedef struct tool {
  int class;  // -1: all
  int64_t site;
  const char *target;
  int num_jobs;
  uint32_t part, num_parts;
  double timeout_s;
  uint64_t ordinal;  // of the next mutant
  tally by_class[TL_MUTANT_COUNT];
  tl_mutant_job jobs[MAX_JOBS];
} tool;

static const char *change_of(const tl_mutant_job *job) {
  const char *text = strstr(tl_strbuf_c(&job->child.output), "changed: ");
  return text ? text + strlen("changed: ") : "";
}

static void count(tool *t, const char *path, const tl_mutant_job *job, tally *all) {
  tally *mine = &t->by_class[job->class];
  const char *change = change_of(job), *reason = NULL;
  int len = (int)strcspn(change, "\n");
  mine->total++;
  all->total++;
  switch (job->verdict) {
    case TL_MUTANT_FOUND:
    case TL_MUTANT_TIMED_OUT:
      mine->found++;
      all->found++;
      break;
    case TL_MUTANT_CRASHED:
      mine->crashed++;
      all->crashed++;
      printf("CRASHED  %s: %s %u\n%s\n", path, tl_mutant_name(job->class), job->site, tl_strbuf_c(&job->child.output));
      break;
    case TL_MUTANT_SURVIVED:
      reason = tl_mutant_equivalence(path, job->class, change, (size_t)len);
      if (reason) {
        mine->equivalent++;
        all->equivalent++;
      } else {
        mine->survived++;
        all->survived++;
        printf("SURVIVED %s: %s %u: %.*s\n", path, tl_mutant_name(job->class), job->site, len, change);
      }
      break;
  }
  if (t->site >= 0) printf("%s", tl_strbuf_c(&job->child.output));
  fflush(stdout);
}

// Waits until fewer than `limit` jobs run.
static uint32_t drain(tool *t, const char *path, uint32_t running, uint32_t limit, tally *all) {
  while (running >= limit && running > 0) {
    for (uint32_t i = 0; i < running; i++) {
      if (!tl_mutant_poll(&t->jobs[i], 0.005)) continue;
      count(t, path, &t->jobs[i], all);
      tl_strbuf_fini(&t->jobs[i].child.output);
      t->jobs[i--] = t->jobs[--running];
    }
  }
  return running;
}

static bool is_chosen(tool *t, int class, uint32_t site) {
  if (t->class >= 0 && class != t->class) return false;
  if (t->site >= 0 && site != t->site) return false;
  return t->ordinal++ % t->num_parts == t->part - 1;
}

static bool run_kernel(tool *t, const char *path, uint32_t kernel, tally *all) {
  tl_mutant_setup setup = {.path = path, .target = t->target, .kernel = kernel, .timeout_s = t->timeout_s};
  uint32_t sites[TL_MUTANT_COUNT], running = 0;
  tl_strbuf output;
  tl_strbuf_init(&output);
  bool is_good = tl_mutant_baseline(&setup, sites, &output);
  if (!is_good) printf("%s does not pass its own checks:\n%s\n", path, tl_strbuf_c(&output));
  tl_strbuf_fini(&output);
  for (int class = 0; class < TL_MUTANT_COUNT && is_good; class ++) {
    for (uint32_t site = 0; site < sites[class]; site++) {
      if (!is_chosen(t, class, site)) continue;
      running = drain(t, path, running, (uint32_t)t->num_jobs, all);
      t->jobs[running] = (tl_mutant_job){.class = (tl_mutant_class) class, .site = site};
      tl_mutant_start(&setup, &t->jobs[running++]);
    }
  }
  drain(t, path, running, 1, all);
  return is_good;
}

static int parse_class(const char *name) {
  for (int k = 0; k < TL_MUTANT_COUNT; k++)
    if (!strcmp(name, tl_mutant_name((tl_mutant_class)k))) return k;
  fprintf(stderr, "tl-mutants: there is no class '%s'\n", name);
  exit(2);
}

static void parse_part(tool *t, const char *text) {
  char rest;
  if (sscanf(text, "%u/%u%c", &t->part, &t->num_parts, &rest) == 2 && t->part >= 1 && t->part <= t->num_parts) return;
  fprintf(stderr, "tl-mutants: --part takes K/N with K from 1 to N\n");
  exit(2);
}

static long parse_number(const char *text, long lowest, long highest) {
  char *end;
  long value = strtol(text, &end, 10);
  if (*text && !*end && value >= lowest && value <= highest) return value;
  fprintf(stderr, "tl-mutants: '%s' is no number from %ld to %ld\n", text, lowest, highest);
  exit(2);
}

static void parse_options(tool *t, int argc, char **argv) {
  enum { CLASS = 256, SITE, TARGET, JOBS, TIMEOUT, PART, LIST, HELP };
  static const struct option options[] = {{"class", required_argument, 0, CLASS},
                                          {"site", required_argument, 0, SITE},
                                          {"target", required_argument, 0, TARGET},
                                          {"jobs", required_argument, 0, JOBS},
                                          {"timeout", required_argument, 0, TIMEOUT},
                                          {"part", required_argument, 0, PART},
                                          {"list", no_argument, 0, LIST},
                                          {"help", no_argument, 0, HELP},
                                          {0}};
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
      case CLASS:
        t->class = parse_class(optarg);
        break;
      case SITE:
        t->site = parse_number(optarg, 0, 1 << 30);
        break;
      case TARGET:
        t->target = optarg;
        break;
      case JOBS:
        t->num_jobs = (int)parse_number(optarg, 1, MAX_JOBS);
        break;
      case TIMEOUT:
        t->timeout_s = (double)parse_number(optarg, 1, 3600);
        break;
      case PART:
        parse_part(t, optarg);
        break;
      case LIST:
        for (int k = 0; k < TL_MUTANT_COUNT; k++)
          printf("%-18s %s\n", tl_mutant_name((tl_mutant_class)k), tl_mutant_doc((tl_mutant_class)k));
        exit(0);
      case HELP:
        fputs(usage, stdout);
        exit(0);
      default:
        fputs(usage, stderr);
        exit(2);
    }
  }
}

int main(int argc, char **argv) {
  static tool t = {.class = -1, .site = -1, .num_jobs = 2, .part = 1, .num_parts = 1, .timeout_s = 60};
  tally all = {0};
  bool is_good = true;
  parse_options(&t, argc, argv);
  for (int i = optind; i < argc; i++) {
    uint32_t kernels = tl_mutant_num_kernels(argv[i]);
    bool is_checked = false;
    for (uint32_t k = 0; k < kernels; k++) {
      if (!tl_mutant_is_checked(argv[i], k)) continue;
      is_checked = true;
      is_good = run_kernel(&t, argv[i], k, &all) && is_good;
    }
    is_good = is_good && is_checked;
  }
  printf("%-18s %7s %7s %10s %8s\n", "class", "mutants", "found", "equivalent", "survived");
  for (int k = 0; k < TL_MUTANT_COUNT; k++) {
    const tally *c = &t.by_class[k];
    if (c->total)
      printf("%-18s %7u %7u %10u %8u\n", tl_mutant_name((tl_mutant_class)k), c->total, c->found, c->equivalent,
             c->survived);
  }
  uint32_t rest = all.total - all.equivalent;
  printf("mutants: %u of %u that are not equivalent were found (%.1f %%), %u survived, %u crashed\n", all.found, rest,
         rest ? 100.0 * all.found / rest : 100.0, all.survived, all.crashed);
  return !is_good || all.survived || all.crashed;
}
