# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which results of sweeps are better stored past the caches: large ones that are not in them."""

from collections.abc import Sequence

from twofour.codegen.cpu.vector_unit import Machine, vector_unit
from twofour.dialects.stencil.aliases import root
from twofour.dialects.stencil.sweep import SweepInput
from twofour.mlir_support import defining_op
from twofour.runtime.processor import USUAL_CACHES, caches
from twofour.runtime.tiles.choice import past_caches


def are_large(op, arrays: int, machine: Machine) -> bool:
    """Whether so many arrays of the extents of an op's results do not fit the caches.

    Raises TwofourError while these are unknown.
    """
    kind = op.results[0].type
    sizes = caches() if machine == "host" else USUAL_CACHES
    nontemporal = kind.rank <= vector_unit(machine).nontemporal_axes
    itemsize = kind.element_type.width // 8
    return past_caches(kind.box.extents, itemsize, sizes, nontemporal, arrays)


def are_stored_over_inputs(op, inputs: Sequence[SweepInput]) -> bool:
    """Whether a result goes to a field that the op reads at the same points only.

    Lines that were just read are in the caches, and must not be stored past them.
    """
    stored = [
        root(use.owner.operands[1])
        for result in op.results
        for use in result.uses
        if use.owner.operation.name == "stencil.store"
    ]
    loads = [defining_op(item.temp) for item in inputs if not any(map(any, item.offsets))]
    return any(
        load is not None and load.name == "stencil.load" and root(load.operands[0]) in stored
        for load in loads
    )
