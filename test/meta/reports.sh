#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every report and every finding of the emulator is provoked by a test: the longest piece of its text without a
# conversion stands in a file of test/unit, test/emulator or test/tools, where it is what the test expects.
# Not asked for: bugs of ours, and operands that LLVM does not let through.
exceptions='left in the module
needs sm_100
the leading offset is no multiple of the swizzle'"'"'s pattern'
work=$(mktemp) || exit 2
trap 'rm -f "$work" "$work.missing"' EXIT
cat test/unit/emulator_* test/emulator/* test/tools/*.sh | tr -d '\n' | sed 's/" *"//g' >"$work"
failed=0
for file in emulator/*/*.c; do
  tr '\n' ' ' <"$file" | sed 's/" *"//g' |
    grep -oE '(tl_emu_fail|tl_emu_fail_at|tl_emu_sanitize_misuse|(mistake|rule) = |return )\(?(site, )?"([^"\\]|\\.)*"' |
    sed 's/^[^"]*"//; s/"$//' | grep ' ' |
    awk '{
      n = split($0, parts, /%[-0-9.*#]*(ll|l|z|t)?[a-zA-Z]/)
      best = ""
      for (i = 1; i <= n; i++) if (length(parts[i]) > length(best)) best = parts[i]
      gsub(/^[:;, ]+|[:;, ]+$/, "", best)
      print best
    }' | while IFS= read -r piece; do
    echo "$exceptions" | grep -qxF -- "$piece" || grep -qF -- "$piece" "$work" || echo "$file: no test expects \"$piece\""
  done
done >"$work.missing"
if [ -s "$work.missing" ]; then
  cat "$work.missing"
  failed=1
fi
exit $failed
