# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# scripts/soak-gpu and sanitize-gpu over the emulated driver, and a compute-sanitizer that says what the test wants.
# Usage: soak_gpu.sh BIN FAKES
. "$(dirname "$0")/../tools/lib.sh"
TL_BIN=$bin
TL_CUDA_DRIVER=$2/libemulated_cuda.so
TL_EMULATED_CHECKS=none
export TL_BIN TL_CUDA_DRIVER TL_EMULATED_CHECKS

expect 2 scripts/soak-gpu --runs=3
# A spec for sm_90a is not asked for sm_80.
expect 0 scripts/soak-gpu --launches=6 --jobs=2 kernels/vector_add.yaml kernels/matmul_splitk.yaml test/pipeline/by_hand_turns.yaml
says '^6 kernels, 36 launches: 24 with the bits of the first, 12 within the tolerance (12 on one stream, 12 on two, 12 from graphs); 0 specs failed, 0 not run$'
# A failure is told, with the counts of the others.
TL_EMULATED_FAULT='vector_add 3 2 0' expect 1 scripts/soak-gpu --launches=6 --target=sm_90a kernels/vector_add.yaml kernels/row_sum.yaml
says '^  FAILED: launch 2 of 6, on one stream, gave another result than the first$'
says '^FAILED: kernels/vector_add.yaml for sm_90a'
says '^1 kernels, 6 launches: .*; 1 specs failed, 0 not run$'
expect 1 scripts/soak-gpu --launches=6 --seconds=0 kernels/vector_add.yaml
says '; 0 specs failed, 2 not run$'
# Beside aborted launches and after them.
expect 0 scripts/soak-gpu --launches=3 --target=sm_90a --only=aborts
says '^2 kernels, 6 launches: 6 with the bits of the first, 0 within'

cat >"$work/sanitizer" <<'FAKE'
#!/bin/sh
[ "$1" = --version ] && { echo "Version 1"; exit 0; }
tool=$2
[ -n "${REFUSES-}" ] && { echo "========= Error: Device not supported"; exit 1; }
shift 4
"$@" || exit
case $tool-$* in
  racecheck-*row_sum*) echo "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"; exit 99 ;;
  racecheck-*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
  memcheck-*row_sum*) ;;
  *) echo "========= ERROR SUMMARY: 0 errors" ;;
esac
FAKE
chmod +x "$work/sanitizer"
TL_SANITIZER=$work/none
export TL_SANITIZER
expect 77 scripts/sanitize-gpu kernels/vector_add.yaml
says 'there is no compute-sanitizer'
TL_SANITIZER=$work/sanitizer
expect 0 scripts/sanitize-gpu kernels/vector_add.yaml
says '^3 runs clean (1 memcheck, 1 racecheck, 1 synccheck), 0 failed, 0 refused, 0 not run$'
# A hazard, and a run whose end the tool did not see.
expect 1 scripts/sanitize-gpu --tool=memcheck --tool=racecheck kernels/vector_add.yaml kernels/row_sum.yaml
says '^FAILED: racecheck of kernels/row_sum.yaml --case=1 (exit 99)$'
says '^FAILED: memcheck of kernels/row_sum.yaml --case=1 (exit 0)$'
says '^2 runs clean (1 memcheck, 1 racecheck), 2 failed, 0 refused, 0 not run$'
REFUSES=1 expect 77 scripts/sanitize-gpu kernels/vector_add.yaml
says 'does not support this GPU'
expect 1 scripts/sanitize-gpu --seconds=0 kernels/vector_add.yaml
says '^0 runs clean (0 memcheck, 0 racecheck, 0 synccheck), 0 failed, 0 refused, 3 not run$'
finish
