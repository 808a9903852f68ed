#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Dependencies between modules go one way: each row names a module and what its files may include.
set -eu
failed=0
check() {
  module=$1
  allowed=$2
  [ -d "$module" ] || return 0
  bad=$(grep -rnE '#include "[a-z_]+/' "$module" --include='*.[ch]' --include='*.def' --include='*.S' |
    grep -vE "#include \"($allowed)/" || true)
  if [ -n "$bad" ]; then
    printf '%s may include only %s:\n%s\n' "$module" "$allowed" "$bad"
    failed=1
  fi
}
check support 'support|tl'
check ptx 'ptx|support|tl'
check ir 'ir|support|tl'
check frontend 'frontend|ir|support|tl'
check passes 'passes|ir|support|tl'
check llvm_backend 'llvm_backend|ir|support|tl'
check emulator 'emulator|llvm_backend|ptx|support|tl'
check runtime 'runtime|support|tl'
check harness 'harness|emulator|ptx|runtime|llvm_backend|passes|frontend|ir|support|tl'
check tools 'tools|harness|emulator|ptx|runtime|llvm_backend|passes|frontend|ir|support|tl'

llvm=$(grep -rnE '#include *[<"]llvm-c/' support ptx frontend ir passes runtime harness tools include --include='*.[ch]' || true)
if [ -n "$llvm" ]; then
  printf 'LLVM belongs to llvm_backend and emulator:\n%s\n' "$llvm"
  failed=1
fi
driver=$(grep -rnE '#include *[<"](cuda|cuda_runtime|cudaTypedefs)\.h[>"]' support ptx frontend ir passes llvm_backend emulator harness tools include --include='*.[ch]' || true)
if [ -n "$driver" ]; then
  printf 'the CUDA driver belongs to runtime:\n%s\n' "$driver"
  failed=1
fi
exit $failed
