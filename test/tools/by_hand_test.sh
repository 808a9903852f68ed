# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Mistakes with barriers and roles by hand: a right product by hand, changed, and what is said of it, at which statement.
. "$(dirname "$0")/lib.sh"
llc=$bin/tl-llc
right=$(dirname "$0")/../pipeline/by_hand_matmul.yaml
three=$(dirname "$0")/../pipeline/by_hand_roles.yaml

# refused CODE TEXT 'sed expression' [file options]: the changed spec is refused with the code, and the line that has TEXT
# is shown.
refused() {
  code=$1 text=$2 change=$3 file=${4:-$right}
  shift 3
  [ $# -gt 0 ] && shift
  sed "$change" "$file" >"$work/changed.yaml"
  cmp -s "$file" "$work/changed.yaml" && fail "nothing is changed by: $change"
  line=$(grep -n -F -e "$text" "$work/changed.yaml" | head -1 | cut -d: -f1)
  # shellcheck disable=SC2086 # options
  expect 1 "$llc" "$work/changed.yaml" $size "$@" -o /dev/null
  says "error: .*\[$code\]"
  says "changed.yaml:$line:[0-9]*: "
}

size='-D K=1024'
# shellcheck disable=SC2086 # options
expect 0 "$llc" "$right" $size -o /dev/null
[ -s "$work/err" ] && fail 'a right kernel is warned of' && cat "$work/err"

# Counts.
refused TL0516 'wait: empty' 's/arrivals(2)/arrivals(3)/'
says "deadlock, no role can go on: 'load' waits for stage 0 of 'empty', phase 0 (wait of line [0-9]*), which lacks 1 arrival; "
refused TL0516 '- arrive: empty' 's/arrivals(2)/arrivals(1)/'
says "more arrivals than it takes"
refused TL0516 '- arrive: empty' 's/each: warpgroup/each: thread/'
refused TL0516 'wait: full' '/- arrive: full/s/$/\n                bytes: bytes/'
refused TL0441 'full: mbarrier' '/- arrive: full/d'
refused TL0441 'empty: mbarrier' '/- wait: empty/d'
# Phases.
refused TL0516 'wait: empty' 's/(k \/\/ depth + 1) % 2/k \/\/ depth % 2/'
refused TL0516 'wait: full' 's/full\[k % depth\], k \/\/ depth % 2/full[k % depth], (k \/\/ depth + 1) % 2/'
refused TL0440 'wait: full' 's/k \/\/ depth % 2/k \/\/ depth/'
says 'write `(k // depth) % 2`'
# Bytes.
refused TL0516 'wait: full' 's/\], bytes/], bytes - 16/'
says "which gets 16 bytes more than it expects"
refused TL0516 'wait: full' 's/\], bytes/], bytes + 16/'
says "which expects 16 bytes more than copies bring"
refused TL0516 'wait: full' '/- expect: full/d'
refused TL0516 'wait: full' 's/barrier: full/barrier: empty/'
# Order: the slot is given back before it is read, filled before it is free, read before it is full.
refused TL0516 '- copy: A[' '/- gemm/{h;d};/each: warpgroup/{G}'
says "'A_s': copy of line [0-9]* writes copy 0, which gemm of line [0-9]* reads"
refused TL0516 '- gemm' '/- wait: full/{h;d};/each: warpgroup/{G}'
refused TL0516 'wait: B_full' '/- wait: B_empty/d;s/wait: B_full/wait: B_empty[k % 2], 1\n              - wait: B_full/' "$three" --kernel=by_hand_three -D K=1024
says "two phases may have ended before this waits for the first"
# Places.
refused TL0506 '- arrive: full' 's/\( *\)- arrive: full.*/\1- if: thread_id() < 16\n\1  then:\n\1    - arrive: full[k % depth]/'
says 'this arrive stands under a condition that differs between threads'
refused TL0443 'clear: acc' 's/\( *\)- expect: full.*/&\n\1- clear: acc/'
refused TL0442 '- specialize' 's/registers: 40/registers: 56/'
grep -q TL0441 "$work/err" && fail 'barriers are missed in roles that were not looked at'
refused TL0425 'registers: 44' 's/registers: 40/registers: 44/'
# Named barriers: a count that never comes, one that comes too often, a role that arrives again too early, no order.
turns=$(dirname "$0")/../pipeline/by_hand_turns.yaml
expect 0 "$llc" "$turns" --kernel=by_hand_pingpong -D K=512 -o /dev/null
refused TL0516 'sync: turn_of_first' 's/named arrivals(8)/named arrivals(9)/' "$turns" --kernel=by_hand_pingpong
says "waits for [0-9]* warps at 'turn_of_"
size=
refused TL0516 'sync: ready' 's/named arrivals(3)/named arrivals(2)/' "$turns" --kernel=by_hand_handover
refused TL0516 'arrive: ready' '/- if: b/,/free$/d;s/ready, free:/ready:/' "$turns" --kernel=by_hand_handover
says 'these warps may arrive again before the phase has ended at which they did'
# The second arrival comes when the phase before has ended, which these warps cannot know.
cat >"$work/guess.yaml" <<'EOF'
kernel: guess
args:
  Y: out f32[96]
barriers:
  here: named arrivals(3)
body:
  - specialize:
      - role: waits
        warps: 1
        do:
          - for: b in 2
            do:
              - sync: here
          - parallel: i in 32
            do:
              - Y[i] = 1
      - role: goes
        warps: 2
        do:
          - for: b in 2
            do:
              - arrive: here
          - parallel: i in 64
            do:
              - Y[32 + i] = 2
EOF
expect 1 "$llc" "$work/guess.yaml" --target=sm_90a -o /dev/null
says 'arrive of line 22, stage 0 of .here., phase 1: these warps may arrive again before the phase has ended'
refused TL0516 'parallel: i in 128' '/- arrive: ready/d;0,/- parallel/s/\( *\)- parallel/\1- arrive: ready\n&/' "$turns" --kernel=by_hand_handover
size='-D K=1024'
# Products in flight: their slot is given back before they have ended.
flight=$(dirname "$0")/../pipeline/by_hand_flight.yaml
expect 0 "$llc" "$flight" -D K=1024 -o /dev/null
refused TL0516 '- copy: A[' 's/wait_gemm: 1/wait_gemm: 2/' "$flight"
says "'A_s': copy of line [0-9]* writes copy 0, which gemm of line [0-9]* reads"
refused TL0516 '- copy: A[' '/wait_gemm: 1/d' "$flight"
# Behind a loop whose length is known at launch only, a wait for what its last iteration started.
sed 's/^  M: 128$/  M: dynamic/' "$three" >"$work/dynamic.yaml"
expect 0 "$llc" "$work/dynamic.yaml" --kernel=by_hand_block -o /dev/null
size=
refused TL0516 'wait: here[n % 2]' 's/^  M: 128$/  M: dynamic/;s,n // 2 % 2,(n + 2) // 2 % 2,' "$three" --kernel=by_hand_block
size='-D K=1024'

# Clusters: a neighbour's slot is filled before it is free, its barrier gets too few arrivals, its share is not expected.
cluster=$(dirname "$0")/../pipeline/by_hand_cluster.yaml
expect 0 "$llc" "$cluster" -D K=1024 -D columns=4 -o /dev/null
refused TL0516 'copy: A[' 's/arrivals(2 \* columns)/arrivals(2)/' "$cluster"
refused TL0516 'wait: empty' '/cluster: bx$/d' "$cluster"
says "'load' of block 1 waits for stage 0 of 'empty'"
refused TL0516 'copy: A[' '/cluster: bx$/d;s/arrivals(2 \* columns)/arrivals(2)/' "$cluster"
refused TL0516 'copy: A[' 's/\], bytes/], bytes - block_M * block_K/' "$cluster"
refused TL0444 'multicast' 's/A\[by \* block_M/A[bx * block_M/' "$cluster"
# Tiles of other blocks: overwritten before all have read them, read before they are written, a place that is none.
reads=$(dirname "$0")/../pipeline/by_hand_cluster_reads.yaml
size=
expect 0 "$llc" "$reads" -o /dev/null
refused TL0516 'mine = sum' 's/arrivals(columns)       # the/arrivals(1) # the/' "$reads"
says "'part': parallel of line [0-9]* writes copy 0, which tile_load of line [0-9]* reads before it"
refused TL0516 'copy: theirs' 's/(bx + r)/(bx + r + 1)/;/- wait: written/{h;d};/- sums += other/{G;s/\n */\n                  /}' "$reads"
refused TL0516 'wait: written' '0,/cluster: bx$/{//d}' "$reads"
says "'add' of block 1 waits for stage 0 of 'written'"
refused TL0444 'place: ' 's/(bx + r) % columns/bx + r/' "$reads"
says 'a place along .bx. is 0 to 3, and this may be another number'
expect 1 "$llc" "$cluster" --target=sm_80 -o /dev/null
says 'sm_80 has no clusters of blocks \[TL0613\]'
# What threads read is released to the cluster, and acquired from there; what products read costs no fence of the GPU's memory.
grid=$(dirname "$0")/../pipeline/by_hand_cluster_grid.yaml
expect 0 "$llc" "$grid" --kernel=by_hand_cluster_sums --emit=ptx -o "$work/sums.ptx"
grep -q 'mbarrier.arrive.release.cluster.shared::cluster' "$work/sums.ptx" || fail 'what threads read is not released to the cluster'
grep -q 'try_wait.parity.acquire.cluster' "$work/sums.ptx" || fail 'a wait does not acquire what other blocks released'
expect 0 "$llc" "$grid" --kernel=by_hand_cluster_grid --emit=ptx -o "$work/grid.ptx"
grep -q 'release.cluster.shared\|acquire.cluster' "$work/grid.ptx" && fail 'the end of a product is released to the cluster'
# … but not where threads did something for another block before the product, nor what stays in the block: arrivals there, waits for them.
expect 0 "$llc" "$(dirname "$0")/../pipeline/by_hand_cluster_handed.yaml" --emit=ptx -o "$work/handed.ptx"
[ "$(grep -c 'mbarrier.arrive.release.cluster.shared::cluster' "$work/handed.ptx")" = 4 ] || fail 'what threads wrote before a product is not released to the cluster'
[ "$(grep -c 'try_wait.parity.acquire.cluster' "$work/handed.ptx")" = 2 ] || fail 'a wait does not acquire what is behind a product'
grep -q 'mbarrier.arrive.shared::cluster' "$work/handed.ptx" && fail 'an arrival at another block is of the own one alone'
for ptx in sums grid handed; do
  grep 'mbarrier.*\.shared::cta\|mbarrier.*\.shared\.b64' "$work/$ptx.ptx" | grep 'arrive.*\.cluster' && fail "an arrival at the own block is released to the cluster"
done
grep -q 'try_wait.parity.shared.b64' "$work/sums.ptx" || fail 'a wait for the own block acquires from the cluster'

# What a wait for another block acquired comes before copies by TMA.
expect 0 "$llc" "$three" --kernel=by_hand_relay --target=sm_90 --emit=ptx -o "$work/relay.ptx"
grep -A30 'acquire' "$work/relay.ptx" | grep -q 'fence.proxy.async.global' || fail 'no fence of the asynchronous proxy behind wait_until'

# Targets.
expect 1 "$llc" "$right" --target=sm_80 -o /dev/null
says 'sm_80 has no mbarriers that can be waited for \[TL0613\]'
expect 1 "$llc" "$right" --target=sm_90 -o /dev/null
says 'sm_90 has no setmaxnreg, which `registers` of roles need \[TL0613\]'
finish
