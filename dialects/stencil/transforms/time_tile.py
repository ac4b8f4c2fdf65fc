# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-time-tile`: how many steps the CPU takes of a part of the domain at once.

    func.func @step(%u: !field, %v: !field) {
      %t = "stencil.load"(%u) ...
      %r = "stencil.weighted_sum"(%t) ...
      "stencil.store"(%r, %v) ...

becomes

    func.func @step(%u: !field, %v: !field) attributes {stencil.time_tile = array<i64: 8, 48, 512>}

The function stays one step. Whoever runs it for several takes 8 of them in tiles of 48 x 512 points
(twofour.runtime.tiles): the kernel is the same, so are the results, to the bit. Tiles of three axes
that are long along the slowest one are streamed along it (twofour.runtime.tiles.streamed).
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.stencil.transforms.fuse_steps import linear_step
from twofour.errors import TwofourError
from twofour.mlir import ir
from twofour.mlir_support import error_at, int_tuple, nested_functions
from twofour.passes import ModulePass

TIME_TILE_ATTRIBUTE = "stencil.time_tile"


def time_tile_of(function) -> tuple[int, tuple[int, ...]] | None:
    """The steps and extents of a function's time tile, None where it names none.

    Raises TwofourError, located at the function, for an attribute that is none or does not fit it.
    """
    if TIME_TILE_ATTRIBUTE not in function.attributes:
        return None
    step = linear_step(function)
    if step is None:
        raise error_at(function, f"expected one linear step of one field for {TIME_TILE_ATTRIBUTE}")
    rank = step.weighted_sum.results[0].type.box.rank
    attribute = function.attributes[TIME_TILE_ATTRIBUTE]
    try:
        steps, *extents = int_tuple(attribute, TIME_TILE_ATTRIBUTE)
    except (TwofourError, ValueError):
        steps, extents = 0, []
    if len(extents) != rank or min(steps, *extents) < 1:
        raise error_at(
            function,
            f"expected {TIME_TILE_ATTRIBUTE} = array<i64: steps, {rank} extents>, got {attribute}",
        )
    return steps, tuple(extents)


@dataclass(frozen=True)
class TimeTilePass(ModulePass):
    """Let the CPU take `steps` steps of a tile of `extents` points before it goes to the next.

    Tiles overlap: each computes what it needs of its neighbours as well, so that results equal
    single steps to the bit, under every boundary and for any extents. Functions that are not a
    single linear step of one field of this rank are left alone. Without the attribute, the steps
    and extents are those that a model of the machine's caches expects to be fastest for the arrays
    of a call.
    """

    name: ClassVar[str] = "stencil-time-tile"
    steps: int = 4
    extents: tuple[int, ...] = (64, 512)

    def __post_init__(self):
        if self.steps < 1:
            raise TwofourError(f"expected a positive number of steps, got {self.steps}")
        if min(self.extents) < 1:
            raise TwofourError(f"expected positive extents, got {list(self.extents)}")

    def run(self, module: ir.Operation) -> None:
        for function in nested_functions(module):
            step = linear_step(function)
            if step is None or step.weighted_sum.results[0].type.rank != len(self.extents):
                continue
            tile = ir.DenseI64ArrayAttr.get([self.steps, *self.extents])
            function.attributes[TIME_TILE_ATTRIBUTE] = tile
