# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions in a bufferized module: plans know kernels only."""

from twofour.codegen.cpu.kernel_abi import INPUTS_ATTRIBUTE
from twofour.mlir import ir
from twofour.mlir_support import nested_ops
from twofour.pipeline import PassElement, PipelineOptions, run_pipeline


def inline_calls(module: ir.Module, filename: str) -> None:
    """Make what a called function does a part of its caller, kernels of the CPU aside."""
    kernels = {
        function.attributes["sym_name"].value: function
        for function in nested_ops(module, "func.func")
        if INPUTS_ATTRIBUTE in function.attributes
    }
    if all(call.callee.value in kernels for call in nested_ops(module, "func.call")):
        return
    for kernel in kernels.values():
        kernel.attributes["no_inline"] = ir.UnitAttr.get()
    inline = [PassElement("inline{default-pipeline=}", None)]
    run_pipeline(module, inline, PipelineOptions(filename=filename))
    for kernel in kernels.values():
        del kernel.attributes["no_inline"]
