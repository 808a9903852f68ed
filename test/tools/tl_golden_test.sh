# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
. "$(dirname "$0")/lib.sh"
golden=$bin/tl-golden
unset CI
printf '# a comment\nva kernels/vector_add.yaml block=512 dtype=f16 targets=sm_80,sm_90a\n' >"$work/list.txt"

expect 2 "$golden"
expect 2 "$golden" look
expect 2 "$golden" check --list="$work/list.txt"
says 'could not tell'
expect 2 env CI=1 "$golden" update --list="$work/list.txt"
expect 0 "$golden" update --list="$work/list.txt"
says '4 files written'
expect 0 "$golden" check --list="$work/list.txt"
says '2 same, 0 changed'
expect 0 "$golden" update --list="$work/list.txt"
says '^0 files written'
expect 2 "$golden" check --list="$work/list.txt" other

# Another text under the same LLVM is a change, under another LLVM only the facts count.
sed -i 's/\.reqntid 256/.reqntid 128/' "$work/va.sm_80.ptx"
expect 1 "$golden" diff --list="$work/list.txt"
says '^va sm_80: changed: text'
says '^-\.reqntid 128'
says '^+\.reqntid 256'
sed -i 's/^llvm .*/llvm 1.0/' "$work/va.sm_80.facts"
expect 0 "$golden" check --list="$work/list.txt"
says 'checks skipped'
sed -i 's/^count ld.global .*/count ld.global 99/' "$work/va.sm_80.facts"
expect 1 "$golden" check --list="$work/list.txt"
says '^va sm_80: changed: facts'
expect 2 "$golden" check --require-ptxas --ptxas=/no/such/ptxas --list="$work/list.txt"

expect 2 "$golden" check --list="$work/list.txt" va misspelt
says "has no golden 'misspelt'"

# Without ptxas: its checks are skipped and counted.
expect 0 "$golden" update --list="$work/list.txt"
expect 2 env TL_PTXAS=/no/such/ptxas "$golden" check --require-ptxas --list="$work/list.txt"
expect 0 env TL_PTXAS=/no/such/ptxas "$golden" check --list="$work/list.txt"
tail -1 "$work/out" | grep -q '^2 checks skipped: no ptxas$' || fail "the last line does not count skipped checks"
finish
