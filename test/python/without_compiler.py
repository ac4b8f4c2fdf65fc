# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python that cannot import the compiler, as on a machine that only runs bundles."""

import subprocess
import sys

COMPILER = ("mlir", "torch_mlir", "llvmlite", "scipy", "networkx", "xdsl")
# Runs in an interpreter that refuses to import anything of the compiler.
WITHOUT_COMPILER = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {COMPILER!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run(code, *arguments):
    command = [sys.executable, "-c", WITHOUT_COMPILER + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)
