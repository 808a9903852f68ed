#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One meaning a prefix (docs/architecture.md, "Verbs"): functions named check_… are the lints of passes/check, tl_check_…
# the check section of a spec and what runs it. Run in the root of the tree.
status=0
found=$(git ls-files '*.c' '*.h' | grep -v -e '^passes/check/' -e '^test/' | xargs grep -nE '^(static )?[a-z].*[ *]check_[a-z0-9_]+\(' |
  grep -v '^harness/check/')
if [ -n "$found" ]; then
  echo "functions named check_… outside of passes/check:" && echo "$found"
  status=1
fi
found=$(git ls-files '*.c' '*.h' | grep -v '^test/' | xargs grep -noE '\btl_[a-z0-9_]+_check(er)?_[a-z0-9_]+\(' |
  grep -vE ':tl_pass_check_')
if [ -n "$found" ]; then
  echo "tl_…_check_… that is neither a pass nor the check section:" && echo "$found"
  status=1
fi
# The field's words, not ours: iteration, wait, distribution, signature, live range.
found=$(git ls-files '*.c' '*.h' | grep -v '^test/' | xargs grep -nE '\b(settle|deal|face)[a-z]*_?[a-z_]*\(|\bMAX_TURNS\b')
if [ -n "$found" ]; then
  echo "a name that is no term of the field:" && echo "$found"
  status=1
fi
exit $status
