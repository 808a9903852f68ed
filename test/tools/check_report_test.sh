# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What --check says of cases that fail, on a terminal, in JSON and in XML.
. "$(dirname "$0")/lib.sh"
run=$bin/tl-run

# A product whose first rows of each left tile are wrong; an element that nobody writes.
cat >"$work/product.yaml" <<'END'
kernel: product
params: {M: 100, N: 130, K: 64}
args:
  A: in f16[M, K]
  B: in f16[K, N]
  C: out f32[M, N]
grid:
  bx: ceildiv(N, 64)
  by: ceildiv(M, 64)
threads: 128
shared:
  A_s: f16[64, 64]
  B_s: f16[64, 64]
fragment:
  acc: f32[64, 64]
body:
  - clear: acc
  - copy: A[by * 64, 0] -> A_s
  - copy: B[0, bx * 64] -> B_s
  - gemm: acc += A_s @ B_s
  - copy: acc -> C[by * 64, bx * 64]
check:
  reference:
    - C[m, n] = sum[k](A[m, k] * B[k, n]) + (1 if m % 64 < 16 and n < 64 else 0)
  tolerance: {rtol: 0.01, atol: 0.01}
---
kernel: rest
params: {N: 1000, block: 64}
args:
  A: in f32[N]
  C: out f32[N]
grid:
  b: ceildiv(N, block)
threads: 64
body:
  - parallel: i in block
    do:
      - if: b * block + i != 77
        then:
          - C[b * block + i] = A[b * block + i]
check:
  reference:
    - C[i] = A[i] + (1 if 40 <= i and i < 43 else 0)
  cases:
    - {N: 1000}
    - {N: 10, block: 0}
    - {N: 30}
END
expect 1 "$run" --check --device=emu "$work/product.yaml" "$work/none.yaml" --json="$work/r.json" --junit="$work/r.xml"
says '^    \[0, 3\]: .*, expected .*; block (0, 0, 0), \[0, 3\] of its tile, warp 0, lane 1, product.yaml:21$'
says '^    they lie in \[0:80, 0:64\], at \[0:16, 0:64\] of their tiles, in 2 of 6 blocks; warps 0, 2, lanes 0-31$'
says '^    \[41\]: .*; block (0, 0, 0), \[41\] of its tile, warp 1, lane 9, product.yaml:'
says '^    \[77\]: nan, expected .*; nobody wrote it$'
says '^    they lie in \[40:78\]; nobody wrote 1 of them; the others are at \[40:43\] of its tile, in 1 of 16 blocks; warp 1, lanes 8-10$'
# A case that does not compile is counted, the next one runs, and the sums come last.
says '^case 3 of 3 {N: 30}$'
says '^rest: 1 of 3 cases passed on the emulator (late landing)$'
says '^total: 1 of 4 cases passed in 2 kernels, 1 did not run to the end; 1 spec could not be checked$'
if command -v python3 >/dev/null; then
  python3 - "$work" <<'END' || fail "the reports are not what they ought to be"
import json, sys, xml.etree.ElementTree as xml
report = json.load(open(sys.argv[1] + "/r.json"))
cases = report["cases"]
assert report["summary"] == {"cases": 4, "passed": 1, "failed": 2, "errors": 1, "specs_not_checked": 1}, report["summary"]
assert [c["outcome"] for c in cases] == ["failed", "failed", "error", "passed", "error"], cases
output = cases[0]["outputs"][0]
assert output["name"] == "C" and output["type"] == "f32[100, 130]" and output["wrong"] == 2048 and len(output["first"]) == 5
first = output["first"][3]
assert (first["block"], first["in_tile"], first["warp"], first["lane"], first["line"]) == ([0, 0, 0], [0, 3], 0, 1, "product.yaml:21"), first
assert cases[1]["outputs"][0]["first"][3]["unwritten"] and cases[1]["outputs"][0]["first"][3]["value"] == "nan"
assert cases[4]["kernel"] is None and "No such file" in cases[4]["message"]
root = xml.parse(sys.argv[1] + "/r.xml").getroot()
assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "2", "2"), root.attrib
suites = list(root)
assert suites[1].get("name").endswith("product.yaml: rest") and len(suites) == 3
assert "nobody wrote it" in suites[1][0].find("failure").text and "TL0261" in suites[1][1].find("error").text
assert suites[1][2].get("name") == "case 3 {N: 30}" and not list(suites[1][2])
END
fi

# A spec that is given twice is checked twice, and counts so. Names that XML cannot hold do not spoil it.
add=kernels/vector_add.yaml
bad=$work/$(printf 'a\377\001<&>.yaml')
expect 1 "$run" --check --device=emu --case=1 "$add" "$add" "$bad" --junit="$work/r.xml"
says '^total: 2 of 2 cases passed in 2 kernels; 1 spec could not be checked$'
if command -v python3 >/dev/null; then
  python3 -c 'import sys, xml.etree.ElementTree as xml
names = [s.get("name") for s in xml.parse(sys.argv[1]).getroot()]
assert names[:2] == ["kernels/vector_add.yaml: vector_add"] * 2 and names[2].endswith("/a\ufffd\ufffd<&>.yaml"), names' "$work/r.xml" ||
    fail "--junit with odd names"
fi

# Alone on standard output; only one of them.
expect 1 "$run" --check --device=emu --json --case=1 --kernel=rest "$work/product.yaml"
head -c 12 "$work/out" | grep -q '^{"format": 1' && tail -1 "$work/out" | grep -q '}}$' || fail "--json is not alone on standard output"
expect 1 "$run" --check --device=emu --junit=- --case=1 --kernel=rest "$work/product.yaml"
head -1 "$work/out" | grep -q '^<?xml' || fail "--junit=- is not alone on standard output"
expect 2 "$run" --check --json --findings=- "$work/product.yaml"
expect 2 "$run" --check --json="$work/r" --junit="$work/r" "$work/product.yaml"
says '^tl-run: --json and --junit write to the same file, '
expect 2 "$run" --junit=x "$work/product.yaml"

# Tiles of a persistent kernel; stores by TMA; without checks nobody is remembered.
expect 1 "$run" --check --device=emu -D persistent=true --kernel=product --target=sm_90a "$work/product.yaml"
says '\[0, 3\]: .*; tile 0, \[0, 3\] of it, '
says ' in 2 of 6 tiles'
sed 's/C\[by \* 64, bx \* 64\]$/C[by * 64, bx * 64]\n    via: tma/; s/N: 130/N: 132/' "$work/product.yaml" >"$work/tma.yaml"
expect 1 "$run" --check --device=emu --kernel=product --target=sm_90a "$work/tma.yaml"
says 'by an asynchronous operation, tma.yaml:21$'
says 'in 2 of 6 blocks; by asynchronous operations$'
expect 1 "$run" --check --device=emu --sanitize=none --kernel=product "$work/product.yaml"
says '^    they lie in \[0:80, 0:64\]$'

# What takes too long is a case that failed, in all forms.
cat >"$work/slow.yaml" <<'END'
kernel: slow
params: {N: 32}
args: {C: "out f32[N]"}
grid: {bx: 1}
threads: 32
body:
  - parallel: i in 32
    do:
      - C[i] = 0
check:
  reference:
    - t = sum[k in 0:N, j in 0:N]((k ^ j) % 7)
    - C[i] = t - t
  cases:
    - {N: 4}
    - {N: 400000}
END
expect 1 "$run" --check --device=emu --timeout=1 --diagnostics=json --json="$work/s.json" --junit="$work/s.xml" "$work/slow.yaml"
says "^  FAILED: the reference of case 2 of 'slow' did not end within 1 s (--timeout)$"
says '^slow: 1 of 2 cases passed on the emulator'
grep -q '"code": "LIMIT".*did not end within 1 s' "$work/err" && [ "$(head -c 1 "$work/err")" = '[' ] || fail "the message is no JSON"
grep -q '"case": 2, "of": 2, .*"outcome": "error".*did not end' "$work/s.json" || fail "--json misses what took too long"
grep -q '<error message="the reference of case 2' "$work/s.xml" || fail "--junit misses what took too long"

# A loop that does not end is named.
cat >"$work/endless.yaml" <<'END'
kernel: endless
args: {C: "out f32[64]"}
threads: 64
local: {n: i32}
body:
  - n = 0
  - while: n < 1
    do:
      - n = n * 2
  - parallel: i in 64
    do:
      - C[i] = n
END
expect 1 "$run" --device=emu --timeout=1 --sanitize=all "$work/endless.yaml"
says 'warp 0 lanes 0-31 run, in the loop at endless.yaml:7 (while: n < 1)$'

# Progress goes to a terminal only.
grep -q 'of 3 done' "$work/err" && fail "progress is shown to nobody"
if command -v script >/dev/null; then
  script -qec "$run --check --device=emu --kernel=rest $work/product.yaml" /dev/null >"$work/terminal" 2>&1 </dev/null
  grep -q 'rest 3/3: {N: 30}, 2 of 3 done, about [0-9]* s left' "$work/terminal" || fail "no progress on a terminal"
fi
finish
