#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# circles.sh BUILD: files of a room that refer to one another in a circle, by the symbols of their objects. Those that stay
# stand in circles.txt, with all their files and the reason; a circle that lost a file, or is none any more, is a failure
# too, so that the list says what is there. Rows of tables (rooms.txt) count no more than they do between rooms.
set -eu
here=$(dirname "$0")
. "$here/edges.sh"
object_edges "$1" | LC_ALL=C sort | awk '
  FILENAME ~ /rooms\.txt$/ { if ($1 == "table") tables[++num_tables] = $2; next }
  FILENAME ~ /circles\.txt$/ {
    if ($1 == "#" || NF == 0) next
    colon = index($0, ": ")
    listed[substr($0, 1, colon - 1)] = 1
    if (!colon || colon + 2 > length($0)) { print "circles.txt: no reason for " $0; failed = 1 }
    next
  }
  function room(file) { sub(/\/[^\/]*$/, "", file); return file }
  function name(file) { sub(/.*\//, "", file); return file }
  {
    if ($1 == $2 || room($1) != room($2)) next
    for (t = 1; t <= num_tables; t++) if (index($3, tables[t]) == 1) next
    if (!(($1, $2) in symbol)) { next_of[$1] = next_of[$1] " " $2; symbol[$1, $2] = $3 }
    if (!($1 in seen)) { seen[$1] = 1; files[++num_files] = $1 }
  }
  # All files that `from` needs, directly or by others.
  function reach(from, file,    i, n, list) {
    n = split(next_of[file], list, " ")
    for (i = 1; i <= n; i++) {
      if ((from, list[i]) in reached) continue
      reached[from, list[i]] = 1
      reach(from, list[i])
    }
  }
  END {
    for (i = 1; i <= num_files; i++) reach(files[i], files[i])
    for (i = 1; i <= num_files; i++) {
      first = files[i]
      if (done[first] || !((first, first) in reached)) continue
      circle = room(first); edges = ""; count = 0
      for (k = i; k <= num_files; k++)
        if (((first, files[k]) in reached) && ((files[k], first) in reached)) { done[files[k]] = 1; member[++count] = files[k]; circle = circle " " name(files[k]) }
      if (circle in listed) { used[circle] = 1; continue }
      print circle ": these files refer to one another in a circle"
      for (a = 1; a <= count; a++)
        for (b = 1; b <= count; b++)
          if ((member[a], member[b]) in symbol) print "  " name(member[a]) " takes " symbol[member[a], member[b]] " of " name(member[b])
      failed = 1
    }
    for (circle in listed) if (!(circle in used)) { print "circles.txt: " circle " is no circle of just these files any more"; failed = 1 }
    exit failed
  }' "$here/rooms.txt" "$here/circles.txt" -
