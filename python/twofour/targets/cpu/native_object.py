# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Object files of CPU kernels, for programs that are linked with them."""

import llvmlite.binding as llvmlite

from twofour.errors import TwofourError
from twofour.targets.llvm_text import adapt


def to_object(llvm_ir: str) -> bytes:
    """Optimise LLVM IR for this machine's processor; position-independent code as an object file.

    Raises TwofourError for IR that llvmlite's LLVM does not read.
    """
    llvmlite.initialize_native_target()
    llvmlite.initialize_native_asmprinter()
    try:
        module = llvmlite.parse_assembly(adapt(llvm_ir))
        module.verify()
    except RuntimeError as error:
        message = " ".join(str(error).split())
        raise TwofourError(f"expected LLVM IR that llvmlite reads, got: {message}") from None
    machine = llvmlite.Target.from_default_triple().create_target_machine(
        cpu=llvmlite.get_host_cpu_name(),
        features=llvmlite.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
    )
    module.triple = llvmlite.get_default_triple()
    module.data_layout = str(machine.target_data)
    builder = llvmlite.create_pass_builder(
        machine, llvmlite.create_pipeline_tuning_options(speed_level=3)
    )
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)
