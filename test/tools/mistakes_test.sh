# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The mistakes that the language page promises to name, each as a spec: the place in the YAML and the code.
. "$(dirname "$0")/lib.sh"
llc=$bin/tl-llc

# product [sed expression]: a correct product, changed.
product() {
  sed "$1" <<'EOF'
kernel: product
params: {M: 256, N: 256, K: 256, bk: 32, d: f16}
args:
  A: in d[M, K]
  B: in d[K, N]
  C: out f32[M, N]
grid:
  bx: N // 64
  by: M // 64
threads: 128
shared:
  a: d[64, bk]
  b: d[bk, 64]
fragment:
  c: f32[64, 64]
body:
  - clear: c
  - pipelined: k in ceildiv(K, bk)
    do:
      - copy: A[by * 64, k * bk] -> a
      - copy: B[k * bk, bx * 64] -> b
      - gemm: c += a @ b
  - copy: c -> C[by * 64, bx * 64]
EOF
}
# told NAME RC PATTERN [options]: exit RC with a line that matches.
told() {
  name=$1 rc=$2 pattern=$3
  shift 3
  expect "$rc" "$llc" "$work/$name.yaml" -o /dev/null "$@"
  says "$name.yaml:$pattern"
}

product '' >"$work/right.yaml"
expect 0 "$llc" "$work/right.yaml" -o /dev/null
[ -s "$work/err" ] && fail 'a correct product is warned of' && cat "$work/err"
product 's/  - clear: c//' >"$work/unclear.yaml"
told unclear 0 "22:.*warning: .*'c'.*\[TL0501\]"
product 's/  b: d\[bk, 64\]/  b: d[64, bk]/' >"$work/shapes.yaml"
told shapes 1 '22:.*error: .*\[TL0308\]'
says '\.T'
product 's/  - copy: c -> C.*/  - c = c + 1/' >"$work/unwritten.yaml"
told unwritten 0 "6:.*warning: .*'C'.*\[TL0505\]"
product 's/ceildiv(K, bk)/K/' >"$work/past.yaml"
told past 0 "20:.*warning: .* from k = 8 on .*\[TL0503\]"
product 's/bk: 32/bk: 2048/' >"$work/shared.yaml"
told shared 1 '.*error: .*\[TL0640\]'
says "hint: make 'a' smaller"
product 's/64\([],]\)/512\1/g' >"$work/registers.yaml"
told registers 1 '.*error: .*\[TL0641\]'
product 's/threads: 128/threads: 2048/' >"$work/threads.yaml"
told threads 1 '10:.*error: .*\[TL0318\]'
product 's/threads: 128/threads: 0/' >"$work/none.yaml"
told none 1 '10:.*error: .*\[TL0318\]'
product 's/d: f16/d: f8e4m3/' >"$work/target.yaml"
told target 1 '22:.*error: .*sm_89 is the first.*' --target=sm_80 -D d=f8e4m3
product 's/      - gemm: c += a @ b/&\n        mma: mma/; s/d: f16/d: f8e4m3/' >"$work/demanded.yaml"
told demanded 1 '22:.*error: mma does not fit.*sm_89 is the first.*\[TL0601\]' --target=sm_80

cat >"$work/divergent.yaml" <<'EOF'
kernel: divergent
args:
  X: in f32[64]
  Y: out f32[64]
threads: 64
shared:
  s: f32[64]
body:
  - copy: X -> s
  - if: thread_id() < 32
    then:
      - sync:
      - copy: s -> Y
EOF
told divergent 1 '1[0-3]:.*error: .*\[TL0506\]'

cat >"$work/neighbour.yaml" <<'EOF'
kernel: neighbour
args:
  X: in f32[192]
  Y: out f32[256]
grid:
  z: 4
threads: 32
shared:
  s: f32[32]
body:
  - for: k in 2
    do:
      - copy: X[z * 48 + k * 32] -> s
      - copy: s -> Y[z * 64 + k * 32]
EOF
told neighbour 0 "13:.*warning: .*\[TL0504\]"

cat >"$work/outside.yaml" <<'EOF'
kernel: outside
args:
  X: in f32[64]
  Y: out f32[64]
threads: 32
shared:
  s: f32[64]
body:
  - copy: X -> s
  - copy: s[32:96] -> Y
EOF
told outside 1 '10:.*error: .*'

# attention [sed expression]: a running maximum over masked scores, changed.
attention() {
  sed "$1" <<'EOF'
kernel: attention
params: {S: 512, D: 64, W: 100}
args:
  lens: in i32[8]
  Q: in f16[S, D]
  K: in f16[S, D]
  O: out f32[S]
grid:
  by: ceildiv(S, 64)
threads: 128
shared:
  q: f16[64, D]
  k: f16[64, D]
fragment:
  s: f32[64, 64]
  m, before, l: f32[64]
body:
  - copy: Q[by * 64, 0] -> q
  - l = 0
  - m = -inf
  - for: j in ceildiv(S, 64)
    do:
      - copy: K[j * 64, 0] -> k
      - gemm: s = q @ k.T
      - parallel: r, c in 64, 64
        do:
          - s[r, c] = select(j * 64 + c > by * 64 + r - W, s[r, c], -inf)
      - before = m
      - m max= max(s, axis=1)
      - l = l * exp(before - m) + sum(exp(s - m[:, None]), axis=1)
  - copy: l -> O[by * 64]
EOF
}
# With a window the first tile holds no key of the last rows.
attention '' >"$work/window.yaml"
told window 0 "30:.*warning: NaN: 'm' starts at -inf.*\[TL0510\]" -Wno-unused-arg
says 'window.yaml:27:.*note: '
says 'window.yaml:20:.*note: '
# So does a length that the loop knows nothing of, and a row-wise kernel with local scalars.
attention 's/j \* 64 + c > .* - W/j * 64 + c < lens[by]/; s/, W: 100//' >"$work/lengths.yaml"
told lengths 0 "30:.*warning: NaN: .*\[TL0510\]"
cat >"$work/rows.yaml" <<'EOF'
kernel: rows
params: {N: 1000, b: 128}
args:
  X: in f32[64, N]
  last: in i32[64]
  O: out f32[64]
grid:
  r: 64
threads: 128
local:
  m, before, l: f32
fragment:
  x: f32[b]
body:
  - m = -inf
  - l = 0
  - for: j in ceildiv(N, b)
    do:
      - copy: X[r, j * b] -> x
      - parallel: i in b
        do:
          - if: j * b + i >= last[r]
            then:
              - x[i] = -inf
      - before = m
      - m = max(m, max(x))
      - l = l * exp(before - m)
      - l = l + sum(exp(x - m))
  - O[r] = l
EOF
told rows 0 "27:.*warning: NaN: the maximum starts at -inf.*\[TL0510\]"
# A causal mask leaves the first key, a loop over the length has an element, and the rest is the author's care.
attention 's/j \* 64 + c > .* - W/j * 64 + c <= by * 64 + r and j * 64 + c < S/; s/, W: 100//; /lens/d' \
  >"$work/causal.yaml"
sed 's/S: 512/S: dynamic/' "$work/causal.yaml" >"$work/causal_dynamic.yaml"
sed 's/j in ceildiv(S, 64)/j in ceildiv(lens[by], 64)/' "$work/lengths.yaml" >"$work/ragged.yaml"
sed 's/m = -inf/m = -1.0e30/' "$work/lengths.yaml" >"$work/finite.yaml"
sed 's/exp(before - m)/select(m == -inf, 1, exp(before - m))/
  s/exp(s - m\[:, None\])/select(m[:, None] == -inf, 0, exp(s - m[:, None]))/' \
  "$work/lengths.yaml" >"$work/asked.yaml"
for right in causal causal_dynamic ragged finite asked; do
  expect 0 "$llc" "$work/$right.yaml" -o /dev/null
  [ -s "$work/err" ] && fail "$right is warned of" && cat "$work/err"
done

# sections [sed expression]: a correct check and bench section, changed.
sections() {
  sed "$1" <<'EOF'
kernel: sections
params: {M: 64, N: dynamic, d: f32}
args:
  A: in d[M, N]
  order: in i32[M]
  B: out d[M, N]
grid:
  by: M
threads: 32
body:
  - for: k in ceildiv(N, 32)
    do:
      - parallel: i in 32
        do:
          - B[by, k * 32 + i] = A[order[by], k * 32 + i]
check:
  inputs:
    order: permutation
  reference:
    - T[m, n] = A[order[m], n]
    - B[m, n] = T[m, n]
  tolerance: {rtol: 0, atol: 0}
  cases:
    - {M: 64, N: 100}
    - M: 1048576
      N: 1048576
      inputs:
        order: ints(0, M - 1)
bench:
  flops: M * N
  cases:
    - {N: 4096}
EOF
}
sections '' >"$work/sections.yaml"
expect 0 "$llc" "$work/sections.yaml" -o /dev/null
[ -s "$work/err" ] && fail 'correct sections are warned of' && cat "$work/err"
sections 's/ B\[m, n\] = T.*/ U[m, n] = T[m, n]/' >"$work/unassigned.yaml"
told unassigned 1 '6:.*error: .*\[TL0752\]'
sections 's/T\[m, n\] = A/T[m, n + 1] = A/' >"$work/unknown.yaml"
told unknown 1 '20:.*error: .*\[TL0753\]'
sections 's/= T\[m, n\]/= sum(T[m, n])/' >"$work/no_index.yaml"
told no_index 1 '21:.*error: `sum` does not say over which indices \[TL0753\]'
says '^hint: name the indices: `sum\[k\](…)`$'
sections 's/= T\[m, n\]/= where(m < n, T[m, n], 0)/' >"$work/where.yaml"
told where 1 '21:.*error: `where` is no function of index notation \[TL0753\]'
says '^hint: did you mean `select`?$'
sections 's/= T\[m, n\]/= sum[k](T[m, n + k])/' >"$work/range.yaml"
told range 1 '21:.*error: .*`k`.*\[TL0750\]'
sections 's/= T\[m, n\]/= T[n, n]/' >"$work/dims.yaml"
told dims 1 '21:.*error: .*\[TL0751\]'
sections '/    order: permutation/d; s/^  inputs:$/  inputs: {A: ones}/' >"$work/no_generator.yaml"
told no_generator 1 '5:.*error: .*\[TL0755\]'
says '^hint: for example `order: ints(0, 7)` under'
cat >"$work/no_bool.yaml" <<'END'
kernel: no_bool
args:
  keep: in bool[32]
  X: inout f32[32]
threads: 32
body:
  - parallel: i in 32
    do:
      - X[i] = X[i] if keep[i] else 0
check:
  reference:
    - X[i] = X[i] if keep[i] else 0
END
told no_bool 1 '3:.*error: the bool argument `keep` needs a generator \[TL0755\]'
says '^hint: for example `keep: ints(0, 1)` under'
sections 's/ints(0, M - 1)/ints(0, 2 ** 40)/' >"$work/too_large.yaml"
told too_large 1 '28:.*error: .*do not fit i32.*\[TL0754\]'
sections 's/N: 100/N: 100, Q: 1/' >"$work/param.yaml"
told param 1 '24:.*error: .*`Q`.*\[TL0256\]'
sections 's/N: 100//; s/M: 64, }/M: 64}/' >"$work/dynamic.yaml"
told dynamic 1 '4:14:.*error: .*dynamic param that has no value.*\[TL0259\]'
sections 's/rtol: 0,/rtol: -1,/' >"$work/tolerance.yaml"
told tolerance 1 '22:.*error: .*\[TL0756\]'
sections 's/flops: M \* N/flops: M * X/' >"$work/flops.yaml"
told flops 1 '30:.*error: .*`X`.*\[TL0250\]'

# Offsets of a tensor with more than 2^31 elements are 64-bit.
for dims in 70000,40000 dynamic,dynamic; do
  cat >"$work/large.yaml" <<EOF
kernel: large
params: {M: ${dims%,*}, N: ${dims#*,}}
args:
  X: in i8[M, N]
  Y: out i8[M, N]
grid:
  c: ceildiv(N, 128)
  r: M
threads: 128
body:
  - parallel: i in 128
    do:
      - Y[r, c * 128 + i] = X[r, c * 128 + i]
EOF
  expect 0 "$llc" "$work/large.yaml" -o -
  says 'mul\.wide\.[us]32\|mul\.lo\.s64\|mad\.lo\.s64\|mad\.wide'
done
# A single dim may be that long: known when compiled, and at launch, where a plain dynamic param is not wide enough.
for dim in 3000000000 dynamic64 'dynamic64(16)'; do
  cat >"$work/long.yaml" <<EOF
kernel: long
params: {N: $dim}
args:
  X: in f16[N]
  Y: out f16[N]
grid:
  b: ceildiv(N, 256)
threads: 128
body:
  - parallel: i in 256
    do:
      - Y[b * 256 + i] = X[b * 256 + i] * 2
EOF
  expect 0 "$llc" "$work/long.yaml" -o "$work/long.ptx"
  cat "$work/long.ptx" >"$work/out"
  says 'mul\.wide\.[us]32\|mad\.wide\|shl\.b64'
  [ "$dim" = 3000000000 ] || grep -q '"dtype": "i64"' "$work/long.ptx" || fail "$dim is no i64 in the manifest"
  [ "$dim" = 3000000000 ] || grep -q '\.param \.u64 long_param_2' "$work/long.ptx" || fail "$dim is no 64-bit parameter"
done
sed -i 's/N: .*}/N: 2 ** 47}/' "$work/long.yaml"
expect 1 "$llc" "$work/long.yaml" -o -
says 'a dim is 0 to 2^47 - 1.*TL0310\|error: '
sed -i 's/N: .*}/N: 2 ** 40, persistent: 1}/; s/persistent: 1}/}/' "$work/long.yaml"
expect 1 "$llc" "$work/long.yaml" -o -
says 'blocks, the limit is 2147483647 \[TL0661\]'
expect 0 "$llc" "$work/long.yaml" -D persistent=true -o "$work/long.ptx"
# Asynchronous copies by hand: two groups, each read in its turn.
groups() {
  sed "$1" <<'EOF'
kernel: groups
params: {n: 1024}
args:
  X: in f32[n]
  H: in f16[33, 33]
  Y: out f32[n]
threads: 128
shared:
  S, T: f32[128]
  G: f16[32, 32]
body:
  - copy: X[0] -> S
    async: true
  - commit_group:
  - copy: X[128] -> T
    async: true
  - commit_group:
  - wait_group: 1
  - parallel: i in 128
    do: Y[i] = S[i]
  - copy: H[0, 0] -> G
  - wait_group: 0
  - parallel: i in 128
    do: Y[128 + i] = T[i] + G[0, i % 32]
EOF
}
groups '' >"$work/groups.yaml"
expect 0 "$llc" "$work/groups.yaml" -o "$work/groups.ptx"
[ -s "$work/err" ] && fail 'correct groups are warned of' && cat "$work/err"
[ "$(grep -c 'cp.async.wait_group' "$work/groups.ptx")" = 2 ] || fail 'each wait is one'
groups 's/wait_group: 0/sync:/' >"$work/early.yaml"
told early 1 "23:.*error: 'T' is read while .* into it .* not waited for \[TL0515\]"
says 'early.yaml:15:.*note: the copy stands here'
groups '/commit_group:/d' >"$work/uncommitted.yaml"
told uncommitted 1 "17:.*error: 'S' is read .* not committed \[TL0515\]"
groups 's/copy: H\[0, 0\] -> G/copy: H[0, 0] -> T[0:32]/; s/H: in.*/H: in f32[64]/; s/H\[0, 0\]/H[0]/' >"$work/overwritten.yaml"
told overwritten 1 "21:.*error: 'T' is written while .* \[TL0515\]"
groups '/copy: H/a\    async: true' >"$work/unfit.yaml"
told unfit 0 '21:.*warning: .* from .H. to .G. is not asynchronous: .* fewer than 4 bytes \[TL0611\]'
expect 0 "$llc" "$work/unfit.yaml" -Wno-async -o /dev/null
[ -s "$work/err" ] && fail '-Wno-async still warns'
groups '/copy: H/a\    via: cp_async' >"$work/via.yaml"
told via 1 '21:.*error: .* cannot go by cp.async: .* \[TL0610\]'

# Elements of one parallel that share an update, and that read what others write.
for what in 'C[0, j] += 1' 'C[0, j] max= 1'; do
  product "s/  - copy: c -> C.*/  - {parallel: \"i, j in 64, 64\", do: [\"$what\"]}/" >"$work/shared_update.yaml"
  told shared_update 1 '23:.*error: .*\[TL0509\]'
  says '^hint: .*`atomic: value -> X\[…\]`$'
done

# Subscripts that count from the end elsewhere: loads, stores, atomics, copies, tiles, references. Halos are none.
negative() {
  cat >"$work/negative.yaml" <<END
kernel: negative
args:
  A: in f32[64]
  o: inout f32[64]
threads: 64
shared: {s: "f32[64]"}
body:
  - copy: A[-3:+64] -> s
  - parallel: i in 32
    do:
      - o[i] += A[i - 1] * s[i]
  - $1
  - copy: s[0:32] -> o[32:+32]
check:
  reference:
    - o[i] = ${2:-1}
END
}
for form in '{parallel: i in 32, do: ["o[i] += A[-i - 1]"]}' '{parallel: i in 32, do: ["o[-1 - i] = s[i]"]}' \
  '{parallel: i in 32, do: ["s[i] = A[-1]"]}' '{parallel: i in 32, do: [{atomic: "s[i] -> o[-i - 2]"}]}' \
  '{copy: "A[-32:+32] -> s[0:32]"}' '{copy: "s[0:32] -> o[-32:+32]"}'; do
  negative "$form"
  told negative 0 '12:.*warning: .*\[TL0508\]'
  says '^hint: .* subscripts do not count from the end'
done
negative '{parallel: i in 32, do: ["s[i] = s[-i - 1]"]}'
told negative 1 '12:.*error: .*\[TL0502\]'
says '^hint: subscripts do not count from the end: the last element is 63$'
negative 'sync:' 'A[-i - 1]'
expect 1 "$bin/tl-run" --check --device=emu "$work/negative.yaml"
says 'negative.yaml:16:.*warning: .*\[TL0508\]'
negative 'sync:'
expect 0 "$llc" "$work/negative.yaml" -o /dev/null
! grep -q TL0508 "$work/err" || fail "a halo is told of"
# A recurrence of one element reads its own past, which larger extents have.
cat >"$work/one_element.yaml" <<END
kernel: one_element
args:
  A: in i32[1]
  o: inout i32[1]
threads: 32
body:
  - o[0] = A[0]
check:
  inputs:
    A: ints(1, 9)
    o: zeros
  reference:
    - o[i] = o[i - 1] + (A[i] if i < 1 else A[i - 2])
END
expect 0 "$bin/tl-run" --check --device=emu "$work/one_element.yaml"
! grep -q TL0508 "$work/err" || fail "a recurrence of one element is told of"
# An index covers the left side, whose dim the hint names.
cat >"$work/left_dim.yaml" <<END
kernel: left_dim
args:
  A: in f32[4]
  o: inout f32[8]
threads: 32
body:
  - o[0] = A[0]
check:
  reference:
    - o[i] = A[i]
END
expect 1 "$bin/tl-run" --check --device=emu "$work/left_dim.yaml"
says '^hint: .*`i in 0:8`$'
finish
