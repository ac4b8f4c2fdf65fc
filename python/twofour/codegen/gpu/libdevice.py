# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CUDA's library of functions that PTX has no instruction for: exp, sin, pow and the like.

It comes with the CUDA toolkit, as LLVM bitcode; nothing else knows these functions for PTX as
accurately. The conversion to NVVM calls it; its code becomes part of the kernel's.
"""

import re

import llvmlite.binding as llvmlite

from twofour.codegen.math_functions import CALLED_FUNCTIONS

# Ops that become calls, by the name of the op.
FUNCTIONS = {"arith.remf", *CALLED_FUNCTIONS}
_CALL = re.compile(r"^declare .*@__nv_", re.MULTILINE)


def is_needed(llvm_ir: str) -> bool:
    """Whether a module calls the library."""
    return bool(_CALL.search(llvm_ir))


def link(module: llvmlite.ModuleRef, path: str) -> None:
    """Put the library into a module, every function to be inlined where it is called."""
    kernels = {function.name for function in module.functions if not function.is_declaration}
    with open(path, "rb") as file:
        library = llvmlite.parse_bitcode(file.read())
    module.link_in(llvmlite.parse_assembly(str(library).replace("noinline", "alwaysinline")))
    for function in module.functions:
        if not function.is_declaration and function.name not in kernels:
            function.linkage = "internal"
