# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# scripts/peers_launch.py makes the tensor maps that the runtime makes. Usage: peers_launch.sh BIN FAKES
. "$(dirname "$0")/../tools/lib.sh"
command -v python3 >/dev/null || exit 77
TL_CUDA_DRIVER=$2/libfake_cuda.so
export TL_CUDA_DRIVER
cat >"$work/launch.py" <<'EOF'
import ctypes
import os
import sys

sys.path.insert(0, "scripts")
import peers_launch

compiler, spec = sys.argv[1:3]
dynamic = {name: int(value) for name, value in (item.split("=") for item in sys.argv[3:])}
program = peers_launch.Program(compiler, spec, "sm_90a", 132)
memory = ctypes.create_string_buffer(1 << 20)
at = ctypes.addressof(memory) + (-ctypes.addressof(memory) % 256)
tensors = [param for param in program.entry["params"] if param["kind"] == "tensor"]
for _ in range(2):
    program.launch([at + 65536 * i for i in range(len(tensors))], 0, dynamic)
maps = sum(param["kind"] == "tensor_map" for param in program.entry["params"])
assert maps and len(program.maps) == maps, (maps, len(program.maps))
assert all(ctypes.addressof(made) % 64 == 0 and made.raw == b"\x5a" * 128 for made in program.maps.values())
EOF
# SPEC NAME=VALUE...: of tensors of known and of dynamic sizes, one of which has a single row.
same_maps() {
  spec=$1
  shift
  rm -f "$work/ours" "$work/theirs"
  TL_FAKE_CUDA_MAPS=$work/theirs python3 "$work/launch.py" "$bin/tl-llc" "$spec" "$@" || fail "$spec: no launch"
  sets=$(for binding in "$@"; do printf -- '-D %s ' "$binding"; done)
  # shellcheck disable=SC2086
  TL_FAKE_CUDA_MAPS=$work/ours "$bin/tl-run" --device=cuda --target=sm_90a "$spec" $sets >"$work/out" 2>&1 || fail "$spec: $(cat "$work/out")"
  sort -u "$work/ours" >"$work/ours.sorted"
  sort -u "$work/theirs" | cmp - "$work/ours.sorted" || fail "$spec: $(cat "$work/theirs" "$work/ours.sorted")"
}
same_maps test/pipeline/tma_matmul.yaml M=100 N=200 K=264
same_maps test/pipeline/tma_matmul.yaml M=1 N=8 K=64
# Maps of pixels.
sed 's/N: 32/N: 2/; s/H: 56/H: 9/; s/W: 56/W: 11/; s/stride: 1/stride: 2/' kernels/conv2d.yaml >"$work/conv.yaml"
same_maps "$work/conv.yaml"
grep -q '^im2col type 6 dims 128 11 9 2 .* from -1 to -1 from -1 to -1 by 1 by 2 by 2 by 1 channels 64 pixels 128' "$work/ours.sorted" ||
  fail "no map of pixels: $(cat "$work/ours.sorted")"
finish
