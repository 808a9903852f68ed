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

# A chain is a module for each kernel, and its text is read again.
chains=test/spec/check/chains.yaml
expect 0 "$opt" $chains --kernel=mlp -o "$work/chain.tir"
[ "$(grep -c '^module scheduled' "$work/chain.tir")" = 3 ] || fail "the modules of a chain"
expect 0 "$opt" "$work/chain.tir" -o "$work/again.tir"
cmp -s "$work/chain.tir" "$work/again.tir" || fail "the text of a chain changed"
(echo '// of a chain' && cat "$work/chain.tir") >"$work/comment.tir"
"$opt" - <"$work/comment.tir" | cmp -s - "$work/chain.tir" || fail "modules behind a comment"
expect 0 "$opt" $chains --kernel=mlp --stop-after=canonicalize -o "$work/step.tir"
expect 0 "$opt" "$work/step.tir" --passes=canonicalize -o "$work/next.tir"
cmp -s "$work/step.tir" "$work/next.tir" || fail "a pass on every module"
line=$(grep -n '^module' "$work/chain.tir" | tail -1 | sed 's/:.*//')
sed "$((line + 1))s/.*/  nonsense/" "$work/chain.tir" >"$work/bad.tir"
expect 1 "$opt" "$work/bad.tir"
says "bad.tir:$((line + 1)):3: error: unknown op .nonsense."

printf 'module tile sm_80\nkernel {nonsense\n' >"$work/bad.tir"
expect 1 "$opt" "$work/bad.tir"
says 'TL09'
expect 0 "$opt" kernels/matmul.yaml --stop-after=canonicalize --print-before=canonicalize -o /dev/null
says '^module tile'
finish
