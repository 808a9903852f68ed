#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# a * b + c of 16-bit floats is a product and a sum, each rounded, in the PTX of every target and vector width.
# usage: sixteen_bits.sh TL_LLC
set -u
llc=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cat >"$dir/k.yaml" <<'EOF'
kernel: k
params: {N: 64, T: f16}
args:
  a: in T[N]
  b: in T[N]
  c: in T[N]
  y: out T[N]
threads: 32
body:
  - parallel: i in N
    do:
      - y[i] = a[i] * b[i] + c[i]
EOF
failed=0
for target in $("$llc" --list-targets | cut -d" " -f1); do
  for type in f16 bf16; do
    for n in 32 64 128 256 512; do
      "$llc" "$dir/k.yaml" -D N=$n -D T=$type --target=$target -o "$dir/k.ptx" || exit 1
      products=$(grep -cE "mul(\.rn)?\.$type" "$dir/k.ptx")
      sums=$(grep -cE "add(\.rn)?\.$type" "$dir/k.ptx")
      # Without its own mul and add, bf16 has a * b + -0.0 and a * 1.0 + b.
      fused=$(grep -cE "fma(\.rn)?\.$type" "$dir/k.ptx")
      packed=$((n / 32 > 1 ? n / 64 : 1))
      expected="$packed+$packed+0"
      case $type.$target in bf16.sm_8*) expected="0+0+$((2 * packed))" ;; esac
      if [ "$products+$sums+$fused" != "$expected" ]; then
        echo "$target $type N=$n: $products products, $sums sums and $fused fused, expected $expected"
        failed=1
      fi
    done
  done
done
exit $failed
