# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Object files from LLVM IR, by llvmlite."""

import llvmlite.binding as llvmlite

from twofour.targets.llvm_module import optimise, read_module
from twofour.targets.llvm_text import adapt


def to_object(llvm_ir: str, triple: str, *, cpu: str = "", features: str = "") -> bytes:
    """Optimise LLVM IR for a processor; position-independent code as an object file.

    The target of `triple` is initialised already. Raises TwofourError for IR that llvmlite's LLVM
    does not read.
    """
    module = read_module(adapt(llvm_ir))
    machine = llvmlite.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default"
    )
    module.triple = triple
    optimise(module, machine)
    return machine.emit_object(module)
