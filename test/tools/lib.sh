# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Shared by the tool tests: `expect RC command…` runs a command, keeps its output in $work/out and $work/err.
bin=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-tools.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
expect() {
  wanted=$1
  shift
  "$@" >"$work/out" 2>"$work/err" </dev/null
  given=$?
  if [ "$given" != "$wanted" ]; then
    fail "exit $given, expected $wanted: $*"
    sed 's/^/  | /' "$work/out" "$work/err" | head -20
  fi
}
# The last command's output (both streams) has a line that matches.
says() {
  cat "$work/out" "$work/err" | grep -q -e "$1" || {
    fail "no line matches: $1"
    sed 's/^/  | /' "$work/out" "$work/err" | head -20
  }
}
finish() {
  [ $failures = 0 ] && echo "all passed"
  exit $((failures > 0))
}
