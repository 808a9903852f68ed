#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The deliberate breaks of the compiler (scripts/break-compiler) still apply, and say what they break and which tests notice.
# Usage: breaks.sh SOURCE-DIR
set -u
cd "$1" || exit 1
command -v patch >/dev/null 2>&1 || exit 77
failures=0 count=0
fail() {
  echo "$*"
  failures=$((failures + 1))
}
for patch in test/breaks/*.patch; do
  count=$((count + 1))
  sed -n '1p' "$patch" | grep -q '^Breaks: .' || fail "$patch: the first line is not \`Breaks: what\`"
  sed -n '2p' "$patch" | grep -q '^Tests: .' || fail "$patch: the second line is not \`Tests: regular expression\`"
  [ "$(grep -c '^+++ b/' "$patch")" = 1 ] || fail "$patch: changes more than one file"
  patch --dry-run -p1 -s -f <"$patch" >/dev/null 2>&1 || fail "$patch: does not apply"
done
[ $count -ge 30 ] || fail "$count breaks, at least 30 are expected"
# Every pass that orders or places something is broken by one (select-copies by what it asks, passes/analysis).
passes=$(sed -n 's/^TL_PASS(\([a-z_]*\), "[a-z-]*", 1,.*/\1/p' passes/manager/passes.def | grep -v '^select_copies$')
for pass in $passes; do
  grep -q "^+++ b/passes/[a-z]*/${pass}[a-z_]*\.c" test/breaks/*.patch || fail "$pass: no break of it"
done
echo "$count breaks"
[ $failures = 0 ]
