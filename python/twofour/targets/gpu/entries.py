# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the manifest of a bundle says of a module in the gpu dialect: kernels and program."""

from dataclasses import replace

from twofour.analysis import Analysis
from twofour.codegen.cpu.kernel_abi import INPUTS_ATTRIBUTE
from twofour.codegen.gpu.boundary_kernel import is_boundary_kernel
from twofour.codegen.gpu.kernel_abi import BlockShape
from twofour.mlir import func, ir
from twofour.mlir_support import error_at, nested_ops
from twofour.program import Program
from twofour.runtime import Launch, Loop, field_entry, step_entry
from twofour.runtime.loops import Step
from twofour.targets.fields import check_runnable, field_spec
from twofour.targets.plan import KernelCall, NoPlan, read_calls

EDGES = "edges"  # the kernel for the rims of fused sweeps


def kernel_entries(module: ir.Module) -> dict[str, dict]:
    """The kernels of a module in the gpu dialect, as a manifest holds them."""
    entries = {}
    for op in nested_ops(module, "gpu.func"):
        shape = BlockShape.of(op)
        kinds = list(op.attributes["function_type"].value.inputs)
        views = [isinstance(kind, ir.MemRefType) for kind in kinds]
        inputs = op.attributes[INPUTS_ATTRIBUTE].value
        entries[op.attributes["sym_name"].value] = {
            "rank": kinds[-1].rank,
            "inputs": inputs,
            "outputs": sum(views) - inputs,
            "scalars": [str(k) for k, view in zip(kinds, views, strict=True) if not view],
            "threads": shape.threads,
            "tile": list(shape.tile),
            "march": shape.march,
            "shared_bytes": shape.shared_bytes,
            "alignment": shape.alignment,
            "resident": shape.resident,
            "maps": [
                {
                    "view": wanted.view,
                    "lead": wanted.lead,
                    "box": list(wanted.box),
                    "element": str(kinds[wanted.view].element_type),
                }
                for wanted in shape.maps
            ],
        }
    return entries


def halo_kinds(found: Analysis) -> dict[int, tuple[int, ...]]:
    """Of the fields whose halos a run refreshes: the sizes of their elements, in bits, by rank."""
    fields = [field_spec(found.program, argument) for argument in found.program.fields]
    kinds = {(len(f.shape), 8 * f.element.itemsize) for f in fields if f.interior is not None}
    ranks = sorted({rank for rank, _ in kinds})
    return {rank: tuple(sorted(bits for r, bits in kinds if r == rank)) for rank in ranks}


def program_entry(found: Analysis, main: func.FuncOp) -> dict:
    """What a manifest says of the function `main` to run.

    Raises TwofourError, located at the op, for what a plan of launches cannot hold.
    """
    program = found.program
    check_runnable(program, found.filename)
    fields = [field_entry(field_spec(program, argument)) for argument in program.fields]
    kernels = nested_ops(found.module, "gpu.func")
    names = [op.attributes["sym_name"].value for op in kernels]
    boundary_kernels = sorted(filter(is_boundary_kernel, names))
    if found.is_step:
        return _linear_entry(found, fields) | {"boundary_kernels": boundary_kernels}
    if found.fused is not None:
        raise error_at(main, "expected input and output fields of one type to fuse steps")
    inputs = {
        name: op.attributes[INPUTS_ATTRIBUTE].value for name, op in zip(names, kernels, strict=True)
    }
    try:
        sequence = read_calls(main, inputs)
    except NoPlan as stop:
        expected = str(stop) or "expected sweeps, copies and loops over them only"
        raise error_at(stop.op, f"{expected}, for a GPU target") from None
    return {
        "kind": "fields",
        "name": program.name,
        "fields": fields,
        "rotation": list(program.rotation),
        "scalars": _scalars(program),
        "steps": [step_entry(_step(step)) for step in sequence.steps],
        "workspaces": [[list(shape), element] for shape, element in sequence.workspaces],
        "time_loop": program.time_loop is not None,
        "boundary_kernels": boundary_kernels,
    }


def _linear_entry(found: Analysis, fields: list[dict]) -> dict:
    return {
        "kind": "linear",
        "name": found.program.name,
        "rank": len(found.single.reach_lo),
        "single": found.single.kernel,
        "fused": found.fused and found.fused.kernel,
        "edges": EDGES if found.fused else None,
        "fused_steps": found.fused.steps if found.fused else 1,
        "reach_lo": list(found.single.reach_lo),
        "reach_hi": list(found.single.reach_hi),
        "fields": None if found.is_kernel else fields,
        "scalars": _scalars(found.program),
    }


def _scalars(program: Program) -> list[str]:
    """The element types of the arguments that are numbers."""
    return [argument.element for argument in program.arguments if not argument.is_field]


def _step(step: KernelCall | Loop) -> Step:
    """A call as the launch of a kernel by its name, or a loop of them."""
    if isinstance(step, Loop):
        return replace(step, body=tuple(map(_step, step.body)))
    return Launch(step.name, step.inputs, step.outputs, step.scalars)
