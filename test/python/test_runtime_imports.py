# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime needs NumPy and the standard library only."""

import subprocess
import sys


def test_the_runtime_does_not_import_the_compiler():
    code = "import sys, twofour.runtime; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(run.stdout.split())
    assert {"twofour", "numpy"} <= imported
    assert not imported & {"mlir", "torch_mlir", "llvmlite", "scipy", "networkx", "xdsl"}
