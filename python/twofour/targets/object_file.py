# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Object files from LLVM IR, by llvmlite."""

import llvmlite.binding as llvmlite

from twofour.errors import TwofourError
from twofour.targets.llvm_text import adapt


def to_object(llvm_ir: str, triple: str, *, cpu: str = "", features: str = "") -> bytes:
    """Optimise LLVM IR for a processor; position-independent code as an object file.

    The target of `triple` is initialised already. Raises TwofourError for IR that llvmlite's LLVM
    does not read.
    """
    try:
        module = llvmlite.parse_assembly(adapt(llvm_ir))
        module.verify()
    except RuntimeError as error:
        message = " ".join(str(error).split())
        raise TwofourError(f"expected LLVM IR that llvmlite reads, got: {message}") from None
    machine = llvmlite.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default"
    )
    module.triple = triple
    module.data_layout = str(machine.target_data)
    builder = llvmlite.create_pass_builder(
        machine, llvmlite.create_pipeline_tuning_options(speed_level=3)
    )
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)
