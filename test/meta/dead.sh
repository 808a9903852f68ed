#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Nothing is kept that nobody uses: public functions that only their own file or tests call (by the symbols of objects),
# attributes that no pass sets or nobody reads, values of enumerations, diagnostics and device operations that no code names.
# A row of dead.txt, "KIND NAME: reason" (in NAME `*` stands for any letters, `?` for one), allows one, and is a failure once it
# allows none. Usage, in the source tree: dead.sh BUILD-DIRECTORY
set -eu
build=$1
here=$(dirname "$0")
modules='support ptx ir frontend passes llvm_backend emulator runtime harness tools'
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-dead.XXXXXX")
trap 'rm -rf "$work"' EXIT

# What the sources name, as words: "count word".
# shellcheck disable=SC2086 # a list of folders
find $modules -name '*.[chS]' -exec cat {} + | sed 's,//.*,,' | grep -oE '\bTL_[A-Z0-9_]+' | sort | uniq -c >"$work/words"
unnamed() { awk 'NR == FNR { named[$2]; next } !($2 in named)' "$work/words" -; }

functions() {
  for module in $modules; do
    find "$module" -name '*.c' -o -name '*.S' | while read -r source; do
      for object in "$build/$module"/CMakeFiles/*/"${source#*/}.o"; do
        [ ! -f "$object" ] || echo "$object"
      done
    done
  done | xargs nm -A | sed -E 's,^[^:]*/([a-z_]+)/CMakeFiles/[^/]*/([^:]*)\.o:,\1/\2 ,' | awk '{ print $1, $(NF - 1), $NF }' |
    awk '$2 == "T" { home[$3] = $1 } $2 == "U" { used[$3] } END { for (s in home) if (!(s in used)) print "function", s }' |
    awk 'NR == FNR { api[$1]; next } !($2 in api)' "$work/api" -
}
# The programs' entry and what libtl offers.
{ echo main; grep -rhoE '\btl_[a-z0-9_]+ *\(' include/tl | tr -d ' ('; } >"$work/api"

# A key is set where it is an argument of a setter or the key of a new attribute; every other mention reads it.
attributes() {
  # shellcheck disable=SC2086
  find $modules -name '*.[ch]' -exec cat {} + | sed 's,//.*,,' | tr '\n' ' ' | sed 's/[;{}]/&\n/g' | grep TL_ATTR_ |
    grep -oE '((set|put|add)_[a-z_]*\(.*)?TL_ATTR_[A-Z0-9_]+|\.key = TL_ATTR_[A-Z0-9_]+' | awk '
      { sets = /^(\.key|set|put|add)/; while (match($0, /TL_ATTR_[A-Z0-9_]+/)) {
          mention[substr($0, RSTART, RLENGTH) " " (sets ? "set" : "read")]; $0 = substr($0, RSTART + RLENGTH) } }
      END { for (m in mention) print m }' >"$work/mentions"
  sed -n 's/^TL_ATTR[_INTS]*(\([A-Z0-9_]*\),.*/\1/p' ir/attrs.def | while read -r key; do
    grep -qx "TL_ATTR_$key set" "$work/mentions" || echo "attribute-not-set TL_ATTR_$key"
    grep -qx "TL_ATTR_$key read" "$work/mentions" || echo "attribute-not-read TL_ATTR_$key"
    grep -qw "$key" ir/ops.def || echo "attribute-of-no-op TL_ATTR_$key"
  done
}

table() { printf '#define %s\n#include "%s"\n' "$1" "$2" | ${CC:-cc} -E -P -I. -x c - | sed 's/@/\n/g' | awk -v kind="$3" 'NF { print kind, $1 }'; }
{
  functions
  attributes
  table 'TL_DIAG(ID, ...) @ TL_DIAG_##ID' support/diag.def diagnostic | unnamed
  table 'TL_DEVICE_OP(ID, ...) @ TL_DEVOP_##ID' llvm_backend/device/device_ops.def device-op | unnamed
  sed -n 's/^TL_IR_ENUM_VALUE(\([A-Z_]*\), \([A-Z0-9_]*\),.*/value TL_\1_\2/p' ir/enums.def | unnamed
} | sort >"$work/found"

awk '
  FILENAME ~ /dead\.txt$/ {
    if ($0 ~ /^#/ || !NF) next
    if (!match($0, /: ./)) { print "dead.txt: no reason: " $0; failed = 1; next }
    row[++rows] = substr($0, 1, RSTART - 1); pattern[rows] = row[rows]
    gsub(/\?/, "[A-Za-z0-9_]", pattern[rows])
    gsub(/\*/, "[A-Za-z0-9_]*", pattern[rows])
    next
  }
  {
    allowed = 0
    for (i = 1; i <= rows; i++) if ($0 ~ ("^" pattern[i] "$")) allowed = used[i] = 1
    if (allowed) next
    print $0 ": nobody uses it (take it out, make it static, or give the reason in test/meta/dead.txt)"; failed = 1
  }
  END {
    for (i = 1; i <= rows; i++) if (!used[i]) { print "dead.txt: " row[i] " allows nothing any more"; failed = 1 }
    exit failed
  }' "$here/dead.txt" "$work/found"
