# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The driver of the target for Arm SME: from one linear step to an object file and its header."""

from twofour.analysis import Analysis, LinearSweep, Source, analyse, load_program
from twofour.codegen.cpu.kernel_abi import INPUTS_ATTRIBUTE
from twofour.diagnostics import located_in
from twofour.dialects.stencil.outer_ops import OuterSumOp
from twofour.dialects.stencil.transforms.block import BlockPass
from twofour.dialects.stencil.transforms.outer_to_sme import ConvertStencilOuterToSmePass
from twofour.dialects.stencil.transforms.reorganize import ReorganizePass
from twofour.dialects.stencil.transforms.schedule_outer import ScheduleOuterPass
from twofour.dialects.stencil.transforms.select_cover import SelectCoverPass
from twofour.dialects.stencil.transforms.to_scatter import ToScatterPass
from twofour.errors import TwofourError
from twofour.identifiers import identifier
from twofour.kernels import Kernel
from twofour.mlir import ir
from twofour.mlir_support import error_at, functions, nested_ops
from twofour.passes import ModulePass
from twofour.program import select_function
from twofour.targets.linked_object import LinkedObject
from twofour.targets.sme.arm_object import to_arm_object
from twofour.targets.sme.header import Interface, header_text
from twofour.targets.sme.lowering import to_llvm_ir
from twofour.targets.sme.options import SmeOptions

STAGES = ("stencil", "llvm", "object")


def outer_passes(options: SmeOptions) -> list[ModulePass]:
    """Passes from weighted sums to scheduled outer products."""
    return [
        ToScatterPass(),
        SelectCoverPass(option=options.cover),
        BlockPass(),
        ScheduleOuterPass(),
        ReorganizePass(),
    ]


def compile_sme(source: Source, options: SmeOptions) -> LinkedObject:
    """Compile a file or kernel that is one linear step.

    Raises TwofourError, located in the file, for a program that cannot be read, is anything else
    than one linear step of two or three axes, or has elements of other types than f64 and f32.
    """
    found, sweep = _scheduled(source, options)
    text, interface = _lowered(found, sweep)
    return LinkedObject(to_arm_object(text), header_text(interface))


def emit(source: Source, options: SmeOptions, stage: str) -> str:
    """The program as text after a stage out of STAGES: stencil or llvm.

    Raises TwofourError as `compile_sme` does.
    """
    found, sweep = _scheduled(source, options)
    if stage == "stencil":
        with found.module.context:
            return str(found.module)
    return _lowered(found, sweep)[0]


def _scheduled(source: Source, options: SmeOptions) -> tuple[Analysis, LinearSweep]:
    """A module whose function holds one scheduled sum, and the sweep that this is."""
    module, filename = load_program(source, options.analysis())
    found = analyse(module, filename, options.analysis(), is_kernel=isinstance(source, Kernel))
    _check_step(found, options.fuse_steps)
    sweep = found.fused or found.single
    with module.context, ir.Location.unknown():
        for function in functions(module.operation):
            if function.attributes["sym_name"].value != sweep.function:
                function.operation.erase()
    found.run(outer_passes(options))
    return found, sweep


def _check_step(found: Analysis, steps: int) -> None:
    with found.module.context, located_in(found.filename):
        if found.left:
            reason = found.left[0]
            raise TwofourError(
                f"expected constant weights for target 'sme': {reason.reason}", reason.location
            )
        function = select_function(found.module, found.program.name, found.filename)
        if found.single is None:
            raise error_at(function, "expected one linear step of one field for target 'sme'")
        if steps > 1 and found.fused is None:
            # The name of the function is that of a single step.
            raise error_at(function, f"expected a domain with room for {steps} fused steps")


def _lowered(found: Analysis, sweep: LinearSweep) -> tuple[str, Interface]:
    """LLVM IR that holds the sweep's kernel alone, and how it is called."""
    module, name = found.module, identifier(found.program.name)
    with module.context, ir.Location.unknown(), located_in(found.filename):
        (op,) = nested_ops(module, OuterSumOp.OPERATION_NAME)
        element = str(op.results[0].type.element_type)
        interface = Interface(
            name, f"{name}_kernel0", element, sweep.reach_lo, sweep.reach_hi, sweep.steps
        )
        found.run([ConvertStencilOuterToSmePass()])
        for function in functions(module.operation):
            if INPUTS_ATTRIBUTE not in function.attributes:
                function.operation.erase()
            else:
                function.attributes["sym_name"] = ir.StringAttr.get(interface.kernel)
        return to_llvm_ir(module, found.filename), interface
