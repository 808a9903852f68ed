# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What a run may take: memory, time and files have limits, and the message says which one was met.
. "$(dirname "$0")/lib.sh"
llc=$bin/tl-llc run=$bin/tl-run
# A bound for what goes wrong; a sanitizer's own memory is terabytes, there is none then.
bound='ulimit -v 12000000'
sh -c "$bound; exec \"\$1\" --version" sh "$run" >/dev/null 2>&1 || bound=:

# limited FILE PATTERN [options]: a check ends soon, without the memory, and says why; the summary is there.
limited() {
  name=$1 pattern=$2
  shift 2
  expect 1 sh -c "$bound; exec timeout 60 \"\$@\"" sh "$run" --check --device=emu "$@" "$work/$name.yaml"
  says "$pattern"
  says 'of . cases passed'
}
spec() {
  printf 'kernel: k\nargs:\n  X: in i32[64]\n%s  Y: out %s\nbody:\n  - Y[0] = 1\ncheck:\n  inputs: {X: const(1)}\n%s' \
    "$1" "$2" "$3"
}

# --- memory
spec '  Z: in f32[100000, 30000]
' 'i32[64]' '  reference:
    - Y[n] = X[n]
' >"$work/inputs.yaml"
limited inputs "FAILED: the run takes .* GiB of memory, .* GiB of it for 'Z', f32\[100000, 30000\]; the limit is .* (--max-memory)"
spec '' 'i8[2000000000]' '  reference:
    - Y[n] = 1
' >"$work/out.yaml"
limited out "for 'Y', i8\[2000000000\]; the limit is 4 GiB" --max-memory=4G
spec '  Z: in f32[100000, 30000]
' 'i32[64]' '  derive:
    - Z[m, n] = 1
  reference:
    - Y[n] = X[n]
' >"$work/derive.yaml"
limited derive "for 'Z', f32"
# A tensor of the reference's own.
spec '' 'i32[64]' '  reference:
    - t[i in 0:100000, j in 0:30000] = i + j
    - Y[n] = X[n]
' >"$work/own.yaml"
limited own 'error: the reference takes 24000000000 bytes for the values of `t`'
expect 1 "$run" --device=emu --max-memory=1M kernels/matmul.yaml
says 'tl-run: the run takes .* MiB of memory, .* (--max-memory)'
expect 2 "$run" --max-memory=lots kernels/matmul.yaml
says 'max-memory takes a size such as 8G or 512M'
expect 2 "$run" --max-memory=0 kernels/matmul.yaml

# --- time: no step of a case is without a limit
spec '' 'i32[64]' '  reference:
    - t = sum[i in 0:200000, j in 0:2000000]((i ^ j) % 7)
    - Y[n] = X[n] + t
' >"$work/slow.yaml"
expect 1 timeout 100 "$run" --check --device=emu --timeout=1 "$work/slow.yaml"
says "tl-run: the reference of case 1 of 'k' did not end within 1 s (--timeout)"

# --- files that never end, and those that are no files
ln -s /dev/zero "$work/zero.npy"
ln -s /dev/zero "$work/zeros.ptx"
ln -s /dev/zero "$work/zero.yaml"
mkfifo "$work/pipe.npy"
bounded() {
  wanted=$1
  shift
  expect "$wanted" sh -c "$bound; exec timeout 60 \"\$@\"" sh "$@"
}
bounded 1 "$run" --device=emu --in "A=$work/zero.npy" kernels/matmul.yaml
says "is no regular file"
bounded 1 "$run" --device=emu --in "A=$work/pipe.npy" kernels/matmul.yaml
says "pipe.npy' is no regular file"
bounded 1 "$run" --check --device=emu --in "A=$work/zero.npy" kernels/matmul.yaml
says "is no regular file"
sed "s/X: const(1)/X: zero.npy/" "$work/slow.yaml" >"$work/recorded.yaml"
bounded 1 "$run" --check --device=emu "$work/recorded.yaml"
says "zero.npy' is no regular file"
head -c 2000000 /dev/zero >"$work/long.npy"
sed "s/X: const(1)/X: long.npy/" "$work/slow.yaml" >"$work/recorded.yaml"
bounded 1 "$run" --check --device=emu "$work/recorded.yaml"
says "long.npy' is larger than the limit of"
for tool in "$llc" "$run --check --device=emu" "$bin/tl-opt"; do
  bounded 1 $tool "$work/zero.yaml"
  says 'zero.yaml is larger than the limit of [0-9]* bytes'
done
# Other options that read files, and what a spec includes.
"$llc" kernels/vector_add.yaml -o "$work/v.ptx" && grep -v '^//' "$work/v.ptx" >"$work/bare.ptx"
bounded 1 "$run" --device=emu "$work/zeros.ptx"
says "zeros.ptx' is larger than the limit of 67108864 bytes"
bounded 1 "$run" --device=emu --launch=/dev/zero "$work/bare.ptx"
says '/dev/zero is larger than the limit of 16777216 bytes'
for path in zero.yaml pipe.npy /; do
  printf 'kernel: k\ninclude: %s\nbody: []\n' "$path" >"$work/includes.yaml"
  bounded 1 "$llc" "$work/includes.yaml"
  says "includes.yaml:2:10: error: .*$path"
done
bounded 1 "$bin/tl-opt" --passes=canonicalize "$work/zeros.ptx"
bounded 2 "$bin/tl-golden" --list=/dev/zero check
says "'/dev/zero' is larger than the limit of 67108864 bytes"
finish
