# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
. "$(dirname "$0")/lib.sh"
golden=$bin/tl-golden
unset CI
# A project of its own: the list names specs relative to its directory.
mkdir "$work/lists" "$work/specs"
cp "$2/kernels/vector_add.yaml" "$2/kernels/matmul.yaml" "$work/specs"
list=$work/lists/list.txt
printf '# a comment\nva ../specs/vector_add.yaml block=512 dtype=f16 targets=sm_80,sm_90a\n' >"$list"
last_line() {
  tail -1 "$work/out" | grep -q -e "$1" || fail "the last line does not match: $1: $(tail -1 "$work/out")"
}
has_ptxas=no
"$bin/tl-llc" "$2/kernels/vector_add.yaml" --emit=cubin -o "$work/cubin" 2>/dev/null && has_ptxas=yes

expect 2 "$golden"
expect 2 "$golden" look
expect 2 "$golden" check --list="$list"
says '^va sm_80: could not tell: .*list.txt:2)$'
last_line '^0 passed, 0 failed, 2 skipped; 0 ptxas checks skipped$'
expect 2 env CI=1 "$golden" update --list="$list"
says 'refuses'
[ -e "$work/lists/va.sm_80.ptx" ] && fail "update wrote a file in CI"
expect 0 env CI= "$golden" update --list="$list"
says '4 files written'
expect 0 "$golden" check --list="$list"
last_line '^2 passed, 0 failed, 0 skipped; '
[ "$(wc -l <"$work/out")" = 1 ] || fail "check says more than its last line"
expect 0 "$golden" update --list="$list"
says '^0 files written'
expect 2 "$golden" check --list="$list" other
expect 2 "$golden" check --list="$work/lists/none.txt"

# Mistakes in the list have a place.
printf 'va ../specs/vector_add.yaml targets=sm_80\nva ../specs/matmul.yaml targets=sm_80\n' >"$work/lists/twice.txt"
expect 2 "$golden" update --list="$work/lists/twice.txt"
says 'lists/twice.txt:2: a second golden `va`; the first is on line 1$'
printf '\nvb ../specs/none.yaml targets=sm_80\nvc ../specs/vector_add.yaml Q=1 targets=sm_80\n' >"$work/lists/wrong.txt"
expect 2 "$golden" update --list="$work/lists/wrong.txt"
says '^vb sm_80: could not tell: .*lists/wrong.txt:2)$'
says '^vc sm_80: could not tell: .*lists/wrong.txt:3)$'

# Called from anywhere; with an absolute spec.
(cd "$work/lists" && "$golden" check --list=list.txt) >"$work/out" 2>&1 || fail "check in the list's directory"
(cd "$work" && "$golden" check --list=lists/list.txt) >"$work/out" 2>&1 || fail "check in another directory"
printf 'va %s/specs/vector_add.yaml block=512 dtype=f16 targets=sm_80\n' "$work" >"$work/lists/absolute.txt"
expect 0 "$golden" check --list="$work/lists/absolute.txt"

# Another text under the same LLVM is a change, under another LLVM only the facts count.
sed -i 's/\.reqntid 256/.reqntid 128/' "$work/lists/va.sm_80.ptx"
expect 1 "$golden" diff --list="$list"
says '^va sm_80: changed: text'
says '^-\.reqntid 128'
says '^+\.reqntid 256'
says 'the same instructions, registers and bytes'
expect 1 "$golden" check --list="$list"
says '^va sm_80: changed: text (the same counts)$'
last_line '^1 passed, 1 failed, 0 skipped'
sed -i 's/^llvm .*/llvm 1.0/' "$work/lists/va.sm_80.facts"
expect 0 "$golden" check --list="$list"
last_line '^2 passed, 0 failed, 0 skipped; 1 texts not compared (recorded with another LLVM'
sed -i 's/^count ld.global .*/count ld.global 99/' "$work/lists/va.sm_80.facts"
expect 1 "$golden" check --list="$list"
says '^va sm_80: changed: facts'
expect 2 "$golden" check --require-ptxas --ptxas=/no/such/ptxas --list="$list"

expect 2 "$golden" check --list="$list" va misspelt
says "has no golden 'misspelt'"

# Without ptxas: its checks are skipped and counted.
expect 0 "$golden" update --list="$list"
expect 2 env TL_PTXAS=/no/such/ptxas "$golden" check --require-ptxas --list="$list"
expect 0 env TL_PTXAS=/no/such/ptxas "$golden" check --list="$list"
last_line '^2 passed, 0 failed, 0 skipped; 2 ptxas checks skipped (no ptxas)$'

# What changed, in classes; vectors that are lost show as accesses of fewer bytes.
row='^  %s  *[0-9]* →  *[0-9]*  *[-+][0-9]*$'
sed -i 's/global.b32/global.v4.b32/' "$work/lists/va.sm_80.ptx"
expect 1 "$golden" diff --list="$list" va
says '^  st.global 16 B  *1 →  *0  *-1$'
says '^  st.global 4 B  *0 →  *1  *+1$'
grep -q '^  threads\|^  ld.global' "$work/out" && fail "the table has rows that did not change"

# Predicated instructions that share a line with another count.
sed -i 's/@%p2 ld.global.nc.b16/@%p2 ld.global.nc.v4.b16/' "$work/lists/va.sm_80.ptx"
expect 1 "$golden" diff --list="$list" va
says '^  ld.global 2 B  *2 →  *4  *+2$'

# A smaller tile.
printf 'mm ../specs/matmul.yaml targets=sm_80\n' >"$list"
expect 0 "$golden" update --list="$list"
printf 'mm ../specs/matmul.yaml block_M=64 stages=2 targets=sm_80\n' >"$list"
expect 1 "$golden" check --list="$list"
says '^mm sm_80: changed: facts and text (mma 128 → 64, .* more)$'
[ "$(wc -l <"$work/out")" = 2 ] || fail "check prints more than a line for a golden"
expect 1 "$golden" diff --list="$list"
for label in mma ldmatrix cp.async 'dynamic shared (bytes)'; do
  # shellcheck disable=SC2059
  says "$(printf "$row" "$label")"
done
[ $has_ptxas = no ] || says "$(printf "$row" registers)"
says '^… [0-9]* more lines (--full shows them)$'
[ "$(wc -l <"$work/out")" -lt 240 ] || fail "diff is not limited"
expect 1 "$golden" diff --full --list="$list"
grep -q -- '--full' "$work/out" && fail "--full is limited"
# The whole difference turns the recorded text into the new one.
if command -v patch >/dev/null; then
  sed -n '/^--- /,/^[0-9]* passed/p' "$work/out" | grep -v '^[0-9]* passed' >"$work/patch"
  patch -s "$work/lists/mm.sm_80.ptx" "$work/patch" || fail "the difference is no patch"
  "$bin/tl-llc" "$work/specs/matmul.yaml" -D block_M=64 -D stages=2 --target=sm_80 --emit=ptx -o "$work/new.ptx"
  cmp -s "$work/lists/mm.sm_80.ptx" "$work/new.ptx" || fail "the difference does not lead to the new text"
fi
# A spec that no longer compiles is not "changed"; one that is changed beside it still counts.
printf 'gone ../specs/gone.yaml targets=sm_80\nmm ../specs/matmul.yaml block_M=32 targets=sm_80\n' >"$list"
expect 2 "$golden" check --list="$list"
last_line '^0 passed, 1 failed, 1 skipped'

# A doc of any characters stands in the manifest, in ASCII, which ptxas accepts.
sed 's/^doc: .*/doc: "C ≥ \\"a\\" 𝛼 \\\\ \\n*\/ é"/' "$work/specs/vector_add.yaml" >"$work/specs/doc.yaml"
expect 0 "$bin/tl-llc" "$work/specs/doc.yaml" --emit=ptx -o "$work/doc.ptx"
grep -q '"doc": "C \\u2265 \\"a\\" \\ud835\\udefc \\\\ \\n\*/ \\u00e9",$' "$work/doc.ptx" || fail "doc: $(grep '"doc"' "$work/doc.ptx")"
LC_ALL=C grep -q '[^ -~	]' "$work/doc.ptx" && fail "the PTX has characters that are not ASCII"
[ $has_ptxas = no ] || expect 0 "$bin/tl-llc" "$work/specs/doc.yaml" --emit=cubin -o "$work/doc.cubin"

# The CMake function, used as an installed package's config uses it.
if command -v cmake >/dev/null && command -v ctest >/dev/null; then
  printf 'va ../specs/vector_add.yaml block=512 dtype=f16 targets=sm_80,sm_90a\n' >"$list"
  cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(goldens LANGUAGES NONE)
enable_testing()
set(TL_GOLDEN_PROGRAM $golden)
include($2/tools/libtl/tlGolden.cmake)
tl_add_golden_test(NAME pinned LIST lists/list.txt GOLDENS va UPDATE_TARGET record LABELS golden)
END
  expect 0 cmake -G Ninja -S "$work" -B "$work/build"
  expect 0 cmake --build "$work/build" --target record
  expect 0 ctest --test-dir "$work/build" -R '^pinned$'
  says '100% tests passed'
  sed -i 's/^count ld.global .*/count ld.global 99/' "$work/lists/va.sm_80.facts"
  expect 8 ctest --test-dir "$work/build" --output-on-failure -L golden
  says 'va sm_80: changed: facts'
fi
finish
