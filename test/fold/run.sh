#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compares folding with what kernels compute, for one dtype. Usage: run.sh FOLD_CASES TL_RUN DTYPE
set -eu
cases=$1
run=$2
dtype=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-fold.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$cases" spec "$dtype" >"$work/k.yaml"
"$cases" operands "$dtype" "$work/x.npy" "$work/y.npy"
"$run" "$work/k.yaml" --device=emu --in X="$work/x.npy" --in Y="$work/y.npy" --out run="$work/run.npy" \
  --out typed="$work/typed.npy" --out literal="$work/literal.npy" >"$work/log" 2>&1 || { head -n 40 "$work/log"; exit 1; }
"$cases" compare "$dtype" "$work/run.npy" "$work/typed.npy" "$work/literal.npy"
