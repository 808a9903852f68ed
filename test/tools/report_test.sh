# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tl-llc --emit=report: one page that needs nothing else, with every decision at its line.
set -u
bin=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-report.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
  echo "FAILED: $*"
  failed=1
}
has() { grep -qF -- "$1" "$work/page.html" || fail "no '$1'"; }
report() { "$bin/tl-llc" "$@" --emit=report --ptxas=none -o "$work/page.html" 2>"$work/err" || fail "tl-llc $*: $(cat "$work/err")"; }

report "$source/kernels/matmul.yaml" --target=sm_90a -D dtype=bf16
[ -s "$work/err" ] && fail "remarks are printed, too"
# The remark on the gemm, in the row of its line.
line=$(grep -n 'gemm:' "$source/kernels/matmul.yaml" | cut -d: -f1)
grep "^<tr id=\"s$line\">" "$work/page.html" | grep -q 'class="says">wgmma.m64n' || fail "the gemm's decision is not at line $line"
has "'A_s' lies at byte 0 of shared memory"
has '<h2 id="memory">Shared memory over time</h2>'
has ': iteration i lies in buffer i mod 3, 16384 bytes each'
has 'thread 4 (warp 0, lane 4), register 0'
has 'which 16 bytes (row, first column) lie where'
has "<td class=\"n\"><a href=\"#s$line\">$line</a></td><td>	wgmma.mma_async"
has 'ptxas</th><td>not found'
has '%acc'
# One role: a lane for the block, the copy engine and the tensor cores, and which copy ends which wait.
has 'aria-label="timeline"'
has '>block, 4 warps</text>'
has '<title>waits for A_s+B_s full, iteration 0</title>'
grep -q '<line x1=[^>]*stroke="#c55"' "$work/page.html" || fail "nothing ends a wait"
report "$source/kernels/matmul.yaml" --target=sm_90a -D block_N=256 -D threads=256
has '>math, 8 warps</text>'
has '>load, 4 warps</text>'
has '<title>arrives at A_s+B_s empty, iteration 0</title>'
has '<title>copy of B_s, iteration 7</title>'
report "$source/kernels/matmul.yaml" --target=sm_90a -D dtype=bf16
# Measured cases beside the roofline.
cat >"$work/bench.json" <<END
{"format": 1, "device": "a <GPU>", "machine": {"flops f16 mma": 1.0e15, "dram_bytes": 5.0e12}, "results": [
 {"kernel": "other", "bindings": "{}", "target": "sm_90a", "cold": {"burst": {"median": 1}}},
 {"kernel": "matmul", "bindings": "{M: 4096}", "target": "sm_90a", "flops": 1.0e11, "bytes": 1.0e8, "unit": "f16 mma",
  "roofline": 1.0e-4, "cold": {"burst": {"count": 9, "median": 2.0e-4, "least": 1.9e-4, "most": 2.1e-4}}}]}
END
report "$source/kernels/matmul.yaml" --target=sm_90a --bench="$work/bench.json"
has '<h2 id="roofline">Roofline</h2>'
has 'a &lt;GPU&gt;'
has '<td>{M: 4096} sm_90a</td><td>200 µs</td><td>500</td><td>500</td><td>50.0 %</td>'
has 'aria-label="roofline"'
"$bin/tl-llc" "$source/kernels/vector_add.yaml" --emit=report --bench="$work/bench.json" >"$work/out" 2>&1 && fail "times of another kernel are taken"
grep -q "bench.json has no times of 'vector_add'" "$work/out" || fail "the refusal: $(cat "$work/out")"
"$bin/tl-llc" "$source/kernels/vector_add.yaml" --bench=x >/dev/null 2>&1 && fail "--bench without a report"
report "$source/kernels/matmul.yaml" --target=sm_90a -D dtype=bf16
# Whoever reads it needs no network and no scripts.
grep -qiE '<script|<link|<img|src=|href="[^#]|url\(|@import|http' "$work/page.html" && fail "the page refers to something else"
# Every tag is closed, in order.
tr '<' '\n' <"$work/page.html" | awk '
  /^(\/)?[a-z]/ {
    tag = $0; sub(/[ >].*/, "", tag); whole = $0; sub(/>.*/, "", whole)
    if (tag == "meta" || whole ~ /\/$/) next
    if (tag !~ /^\//) stack[++depth] = tag
    else if (depth == 0 || "/" stack[depth] != tag) { print "closed: " tag ", open: " stack[depth]; exit 1 }
    else depth--
  }
  END { if (depth) { print "open: " stack[depth]; exit 1 } }' >"$work/tags" || fail "$(cat "$work/tags")"
# What stands in a spec is text, not tags.
cat >"$work/odd.yaml" <<END
kernel: odd
doc: a <b>bold</b> "claim" & more
args:
  X: inout f32[32]
body:
  - parallel: i in 32
    do:
      - X[i] = 1 if X[i] < 2 and X[i] > 0 else X[i]  # <script>
END
report "$work/odd.yaml"
has 'a &lt;b&gt;bold&lt;/b&gt; &quot;claim&quot; &amp; more'
has '# &lt;script&gt;'
grep -q '<script>\|<b>' "$work/page.html" && fail "text of the spec became tags"
has 'None is used.'
start=$(date +%s%N)
report "$source/kernels/flash_attention.yaml" --target=sm_90a
took=$((($(date +%s%N) - start) / 1000000))
[ "$took" -lt 5000 ] || fail "the page took $took ms" # 0.5 s on an idle core
[ "$(wc -c <"$work/page.html")" -lt 2000000 ] || fail "the page has more than 2 MB"
"$bin/tl-llc" "$source/test/spec/ok/chains.yaml" --kernel=forms --emit=report >"$work/out" 2>&1 && fail "a chain is not refused"
grep -q "name one of the chain's by --kernel" "$work/out" || fail "the refusal: $(cat "$work/out")"
exit $failed
