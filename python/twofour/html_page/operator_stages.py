# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The patch operators of a program after each layout pass, for `explain` to draw."""

from dataclasses import dataclass

from twofour.analysis import layout_passes, run_passes
from twofour.context import make_context
from twofour.dialects.nm.ops import PatchMatmulOp, SparsePatchMatmulOp
from twofour.dialects.stencil.sweep import enclosing_function
from twofour.layout.patch import PatchOperator
from twofour.mlir import ir
from twofour.mlir_support import nested_ops
from twofour.passes import ModulePass
from twofour.pipeline import parse_pipeline

FLATTEN, CRUSH, PERMUTE, COMPRESS = (own.name for own in layout_passes())


@dataclass(frozen=True)
class OperatorStages:
    """The operator of a sweep in `function`, by the name of the pass that made it, in order."""

    function: str
    operators: dict[str, PatchOperator]


def operator_stages(report: dict, text: str) -> list[OperatorStages]:
    """The operators of a report's sweeps, in their order, from the text of stage `stencil`.

    Where the schedule multiplies nothing, they are those of the 2:4 operators that the report
    describes. There are none where it describes and multiplies none.
    """
    found: list[OperatorStages] = []
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for own in _passes(report):
            run_passes(module, [own], report["name"])
            ops = nested_ops(
                module, PatchMatmulOp.OPERATION_NAME, SparsePatchMatmulOp.OPERATION_NAME
            )
            found = found or [
                OperatorStages(enclosing_function(op).attributes["sym_name"].value, {})
                for op in ops
            ]
            for stages, op in zip(found, ops, strict=True):
                stages.operators[own.name] = op.operator()
    return found


def _passes(report: dict) -> list[ModulePass]:
    """The layout passes that the report speaks of."""
    if report["sweeps"] and not report["layout_executed"]:
        # Operators of f32 are 1:2 sparse, in fragments of 16 columns.
        return layout_passes(pairs=report["sweeps"][0]["fragment"] == 16)
    ran = [element.own for element in parse_pipeline(report["pipeline"])]
    return [own for own in ran if own and own.name in (FLATTEN, CRUSH, PERMUTE, COMPRESS)]
