# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
. "$(dirname "$0")/lib.sh"
llc=$bin/tl-llc

expect 0 "$llc" --version
says '^tl-llc [0-9.]* (manifest ABI 1, LLVM 22\.'
expect 0 "$llc" --help
says '^Usage: tl-llc'
expect 0 "$llc" --list-passes
says '^canonicalize '
expect 0 "$llc" --explain TL0101
says 'TL0101: '
expect 2 "$llc" --explain TL9999
for code in --explain=TL0101 '--explain tl0101' 'Tl0101 --explain'; do
  expect 0 "$llc" $code
  says '^TL0101: '
done
expect 2 "$llc" --explain TL01011
expect 0 "$llc" --explain
says '^TL0101  '
says ' (-Wbounds)$'
[ "$(wc -l <"$work/out")" = "$(grep -c '^TL_DIAG(' support/diag.def)" ] || fail 'not every diagnostic is listed'
expect 2 "$llc"
says 'the spec is missing'
expect 2 "$llc" a.yaml b.yaml
expect 2 "$llc" --no-such-option kernels/matmul.yaml
expect 2 "$llc" --emit=exe kernels/matmul.yaml
expect 2 "$llc" --target=sm_42 kernels/matmul.yaml
says "unknown target 'sm_42'"
expect 2 "$llc" --ptx-version=8 kernels/matmul.yaml
expect 2 "$llc" -D M kernels/matmul.yaml
expect 2 "$llc" -O4 kernels/matmul.yaml
expect 2 "$llc" -Wno-such-group kernels/matmul.yaml
expect 2 "$llc" --stop-after=no-such-pass kernels/matmul.yaml
expect 2 "$llc" --emit=cubin kernels/matmul.yaml
expect 1 "$llc" "$work/nothing.yaml"
says 'nothing.yaml'
expect 1 "$llc" --kernel=other kernels/matmul.yaml
says "no kernel 'other'; the file has: matmul"
# native asks the GPU: 77 where there is none.
"$llc" --target=native kernels/vector_add.yaml -o /dev/null 2>"$work/err"
case $? in 0 | 77) ;; *) fail "--target=native" ;; esac

# A wrong binding is a diagnostic with its place on the command line.
expect 1 "$llc" -D M=1+ kernels/matmul.yaml
says '<command line>:1:'
expect 1 "$llc" -D no_such_param=3 kernels/matmul.yaml
# What is no diagnostic is an element of the array too.
expect 1 "$llc" --diagnostics=json "$work/none.yaml"
python3 -c 'import json, sys; [d] = json.load(sys.stdin); assert d["code"] == "NOT_FOUND" and d["file"] is None and "none.yaml" in d["message"], d' \
  <"$work/err" || fail "JSON of a missing file: $(cat "$work/err")"
expect 1 "$llc" --diagnostics=json --kernel=other kernels/matmul.yaml
python3 -c 'import json, sys; assert json.load(sys.stdin)[-1]["code"] == "NOT_FOUND"' <"$work/err" || fail "JSON of an unknown kernel: $(cat "$work/err")"
expect 1 "$llc" --diagnostics=json -D M=1+ kernels/matmul.yaml
says '"code":'

# Every stage; the same bytes each time; -o is whole or not at all.
for emit in ast tile scheduled llvm llvm-opt ptx manifest; do
  expect 0 "$llc" kernels/matmul.yaml --emit=$emit -D M=256 -D M=512 -o "$work/a.$emit"
  expect 0 "$llc" kernels/matmul.yaml --emit $emit -D M=512 -o "$work/b.$emit"
  cmp -s "$work/a.$emit" "$work/b.$emit" || fail "two runs of --emit=$emit differ"
  [ -s "$work/a.$emit" ] || fail "--emit=$emit wrote nothing"
done
head -1 "$work/a.ptx" | grep -q '^// {$' || fail "the PTX does not begin with its manifest"
"$llc" - --emit=manifest -o - <kernels/matmul.yaml | grep -q '"abi": 1' || fail "standard input to standard output"
expect 1 "$llc" - -o "$work/untouched"
[ -e "$work/untouched" ] && fail "a failed compile wrote its output"
expect 2 "$llc" kernels/matmul.yaml --emit=asm
says 'it takes one of ast, tile, scheduled'
if [ -c /dev/full ]; then
  "$llc" --help >/dev/full 2>/dev/null && fail "--help to a full disk succeeded"
  "$llc" kernels/vector_add.yaml >/dev/full 2>/dev/null && fail "PTX to a full disk succeeded"
fi
expect 0 "$llc" kernels/matmul.yaml -o /dev/null
[ -c /dev/null ] || fail "/dev/null was replaced"
ln -s "$work/real.ptx" "$work/link.ptx"
: >"$work/real.ptx"
chmod 600 "$work/real.ptx"
expect 0 "$llc" kernels/matmul.yaml -o "$work/link.ptx"
[ -L "$work/link.ptx" ] && [ -s "$work/real.ptx" ] || fail "-o through a symbolic link"
[ "$(stat -c %a "$work/real.ptx")" = 600 ] || fail "-o changed the mode of an existing file"
expect 1 "$llc" kernels/matmul.yaml -o "$work/no/such/dir/x.ptx"

# Targets and PTX versions.
expect 0 "$llc" kernels/matmul.yaml --target=sm_90a --ptx-version=8.3
says '^\.target sm_90a'
says '^\.version 8\.3'
expect 0 "$llc" kernels/matmul.yaml --print-after=canonicalize --time-passes --verify-each -o /dev/null
says 'kernel {name = "matmul"'

# cubin, where ptxas is found.
if command -v ptxas >/dev/null || [ -x /usr/local/cuda/bin/ptxas ]; then
  expect 0 "$llc" kernels/matmul.yaml --emit=cubin -o "$work/m.cubin"
  [ -s "$work/m.cubin" ] && grep -q '"abi": 1' "$work/m.json" || fail "cubin or its manifest is missing"
fi
expect 1 "$llc" kernels/matmul.yaml --emit=cubin --ptxas=/no/such/ptxas -o "$work/n.cubin"
# Targets.
expect 0 "$llc" --list-targets
says '^sm_80 .* run '
says '^sm_120 .* assembled only '
expect 2 "$llc" --target=sm_75 kernels/matmul.yaml
says 'sm_75 is refused: it has no mma.sync.m16n8k16, no cp.async and no bf16'
expect 2 "$llc" --target=sm_1 kernels/matmul.yaml
says 'unknown target'
sed 's/^kernel: matmul$/&\ntarget: sm_75/' kernels/matmul.yaml >"$work/old.yaml"
expect 1 "$llc" "$work/old.yaml" -o "$work/old.ptx"
says 'refused target `sm_75`: it has no'

# Text that cannot be written is no success.
for option in --help --version --list-passes; do
  "$llc" $option >/dev/full 2>"$work/err" && fail "$option on a full device"
done
"$llc" kernels/vector_add.yaml >/dev/full 2>"$work/err" && fail "PTX on a full device"
(ulimit -f 1 && "$llc" kernels/matmul.yaml -o "$work/limited.ptx" 2>"$work/err") && fail "a file over the size limit"
ls "$work"/limited.ptx* 2>/dev/null && fail "a temporary file was left"
expect 2 "$llc" --stop-after=canonicalize,check-init kernels/matmul.yaml
expect 2 "$llc" --stop-after= kernels/matmul.yaml
expect 2 "$llc" --emit=cubin -o "$work/x.json" kernels/matmul.yaml

# An assembler that misbehaves.
fake() {
  printf '#!/bin/sh\n[ "$1" = --version ] && { echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0; }\n%s\n' "$1" >"$work/ptxas"
  chmod +x "$work/ptxas"
}
cubin() { expect 1 timeout 60 "$llc" --emit=cubin --ptxas="$work/ptxas" "$@" -o "$work/x.cubin" kernels/vector_add.yaml; }
cubin # there is none yet
says 'ptxas'
fake 'echo "ptxas error: no" >&2; exit 255'
cubin
says 'ptxas error: no'
fake 'sleep 1000'
cubin --ptxas-timeout=0.2
says 'did not end within 0.2 s'
fake yes
cubin --ptxas-timeout=0.2
says 'did not end within 0.2 s'
# One that closes its output and goes on, and one that does not even tell its version.
fake 'exec >&- 2>&-; exec sleep 1000'
cubin --ptxas-timeout=0.2
says 'did not end within 0.2 s'
printf '#!/bin/sh\nexec sleep 1000\n' >"$work/ptxas"
start=$(date +%s)
cubin --ptxas-timeout=0.2
says 'did not end within 0.2 s'
[ $(($(date +%s) - start)) -lt 10 ] || fail "--ptxas-timeout does not hold for the version"
fake 'exit 0'
cubin
says 'wrote no cubin'
fake 'kill -SEGV $$'
cubin
[ -e "$work/x.cubin" ] && fail "a cubin although the assembler failed"

# A chain: every kernel once, and how they follow each other.
chains=$2/test/spec/check/chains.yaml
expect 0 "$llc" "$chains" --kernel=mlp
for entry in linear activate linear_2; do says "^.visible .entry $entry("; done
[ "$(grep -c '^\.version' "$work/out")" = 1 ] || fail 'a chain has one module'
says '^//         {"kernel": "linear_2", "given": \['
expect 0 "$llc" "$chains" --kernel=mlp -D D=256
[ "$(grep -c '^.visible .entry' "$work/out")" = 2 ] || fail 'steps with the same params share a kernel'
expect 0 "$llc" "$chains" --kernel=four --emit=manifest
says '"bytes": "R \* 24 \* 4"'
[ "$(grep -c '{"kernel": "add_one"' "$work/out")" = 4 ] || fail 'a chain in a chain is its steps'
expect 0 "$llc" "$chains" --kernel=mlp --emit=scheduled
[ "$(grep -c '^module scheduled' "$work/out")" = 3 ] || fail 'the tile IR of each kernel'
expect 1 "$llc" "$chains" --kernel=mlp -D N=4
says "kernel .mlp. has no param .N."
# `persistent`: of every step, or of one.
expect 0 "$llc" "$chains" --kernel=mlp --emit=manifest
grep -q persistent "$work/out" && fail 'persistent unasked'
expect 0 "$llc" "$chains" --kernel=mlp --emit=manifest -D persistent=true
[ "$(grep -c '"persistent": true' "$work/out")" = 3 ] || fail 'the steps of a persistent chain'
sed 's/activate(H_flat, scale)/activate(H_flat, scale, persistent=true)/' "$chains" >"$work/persistent.yaml"
expect 0 "$llc" "$work/persistent.yaml" --kernel=mlp --emit=manifest
[ "$(grep -c '"persistent": true' "$work/out")" = 1 ] || fail 'one persistent step'
expect 0 "$llc" "$work/persistent.yaml" --kernel=mlp --emit=manifest -D persistent=false
[ "$(grep -c '"persistent": true' "$work/out")" = 1 ] || fail 'what a step says goes before -D'

# PTX has no setp.ftz.bf16; LLVM would select it.
source_dir=$2
for target in sm_80 sm_90a; do
  expect 0 "$llc" "$source_dir/test/semantics/fast_compare.yaml" --target=$target -o -
  grep -q 'setp[.a-z]*ftz.bf16' "$work/out" && fail "setp.ftz.bf16 for $target"
done

# `auto` params: large products by the tile that two warpgroups share, with room for the tile that is stored meanwhile, small ones by one that gives every multiprocessor work.
autos='-D block_M=auto -D block_N=auto -D block_K=auto -D stages=auto -D threads=auto'
for size in 4096 8192; do
  # shellcheck disable=SC2086
  expect 0 "$llc" "$source_dir/kernels/matmul.yaml" --target=sm_90a --remarks $autos -D M=$size -D N=$size -D K=$size -o -
  says 'remark: block_M = 128, block_N = 256, block_K = 64, stages = 3: '
  grep -q '"math_threads": 256' "$work/out" || fail 'threads of two warpgroups'
done
# shellcheck disable=SC2086
expect 0 "$llc" "$source_dir/kernels/matmul.yaml" --target=sm_90a --remarks $autos -D M=1024 -D N=1024 -D K=1024 -o -
says 'remark: block_M = 64, block_N = 128, '
# More rows than two warpgroups of attention by head dim 128 have registers for are not worth it.
expect 0 "$llc" "$source_dir/kernels/flash_attention.yaml" --target=sm_90a --remarks -D block_M=auto -D threads=auto -o -
says 'remark: block_M = 128: '
grep -q '"math_threads": 256' "$work/out" || fail 'threads of two warpgroups'
expect 0 "$llc" "$source_dir/kernels/flash_attention.yaml" --target=sm_90a --remarks -D block_M=auto -D block_N=auto -D threads=auto -D D=64 -D H=32 -D S=2048 -o -
says 'remark: block_M = 192, block_N = 128: '
grep -q '"math_threads": 384' "$work/out" || fail 'threads of three warpgroups'
sed 's/^grid:/requires:\n  - block_M > 1024\ngrid:/' "$source_dir/kernels/matmul.yaml" >"$work/never.yaml"
expect 1 "$llc" "$work/never.yaml" -D block_M=auto -o -
says 'the compiler cannot choose .block_M. \[TL0258\]'

# A persistent product whose staged tile finds room in the ring only: no warps of their own, whose loads would not wait for it.
expect 0 "$llc" "$source_dir/kernels/matmul.yaml" --target=sm_90a -D persistent=true -D block_N=256 -D threads=256 -D stages=4 --remarks -o -
says 'the tiles do not fit beside each other'

# The entry asks for the threads that the manifest gives the launcher.
for threads in 32 128 256 1024; do
  expect 0 "$llc" "$source_dir/kernels/softmax.yaml" -D threads_per_row=$threads -o -
  grep -q "^\.reqntid $threads, 1, 1" "$work/out" || fail "the entry does not ask for $threads threads"
  grep -q "^// .*\"block_threads\": $threads," "$work/out" || fail "the manifest does not say $threads threads"
done
# No stack is left that nothing uses; one that something uses is.
expect 0 "$llc" test/semantics/four_bits.yaml -Wnone -o "$work/stack.ptx"
! grep -qE '\.local|%SP' "$work/stack.ptx" || fail 'four_bits has a stack'
expect 0 "$llc" test/semantics/locals.yaml --kernel=local_arrays -Wnone -o "$work/stack.ptx"
[ "$(grep -c '__local_depot' "$work/stack.ptx")" = 2 ] || fail 'local_arrays has lost its stack'
# --require: every statement that misses it is named, with the reason; nothing changes in the code.
all=tma,wgmma,roles,overlap
expect 0 "$llc" kernels/flash_attention.yaml --target=sm_90a --emit=scheduled --require=$all -o "$work/required"
expect 0 "$llc" kernels/flash_attention.yaml --target=sm_90a --emit=scheduled -o "$work/free"
cmp -s "$work/required" "$work/free" || fail '--require changed the code'
expect 1 "$llc" kernels/matmul.yaml --target=sm_80 --require=$all
says '^kernels/matmul.yaml:30:9: error: this copy does not go by TMA, as --require=tma asks \[TL0617\]$'
says '^kernels/matmul.yaml:31:9: error: this copy does not go by TMA'
says '^kernels/matmul.yaml:32:9: error: this gemm does not run on wgmma'
says '^kernels/matmul.yaml:32:9: error: this gemm is waited for where it stands'
says '^kernels/matmul.yaml:27:5: error: the warps that compute bring the tiles of this loop'
says '^hint: sm_80 has no wgmma; sm_90a is the first target that has it$'
expect 1 "$llc" kernels/conv2d.yaml --target=sm_90a -D C=20 --require=tma
says '^kernels/conv2d.yaml:51:9: note: the copy goes by cp.async: what is waited for with it does not go by TMA$'
expect 0 "$llc" kernels/conv2d.yaml --target=sm_90a --require=wgmma -o /dev/null
expect 1 "$llc" kernels/matmul_nt.yaml --target=sm_90a -D dtype=f8e4m3 --require=overlap
says 'note: the gemm is waited for at once: its sums are promoted$'
expect 2 "$llc" kernels/matmul.yaml --require=speed
says "tma, wgmma, roles, overlap, no-spill, vector, no-bank-conflict"
expect 2 "$llc" kernels/matmul.yaml --require=
expect 2 "$llc" kernels/matmul.yaml --emit=tile --require=tma
expect 2 "$llc" kernels/matmul.yaml --emit=scheduled --require=no-spill
expect 2 "$llc" kernels/matmul.yaml --stop-after=pipeline --require=tma
# Elements: one load for all neighbours is no vector and needs none; a column is read in steps of a row.
expect 0 "$llc" kernels/embedding.yaml --require=vector,no-bank-conflict -o /dev/null
cat >"$work/columns.yaml" <<'END'
kernel: columns
args:
  X: in f32[64, 64]
  Y: out f32[64, 64]
  Z: out f32[64, 64]
threads: 32
shared:
  s: f32[64, 64] layout row
body:
  - copy: X -> s
  - parallel: i, j in 64, 64
    do:
      - Y[i, j] = s[j, i]
  - parallel: i, j in 64, 64
    do:
      - Z[i, j] = X[j, i]
END
expect 1 "$llc" "$work/columns.yaml" --require=vector,no-bank-conflict
says 'columns.yaml:16:19: error: this access of a parallel moves fewer than 8 bytes at a time, as --require=vector asks'
says "columns.yaml:16:19: note: 'X' is loaded 1 element at a time, not 2: a subscript before the last one changes along it"
says 'columns.yaml:13:19: error: this access of a parallel has bank conflicts, as --require=no-bank-conflict asks'
says "bank conflicts make it 16 times as long"
# no-spill asks ptxas, here one that says what the test wants.
cat >"$work/ptxas" <<'END'
#!/bin/sh
[ "$1" = --version ] && { echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0; }
while [ "$1" != -o ]; do shift; done
: >"$2"
echo "ptxas info    : 0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads"
END
chmod +x "$work/ptxas"
expect 1 "$llc" kernels/vector_add.yaml --require=no-spill --ptxas="$work/ptxas"
says '^kernels/vector_add.yaml:1:9: error: registers are spilled (8 bytes stored, 12 loaded; ptxas 13.0.88), as --require=no-spill forbids \[TL0617\]$'
sed -i 's/ 8 bytes spill stores, 12 / 0 bytes spill stores, 0 /' "$work/ptxas"
expect 0 "$llc" kernels/vector_add.yaml --require=no-spill --ptxas="$work/ptxas" -o /dev/null
expect 1 "$llc" kernels/vector_add.yaml --require=no-spill --ptxas="$work/no-such-ptxas"
# What is demanded of one statement names the target that lacks it; sm_90 has TMA and no wgmma.
demand() { # LINE TARGET WORDS: after the line that matches, with the indentation of its options
  sed "/$1/{n;s/^/$2\n/}" kernels/matmul.yaml >"$work/demand.yaml"
  expect 1 "$llc" "$work/demand.yaml" --target="$3"
  says "$4"
}
demand '- copy: A' '        via: tma' sm_80 'cannot go by TMA: sm_80 has no TMA \[TL0610\]$'
demand 'pipelined: ko' '    specialize: on' sm_86 ': sm_86 has no TMA \[TL0612\]$'
demand 'pipelined: ko' '    overlap: 1' sm_89 'where there is wgmma, which sm_89 lacks \[TL0664\]$'
demand 'pipelined: ko' '    overlap: 1' sm_90 'where there is wgmma, which sm_90 lacks \[TL0664\]$'
for target in sm_80 sm_90 sm_100a sm_120; do
  demand '- gemm:' '        mma: wgmma' $target "^hint: $target has no wgmma; sm_90a is the first target that has it"
done
# Copies by TMA say how long the caches keep what they bring: L2::evict_first for the first operand, L2::evict_last for the second.
expect 0 "$llc" test/pipeline/tma_forms.yaml --emit=ptx -o "$work/evict.ptx"
policies=$(grep -o '1364590687093260288\|1508705875169116160' "$work/evict.ptx" | head -2 | tr '\n' ' ')
[ "$policies" = '1364590687093260288 1508705875169116160 ' ] || fail "cache policies: $policies"
# What TMA fills once is not brought behind a write to its tensor, and a tensor that it reads and writes has a map for each.
printf '%s\n' 'kernel: once' 'target: sm_90' 'args: {Y: "inout f32[64, 64]", Z: "out f32[64, 64]"}' 'shared: {s: "f32[64, 64]"}' 'body:' \
  '  - copy: Y -> s' '    via: tma' '  - parallel: i, j in 64, 64' '    do: Y[i, j] = 0.0' '  - copy: s -> Z' >"$work/once.yaml"
expect 1 "$llc" "$work/once.yaml"
says 'cannot go by TMA: .*is not all that fills its tile \[TL0610\]$'
printf '%s\n' 'kernel: both' 'target: sm_90' 'args: {Y: "inout f32[64, 64]"}' 'shared: {s: "f32[64, 64]"}' 'barriers: {here: "mbarrier[1] arrivals(1)"}' 'body:' \
  '  - copy: Y -> s' '    barrier: here[0]' '  - arrive: here[0]' '    bytes: 16384' '  - wait: here[0], 0' '  - s = s * 2' '  - copy: s -> Y' \
  '    via: tma' >"$work/both.yaml"
expect 0 "$llc" "$work/both.yaml" --emit=manifest
says '"kind": "tensor_map", .*"access": "in"'
says '"kind": "tensor_map", .*"access": "out"'
# The language for editors; diagnostics for code hosts.
expect 0 "$bin/tl-llc" --emit=schema
says '"stmt_gemm": {"type": "object"'
says '"description": "A matrix product of tiles'
says '"target": .*"enum": \["sm_80", .*"sm_90a"' # names of targets are words, too
expect 2 "$bin/tl-llc" --emit=schema kernels/matmul.yaml
says 'it takes no spec'
printf 'kernel: k\nbody:\n  - copi: A -> B\n' >"$work/a b.yaml"
expect 1 "$bin/tl-llc" --diagnostics=sarif "$work/a b.yaml"
says '"ruleId": "TL0401", "level": "error", "message": {"text": "unknown statement `copi`\\nhint: did you mean `copy`?"}'
says '/a%20b.yaml"}, "region": {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9}'
says '"id": "TL0401", "shortDescription"'
expect 1 "$bin/tl-llc" --diagnostics=sarif "$work/none.yaml"
says '"executionSuccessful": false, "toolExecutionNotifications".*"id": "NOT_FOUND"'
says '"results": \[\]'
expect 0 "$bin/tl-llc" --diagnostics=sarif kernels/vector_add.yaml -o /dev/null
says '"executionSuccessful": true'
finish
