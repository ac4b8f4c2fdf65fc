# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one place that names the package of MLIR's Python bindings.

`from twofour.mlir import ir, rewrite, vector` imports these modules from `mlir` when that package
is installed and from `torch_mlir` otherwise. Dialect modules are imported on first use.
"""

import importlib
import importlib.util

_find = importlib.util.find_spec
PACKAGE = "mlir" if _find("mlir") and _find("mlir.ir") else "torch_mlir"

_TOP_LEVEL = {"ir", "passmanager", "rewrite", "execution_engine"}


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    prefix = PACKAGE if name in _TOP_LEVEL else f"{PACKAGE}.dialects"
    module = importlib.import_module(f"{prefix}.{name}")
    globals()[name] = module
    return module
