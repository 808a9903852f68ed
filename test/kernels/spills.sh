#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# No row kernel of the library spills silently: where ptxas puts more than a few bytes into local memory, the compiler has
# warned of it (TL0642) or refused the plan (TL0641). Prints what each width of the row gives, and how often a warning
# was for nothing. Without ptxas the test is skipped.
# Usage: spills.sh TL-LLC KERNELS [all]
set -u
tool=$1 kernels=$2 silent=0 idle=0 runs=0
command -v ptxas >/dev/null 2>&1 || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What ptxas rounds up to, not what a kernel lives in.
few=8

# one SPEC [options]
one() {
  spec=$1
  shift
  "$tool" "$kernels/$spec.yaml" "$@" -o "$work/k.ptx" 2>"$work/err" || {
    grep -q 'TL0641' "$work/err" && return
    echo "$spec $*: $(head -1 "$work/err")"
    silent=$((silent + 1))
    return
  }
  ptxas -v -arch sm_80 "$work/k.ptx" -o /dev/null 2>"$work/info" || exit 77
  bytes=$(sed -n 's/.* \([0-9]*\) bytes spill stores.*/\1/p' "$work/info" | sort -n | tail -1)
  runs=$((runs + 1))
  warned=no
  grep -q TL0642 "$work/err" && warned=yes
  [ "$bytes" -gt "$few" ] && echo "$spec $*: $bytes bytes, warned: $warned"
  [ "$bytes" -gt "$few" ] && [ $warned = no ] && silent=$((silent + 1))
  [ "$bytes" = 0 ] && [ $warned = yes ] && idle=$((idle + 1))
}
sizes='32 64 126'
[ "${3:-}" = all ] && sizes='16 32 40 44 48 56 64 96 100 104 112 128 160 192 208 224 232 240'
for threads in 32 64 128 256 512 1024; do
  for each in $sizes; do
    one softmax -D threads_per_row=$threads -D N=$((threads * each))
  done
done
one softmax -D threads_per_row=32 -D N=5120
one softmax -D threads_per_row=64 -D N=10240
for each in $sizes; do
  one rms_norm -D N=$((256 * each))
  one row_sum -D N=$((256 * each))
  one online_softmax -D block_N=$((256 * each)) -D N=$((1024 * each))
done
one rms_norm -D N=28672
one adamw
one depthwise_conv
one depthwise_conv -D C=128 -D H=56 -D B=8
one dropout_layer_norm
one cross_entropy
one embedding
for spec in dropout rope gated_silu layer_norm layer_norm_backward quantize_token quantize_group quantize_block permute argmax reduce_axis \
  histogram embedding_backward stencil spmv top_k sort_rows cumsum; do one $spec; done
one group_norm_silu -D C=1280 -D HW=1024
echo "$runs configurations, $silent spill without a word, $idle warned of for nothing"
[ $silent = 0 ]
