#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# rooms.sh includes | rooms.sh symbols <build directory>: the order of rooms of rooms.txt, by what files include and by
# what their objects refer to. A known exception stands in rooms_exceptions.txt with its reason, and is a failure once it
# is none.
set -eu
mode=$1
here=$(dirname "$0")
. "$here/edges.sh"
edges() {
  if [ "$mode" = includes ]; then
    grep -rsnoE '^#include "[a-z_]+/[^"]*"' --include='*.[ch]' --include='*.def' --include='*.S' ir passes frontend ptx llvm_backend emulator harness |
      sed -E 's/^([^:]*):[0-9]+:#include "([^"]*)"$/\1 \2/'
  else
    object_edges "$2"
  fi
}
edges "$@" | awk -v mode="$mode" '
  FILENAME ~ /rooms\.txt$/ {
    if ($1 == "rooms") for (i = 3; i <= NF; i++) { count = split($i, side, "+"); for (s = 1; s <= count; s++) { joined = split(side[s], part, "="); for (j = 1; j <= joined; j++) { rank[$2, part[j]] = i; first[$2, part[j]] = part[1] } known[$2] = 1 } }
    if ($1 == "table") tables[++num_tables] = $2
    next
  }
  FILENAME ~ /exceptions\.txt$/ { if ($1 == mode) { sub(/:$/, "", $3); allowed[$2 " " $3] = 1 }; next }
  # The folder in which the two files lie in different rooms: both lie in it, and it has rooms of its own.
  {
    num_a = split($1, parts_a, "/"); num_b = split($2, parts_b, "/")
    m = parts_a[1]
    if (m != parts_b[1] || !(m in known)) next
    for (depth = 2; ; depth++) {
      a = depth < num_a ? parts_a[depth] : "."; b = depth < num_b ? parts_b[depth] : "."
      if (a != b) break
      if (!((m "/" a) in known)) next
      m = m "/" a
    }
    for (t = 1; t <= num_tables; t++) if (index($3, tables[t]) == 1) next
    if (!((m, a) in rank) || !((m, b) in rank)) { print "rooms.txt has no room for " $1 " or " $2; failed = 1; next }
    if (rank[m, b] < rank[m, a] || first[m, a] == first[m, b]) next
    if (($1 " " $2) in allowed) { used[$1 " " $2] = 1; next }
    print $1 ": the room " a " may not know " $2 " of " b ($3 == "" ? "" : " (" $3 ")"); failed = 1
  }
  END {
    for (pair in allowed) if (!(pair in used)) { print "rooms_exceptions.txt: " mode " " pair " is no exception any more"; failed = 1 }
    exit failed
  }' "$here/rooms.txt" "$here/rooms_exceptions.txt" -
