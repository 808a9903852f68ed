#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Records vectors.tar.xz and scalars.tar.xz on the first GPU. Needs a C compiler, tar and xz, no CUDA toolkit.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/vectors"
"${CC:-cc}" -std=gnu17 -O2 -D_GNU_SOURCE -I ../.. -o "$work/record" record.c rec_*.c -ldl
"$work/record" "$work/vectors"
pack() { tar --sort=name --owner=0 --group=0 --mtime=@0 -C "$work/$1" -cf - . | xz -9e >"$1.tar.xz"; }
mkdir "$work/scalars"
mv "$work/vectors/scalar.vec" "$work/vectors/access.vec" "$work/scalars"
pack vectors
pack scalars
ls -l vectors.tar.xz scalars.tar.xz
