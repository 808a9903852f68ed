// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One program that is every tool: the name that it is called by says which (links beside it), as they share almost all
// of their code.
#include <stdio.h>
#include <string.h>

#include "tools/cli.h"

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
  } tools[] = {
      {"tl-llc", tl_llc_main}, {"tl-run", tl_run_main}, {"tl-opt", tl_opt_main}, {"tl-golden", tl_golden_main}};
  enum { COUNT = sizeof tools / sizeof tools[0] };
  const char *path = argc > 0 && argv[0] ? argv[0] : "";
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  for (int i = 0; i < COUNT; i++)
    if (strcmp(name, tools[i].name) == 0) return tools[i].run(argc, argv);
  // Under another name the tool is the first argument: "tl tl-run …", "tl run …".
  for (int i = 0; argc > 1 && i < COUNT; i++)
    if (strcmp(argv[1], tools[i].name) == 0 || strcmp(argv[1], tools[i].name + strlen("tl-")) == 0)
      return tools[i].run(argc - 1, argv + 1);
  fprintf(stderr, "%s: call it as tl-llc, tl-run, tl-opt or tl-golden, or with one of these as the first argument\n",
          *name ? name : "tl-llc");
  return TL_EXIT_USAGE;
}
