# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs the module, libtl.so and the tools into a wheel. The same files give the same bytes.

Usage: make_wheel.py VERSION LIBTL.SO TL-LLC OUTPUT-DIRECTORY [STRIP]
"""

import base64
import hashlib
import os
import stat
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TAG = "py3-none-manylinux_2_35_x86_64"  # the oldest glibc that release builds run with
METADATA = """Metadata-Version: 2.1
Name: tl-llc
Version: {version}
Summary: GPU tile kernels from YAML specs: compile and call them
License: Apache-2.0 WITH LLVM-exception
Requires-Python: >=3.8
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: tl-llc\nRoot-Is-Purelib: false\nTag: {tag}\n"
SCRIPTS = "[console_scripts]\n" + "".join(f"{name} = tl._tools:{name.replace('-', '_')}\n" for name in ("tl-llc", "tl-run", "tl-opt", "tl-golden"))


def stripped(path, strip):
    if strip:
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "out")
            subprocess.run([strip, "-o", out, path], check=True)
            return open(out, "rb").read()
    return open(path, "rb").read()


def main():
    version, library, program, directory = sys.argv[1:5]
    strip = sys.argv[5] if len(sys.argv) > 5 else None
    info = f"tl_llc-{version}.dist-info"
    files = {f"tl/{name}": open(os.path.join(HERE, "tl", name), "rb").read() for name in os.listdir(os.path.join(HERE, "tl")) if name.endswith(".py")}
    files["tl/lib/libtl.so.0"] = stripped(library, strip)
    files["tl/bin/tl-llc"] = stripped(program, strip)
    root = os.path.join(HERE, "..", "..")
    for name in ("LICENSE", "THIRD_PARTY_NOTICES.md"):
        files[f"{info}/licenses/{name}"] = open(os.path.join(root, name), "rb").read()
    files[f"{info}/METADATA"] = METADATA.format(version=version).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tag=TAG).encode()
    files[f"{info}/entry_points.txt"] = SCRIPTS.encode()
    record = ""
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(files[name])}\n"
    record += f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, f"tl_llc-{version}-{TAG}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            # pip makes executable only what says that it is a regular file, too.
            entry.external_attr = (stat.S_IFREG | (0o755 if name.startswith(("tl/bin/", "tl/lib/")) else 0o644)) << 16
            out.writestr(entry, files[name])
    print(path)


main()
