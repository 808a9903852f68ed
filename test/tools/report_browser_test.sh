# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Reports in a browser without a window: what it makes of the page, measured by a script that only the test's copy has.
# Skipped where there is no Chromium.
. "$(dirname "$0")/lib.sh"
sources=$2
browser=
for name in chromium chromium-browser google-chrome; do
  command -v $name >/dev/null && browser=$name && break
done
[ -n "$browser" ] || {
  echo "skipped: no chromium (Debian: chromium)"
  exit 77
}
browse() { timeout 100 $browser --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" --window-size=1500,1200 "$@"; }

# Every link leads somewhere, every label lies in its picture, nothing is wider than the page, decisions can be seen.
cat >"$work/look.js" <<'END'
<script>
const wrong = [];
for (const a of document.querySelectorAll('a[href^="#"]'))
  if (!document.getElementById(a.getAttribute('href').slice(1))) wrong.push('no ' + a.getAttribute('href'));
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect();
  for (const part of svg.querySelectorAll('text, rect, circle')) {
    const box = part.getBoundingClientRect();
    if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
      wrong.push(svg.getAttribute('aria-label') + ': outside: ' + part.textContent);
  }
}
if (document.documentElement.scrollWidth > window.innerWidth) wrong.push('the page is wider than its window');
const says = [...document.querySelectorAll('.says')];
if (!says.length || says.some(s => s.getBoundingClientRect().height < 8)) wrong.push('decisions are not seen');
const labels = [...document.querySelectorAll('svg')].map(s => s.getAttribute('aria-label'));
const resources = performance.getEntriesByType('resource').length;
document.body.innerHTML = '<pre id="result">' + JSON.stringify({wrong: wrong.slice(0, 5), labels: [...new Set(labels)], resources}) + '</pre>';
</script>
END

# look NAME EXPECTED-LABELS tl-llc-arguments…
look() {
  name=$1 labels=$2
  shift 2
  start=$(date +%s%N)
  "$bin/tl-llc" "$@" --emit=report --ptxas=none -o "$work/$name.html" || fail "$name: no report"
  echo "$name: $((($(date +%s%N) - start) / 1000000)) ms, $(wc -c <"$work/$name.html") bytes"
  [ "$(wc -c <"$work/$name.html")" -le 2000000 ] || fail "$name: more than 2 MB"
  cat "$work/$name.html" "$work/look.js" >"$work/copy.html"
  browse --enable-logging=stderr --dump-dom "file://$work/copy.html" >"$work/out" 2>"$work/err"
  grep CONSOLE "$work/err" && fail "$name: the console has messages"
  says '"wrong":\[\]'
  says '"resources":0'
  for label in $labels; do grep -q "\"labels\":.*\"$label" "$work/out" || fail "$name: no picture '$label'"; done
  browse --screenshot="$work/$name.png" "file://$work/$name.html" 2>/dev/null
  # A blank page is some kilobytes.
  [ "$(wc -c <"$work/$name.png")" -gt 40000 ] || fail "$name: the picture of the page is empty"
}

cat >"$work/bench.json" <<'END'
{"format": 1, "device": "a GPU", "machine": {"flops f16 mma": 9.89e14, "dram_bytes": 4.8e12}, "results": [
 {"kernel": "matmul", "bindings": "{M: 4096}", "target": "sm_90a", "flops": 1.37e11, "bytes": 1.0e8, "unit": "f16 mma",
  "roofline": 1.39e-4, "cold": {"burst": {"count": 9, "median": 1.8e-4, "least": 1.7e-4, "most": 1.9e-4}}}]}
END
look matmul 'roofline timeline ring layout shared' "$sources/kernels/matmul.yaml" --target=sm_90a -D block_N=256 -D threads=256 --bench="$work/bench.json"
look attention 'timeline ring layout shared' "$sources/kernels/flash_attention.yaml" --target=sm_90a
look ampere 'timeline ring' "$sources/kernels/matmul.yaml" --target=sm_80
look add '' "$sources/kernels/vector_add.yaml"
finish
