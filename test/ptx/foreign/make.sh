#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Makes the PTX of the sources. Usage: make.sh [nvcc]. The names of files lose their directories.
set -eu
cd "$(dirname "$0")"
nvcc=${1:-nvcc}
for name in right wrong more more_wrong api hopper wide; do
  case $name in hopper) arch=sm_90a ;; wide) arch=sm_100 ;; *) arch=sm_80 ;; esac
  "$nvcc" -ptx -lineinfo -arch=$arch "$name.cu" -o "$name.ptx"
  sed -i -E 's#(\.file[[:space:]]+[0-9]+ ")[^"]*/#\1#; s/[[:space:]]+$//' "$name.ptx"
done
