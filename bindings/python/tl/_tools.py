# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command-line tools of a wheel: one program, which its name tells what to be."""

import os
import sys


def _run(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tl-llc")
    os.execv(program, [name] + sys.argv[1:])


def tl_llc():
    _run("tl-llc")


def tl_run():
    _run("tl-run")


def tl_opt():
    _run("tl-opt")


def tl_golden():
    _run("tl-golden")
