# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
. "$(dirname "$0")/lib.sh"
opt=$bin/tl-opt

expect 0 "$opt" --version
expect 2 "$opt"
expect 2 "$opt" --passes=nothing kernels/matmul.yaml
expect 0 "$opt" kernels/matmul.yaml -o "$work/whole.tir"
expect 0 "$bin/tl-llc" kernels/matmul.yaml --emit=scheduled -o "$work/scheduled.tir"
cmp -s "$work/whole.tir" "$work/scheduled.tir" || fail "tl-opt and --emit=scheduled differ"

# Text in, the same text out; from standard input too.
expect 0 "$opt" "$work/whole.tir" -o "$work/again.tir"
cmp -s "$work/whole.tir" "$work/again.tir" || fail "the text changed"
"$opt" - <"$work/whole.tir" | cmp -s - "$work/whole.tir" || fail "standard input"

# One pass at a time gives what the pipeline gives.
expect 0 "$bin/tl-llc" kernels/matmul.yaml --emit=tile -o "$work/step.tir"
for pass in $("$opt" --list-passes | sed 's/ .*//'); do
  expect 0 "$opt" "$work/step.tir" --passes=$pass -o "$work/next.tir"
  mv "$work/next.tir" "$work/step.tir"
done
cmp -s "$work/step.tir" "$work/whole.tir" || fail "passes one by one differ from the pipeline"

printf 'module tile sm_80\nkernel {nonsense\n' >"$work/bad.tir"
expect 1 "$opt" "$work/bad.tir"
says 'TL09'
expect 0 "$opt" kernels/matmul.yaml --stop-after=canonicalize --print-before=canonicalize -o /dev/null
says '^module tile'
finish
