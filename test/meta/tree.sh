#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every source file carries its licence line and stays readable in size; no work is left as a note in the code.
set -eu
failed=0
sources=$(find include support ptx frontend ir passes llvm_backend emulator runtime harness tools test examples \
  \( -name '*.c' -o -name '*.h' -o -name '*.def' -o -name '*.S' -o -name '*.cpp' \) 2>/dev/null | sort)
for file in $sources; do
  head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception' || { echo "$file: no SPDX line"; failed=1; }
  lines=$(wc -l <"$file")
  [ "$lines" -le 700 ] || { echo "$file: $lines lines (split above 700)"; failed=1; }
done
# shellcheck disable=SC2086 # a list of files
if grep -nwE 'TODO|FIXME|XXX|HACK' $sources; then failed=1; fi
# A cast would keep the compiler from telling which values of an enumeration have no case.
# shellcheck disable=SC2086
if grep -nE 'switch \(\(int\)' $sources; then failed=1; fi
exit $failed
