# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-apply-to-vector`: applies of most kinds as vectorised kernels.

    %r = "stencil.apply"() ({
      %a = "stencil.access"(%t) {offset = array<i64: -1>} : ...
      %b = "stencil.access"(%c) {offset = array<i64: 0>} : ...
      %p = arith.mulf %a, %b : f64
      "stencil.return"(%p) : (f64) -> ()
    }) : () -> !stencil.temp<...>

becomes a call of a function that is appended to the module,

    func.func @heat_kernel0(%in: memref<?xf64, strided<[1], offset: ?>>, ..., %begin, %end) {
      scf.for %i = %begin to %stop step %c8 {
        %a = vector.load %in[%i] ...
        %b = vector.load %coefficient[%i] ...
        %p = arith.mulf %a, %b : vector<8xf64>
        vector.store %p, %out[%i] ...

All that a block of outputs reads is read before it is written, so that results may go to fields
that are read at the same points only. Of an `scf.if` both branches are computed, and one result is
selected. Regions with loops in them, and with numbers of 8 and 16 bits, are left to
`convert-stencil-to-loops`.
"""

from dataclasses import dataclass, replace
from functools import partial
from operator import add
from typing import ClassVar

from twofour.codegen.cpu.block_loops import ROWS_PAST_CACHES, BlockLoops
from twofour.codegen.cpu.kernel_abi import (
    IN_PLACE_ATTRIBUTE,
    PAST_CACHES,
    PAST_CACHES_ATTRIBUTE,
    EntryConstants,
)
from twofour.codegen.cpu.read_ahead import ReadAhead
from twofour.codegen.cpu.register_tile import RegisterTile, given_tile
from twofour.codegen.cpu.row_sums import sum_rows
from twofour.codegen.cpu.vector_unit import Machine, VectorUnit, vector_unit
from twofour.dialects.stencil.large_arrays import are_large, are_stored_over_inputs
from twofour.dialects.stencil.ops import ApplyOp
from twofour.dialects.stencil.region_kernel import replace_by_kernel
from twofour.dialects.stencil.regions import AppliedRegion
from twofour.dialects.stencil.sweep import known_domain
from twofour.dialects.stencil.vector_region import VectorRegion, calls_functions, widest_bits
from twofour.mlir import func, ir
from twofour.mlir_support import nested_ops
from twofour.passes import ModulePass
from twofour.runtime.page_offset import CACHE_LINE

# Rows of two axes that are computed together where they share what they read.
FEW_ROWS = 2
# More rows, with so many registers, where that spares so many reads an output for every array: each
# row of an array is a stream of its own.
MANY_ROWS, MANY_REGISTERS, WORTHWHILE = 4, 32, 1 / 3
# A block of rows that share nothing.
ALONE = RegisterTile(1, 4)
# Ops of rows that are computed at once: beyond these they only cost compile time.
MAX_OPS = 700
# Rows of inputs that the processor follows by itself where planes do not stay in the caches.
FOLLOWED = 12


def _tile(region: AppliedRegion, unit: VectorUnit) -> RegisterTile:
    """The block of outputs for arrays in the caches."""
    rank, size = region.domain.rank, len(nested_ops(region.apply))
    if rank > 2:
        return _tile_of_planes(region, unit, size)
    if rank == 1 or calls_functions(region.apply):
        return RegisterTile(1, 1)
    together = RegisterTile(FEW_ROWS, 1), RegisterTile(MANY_ROWS, 1)
    alone, few, many = (_reads(region, tile) for tile in (ALONE, *together))
    if few == alone or size * FEW_ROWS > MAX_OPS:
        return ALONE if size * ALONE.vectors <= MAX_OPS else RegisterTile(1, 1)
    arrays = len(region.inputs) + len(region.apply.results)
    spares_reads = few - many >= WORTHWHILE * arrays
    has_room = unit.registers >= MANY_REGISTERS and size * MANY_ROWS <= MAX_OPS
    rows = MANY_ROWS if spares_reads and has_room else FEW_ROWS
    vectors = unit.core.region_vectors
    return RegisterTile(rows, vectors if size * rows * vectors <= MAX_OPS else 1)


def _tile_of_planes(region: AppliedRegion, unit: VectorUnit, size: int) -> RegisterTile:
    """Rows of several planes where a core computes them at once and they share what they read."""
    alone = RegisterTile(1, 1, unit.bytes // 2 if unit.halved else None)
    several = replace(alone, planes=unit.core.planes)
    if size * several.planes > MAX_OPS or calls_functions(region.apply):
        return alone
    return several if _reads(region, several) < _reads(region, alone) else alone


def _reads(region: AppliedRegion, tile: RegisterTile) -> float:
    """The vectors that are read for an output, where the rows of a tile are computed together."""
    rank = region.domain.rank
    outputs = sum_rows([], rank, tile.rows, tile.planes).outputs
    points = (
        {tuple(map(add, at, output)) for at in item.offsets for output in outputs}
        for item in region.inputs
        if len(item.axes) == rank
    )
    return sum(map(len, points)) / len(outputs)


def _rows_read(region: AppliedRegion) -> int:
    """The rows of inputs that a row of outputs reads."""
    return sum(len({at[:-1] for at in item.offsets}) for item in region.inputs)


def _has_another(apply: ApplyOp, options: "ConvertStencilApplyToVectorPass") -> bool:
    """Whether a kernel for its arrays, which are larger than the caches, is another one."""
    unit, region = vector_unit(options.machine), AppliedRegion(apply, known_domain(apply))
    arrays = len(region.inputs) + len(apply.results)
    is_long = len(nested_ops(apply)) * ROWS_PAST_CACHES > MAX_OPS
    if not options.past_caches or is_long or not are_large(apply, arrays, options.machine):
        return False
    if region.domain.rank <= unit.nontemporal_axes:
        return not are_stored_over_inputs(apply, region.inputs)
    return _rows_read(region) > FOLLOWED and not unit.core.claims


def _emit(
    options: "ConvertStencilApplyToVectorPass",
    bits: int,
    past_caches: bool,
    region: AppliedRegion,
    function: func.FuncOp,
    arguments: list[ir.Value],
    outermost: tuple[ir.Value, ir.Value],
) -> None:
    """The loops of a kernel whose widest numbers are of so many bits."""
    rank, unit = region.domain.rank, vector_unit(options.machine)
    tile = given_tile(options.tile) if options.tile else _tile(region, unit)
    lanes = (tile.vector_bytes or unit.bytes) * 8 // bits
    outputs = region.outputs(arguments)
    constants = EntryConstants(function.entry_block)
    nontemporal, ahead = past_caches and rank <= unit.nontemporal_axes, None
    if nontemporal:
        size = lanes * outputs[0].type.element_type.width // 8
        # Lines that caches hold a part of must not be stored past them: that takes far longer.
        tile = RegisterTile(1, max(tile.vectors, CACHE_LINE // size))
    elif past_caches:
        ahead = ReadAhead(region.last_rows(arguments), outputs, constants)
    function.attributes[IN_PLACE_ATTRIBUTE] = ir.UnitAttr.get()
    if past_caches:
        function.attributes[PAST_CACHES_ATTRIBUTE] = ir.UnitAttr.get()
    BlockLoops(
        block=VectorRegion(region, arguments, constants).emit,
        rows_of=partial(sum_rows, [], rank),
        tile=tile,
        lanes=lanes,
        is_maskable=True,
        outputs=outputs,
        range=outermost,
        constants=constants,
        nontemporal=nontemporal,
        ahead=ahead,
        claims=unit.core.claims,
    ).emit()


@dataclass(frozen=True)
class ConvertStencilApplyToVectorPass(ModulePass):
    """Lower applies to vectorised kernels and calls of them; what has no vector form is left.

    `machine` and `tile` are those of `convert-stencil-to-vector`. With `past-caches` kernels of
    arrays larger than the caches get another one beside them, NAME_past_caches, that stores past
    them, unless results go to fields that were read at the same points. In three axes it does not
    on znver4 and sapphirerapids: on the former, one that reads many rows fetches them ahead.
    """

    name: ClassVar[str] = "convert-stencil-apply-to-vector"
    machine: Machine = "avx512"
    tile: tuple[int, ...] | None = None
    past_caches: bool = False

    def __post_init__(self):
        if self.tile is not None:
            given_tile(self.tile)

    def run(self, module: ir.Operation) -> None:
        for apply in nested_ops(module, ApplyOp.OPERATION_NAME):
            bits = widest_bits(apply)
            if bits is None:
                continue
            kernels = [("", partial(_emit, self, bits, False))]
            if _has_another(apply, self):
                kernels.append((PAST_CACHES, partial(_emit, self, bits, True)))
            replace_by_kernel(apply, *kernels)
