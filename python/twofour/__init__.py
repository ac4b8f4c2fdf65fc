# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""twofour: a compiler from stencils and N:M-sparse algebra to sparse tensor-core kernels.

The names below are imported at first use, so that `import twofour` loads neither MLIR nor NumPy and
a machine that only runs kernels never needs the compiler's dependencies.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twofour.api import FieldProgram, Stencil, compile, stencil
    from twofour.errors import TwofourError

__all__ = ["FieldProgram", "Stencil", "TwofourError", "compile", "stencil"]

__version__ = "0.1.0"

_MODULE_OF = {
    "FieldProgram": "twofour.api",
    "Stencil": "twofour.api",
    "TwofourError": "twofour.errors",
    "compile": "twofour.api",
    "stencil": "twofour.api",
}


def __getattr__(name: str):
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
