# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR read and optimised by llvmlite."""

import llvmlite.binding as llvmlite

from twofour.errors import TwofourError


def read_module(llvm_ir: str) -> llvmlite.ModuleRef:
    """The module of LLVM IR. Raises TwofourError for IR that llvmlite's LLVM does not read."""
    try:
        module = llvmlite.parse_assembly(llvm_ir)
        module.verify()
    except RuntimeError as error:
        message = " ".join(str(error).split())
        raise TwofourError(f"expected LLVM IR that llvmlite reads, got: {message}") from None
    return module


def optimise(module: llvmlite.ModuleRef, machine: llvmlite.TargetMachine) -> None:
    """Run LLVM's passes of level 3 for a machine on a module."""
    module.data_layout = str(machine.target_data)
    builder = llvmlite.create_pass_builder(
        machine, llvmlite.create_pipeline_tuning_options(speed_level=3)
    )
    builder.getModulePassManager().run(module, builder)
