// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What reading PTX costs: processor time of parsing, of holding it against the table, of translating it, of making
// LLVM's module, least and median of several times. Usage: ptx_time FILE [TIMES]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emulator/launch/kernel_ptx.h"
#include "ptx/table/table.h"

enum { STEPS = 4, MAX_TIMES = 1000 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// The first kernel of the text, once; milliseconds by step. False: it is not read.
static bool run(tl_str text, double out[STEPS]) {
  tl_sources sources;
  tl_diags diags;
  tl_strbuf code = {0};
  void *device = NULL;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  double start = now(), after;
  tl_ptx_module *module = tl_ptx_parse(&sources, tl_sources_add(&sources, "k.ptx", text), &diags);
  out[0] = (after = now()) - start;
  start = after;
  const tl_ptx_function *kernel = NULL;
  for (uint32_t i = 0; module && i < module->num_functions && !kernel; i++)
    if (module->functions[i]->is_entry) kernel = module->functions[i];
  bool ok = kernel && tl_ptx_check(module, kernel->name, &diags);
  out[1] = (after = now()) - start;
  start = after;
  const void **addresses = tl_xcalloc(module ? module->num_variables + 1 : 1, sizeof *addresses);
  const tl_emu_ptx_options options = {.block = {128, 1, 1}};
  tl_status status = ok ? tl_emu_ptx_translate(module, kernel->name, &options, addresses, &diags, &code) : TL_OK;
  out[2] = (after = now()) - start;
  start = after;
  if (ok && !status) status = tl_emu_ptx_module(tl_strbuf_view(&code), &device);
  out[3] = now() - start;
  ok = ok && !status;
  tl_status_free(status);
  if (device) tl_emu_ptx_dispose(device);
  free(addresses);
  tl_strbuf_fini(&code);
  tl_ptx_destroy(module);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return ok;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
  static const char *const names[STEPS] = {"parse", "check", "translate", "LLVM's module"};
  static double times[STEPS + 1][MAX_TIMES];
  int n = argc > 2 ? atoi(argv[2]) : 21;
  tl_sources files;
  uint32_t source;
  if (argc < 2 || n < 1 || n > MAX_TIMES) return 2;
  tl_sources_init(&files);
  tl_status status = tl_sources_read(&files, argv[1], 1 << 26, &source);
  bool ok = !status;
  tl_status_free(status);
  for (int i = 0; ok && i < n; i++) {
    double one[STEPS];
    ok = run(tl_sources_get(&files, source)->text, one);
    for (int s = 0; s < STEPS; s++) {
      times[s][i] = one[s];
      times[STEPS][i] += one[s];
    }
  }
  for (int s = 0; ok && s <= STEPS; s++) {
    qsort(times[s], (size_t)n, sizeof times[s][0], compare);
    printf("%-14s %7.2f ms, median %7.2f ms\n", s < STEPS ? names[s] : "all", times[s][0], times[s][n / 2]);
  }
  if (!ok) fprintf(stderr, "%s: cannot be read\n", argv[1]);
  tl_sources_fini(&files);
  return !ok;
}
