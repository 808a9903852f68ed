#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A wheel is the same bytes again, and its module and tools run from where it was unpacked, as pip does it.
set -eu
python=$1
library=$2
program=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
for i in 1 2; do "$python" -B bindings/python/make_wheel.py 0.1.0 "$library" "$program" "$work/$i" strip >"$work/name$i"; done
wheel=$(cat "$work/name1")
cmp "$wheel" "$(cat "$work/name2")"
"$python" -B - "$wheel" "$work/site" <<'END'
import base64, csv, hashlib, io, os, stat, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
record = [n for n in archive.namelist() if n.endswith("/RECORD")][0]
for name, digest, size in csv.reader(io.StringIO(archive.read(record).decode())):
    if name == record:
        continue
    data = archive.read(name)
    want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    assert digest == "sha256=" + want and int(size) == len(data), name
archive.extractall(sys.argv[2])
for entry in archive.infolist():
    mode = entry.external_attr >> 16
    assert stat.S_ISREG(mode), entry.filename
    if mode & 0o111:
        os.chmod(os.path.join(sys.argv[2], entry.filename), 0o755)
END
env -u TL_LIBRARY PYTHONPATH="$work/site" "$python" -B - <<'END'
import tl
spec = "kernel: k\nargs:\n  X: inout f32[32]\nbody:\n  - parallel: i in 32\n    do:\n      - X[i] += 1\n"
import array
x = array.array("f", range(32))
tl.compile_text(spec, device=tl.emulator())(x)
assert list(x) == [i + 1.0 for i in range(32)], x
assert "/site/tl/lib/libtl.so.0" in open("/proc/self/maps").read()
END
PYTHONPATH="$work/site" "$python" -B -c 'import sys; sys.argv[1:] = ["--version"]; import tl._tools; tl._tools.tl_run()' | grep -q "^tl-run "
