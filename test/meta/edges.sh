# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sourced by tests of the tree.
# object_edges BUILD: "file other symbol" for every symbol that the object of one source file takes from that of another
# one, below the working directory.
object_edges() {
  # Of the sources that are there: objects of files that are gone may lie there still.
  for module in ir passes frontend ptx llvm_backend emulator harness; do
    [ -d "$module" ] || continue
    find "$module" -name '*.c' | while read -r source; do echo "$1/$module"/CMakeFiles/*/"${source#*/}.o"; done
  done | xargs nm -gA | sed -E 's,^[^:]*/([a-z_]+)/CMakeFiles/[^/]*/([^:]*)\.o:,\1/\2 ,' | awk '{ print $1, $(NF - 1), $NF }' |
    awk '$2 != "U" { home[$3] = $1 } $2 == "U" { from[++n] = $1; symbol[n] = $3 }
    END { for (i = 1; i <= n; i++) if (symbol[i] in home) print from[i], home[symbol[i]], symbol[i] }'
}
