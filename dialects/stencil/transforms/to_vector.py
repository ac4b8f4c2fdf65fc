# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-to-vector`: weighted sums as vectorised kernels (the direct CPU route).

    %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = ...} : ...

becomes a call of a function that is appended to the module,

    func.func @heat_kernel0(%in: memref<?xf64, strided<[1], offset: ?>>, %out: ..., %begin, %end) {
      scf.for %i = %begin to %stop step %c8 {
        %a = vector.load %in[%i] ...
        %b = arith.mulf %w0, %a : vector<8xf64>
        ...
        %s = math.fma %w1, %c, %b : vector<8xf64>
        vector.store %s, %out[%i] ...

Chains of weighted sums over several temps become one kernel with several inputs. With
`reassociate` inputs of a row that have the same weight, up to its sign, are added first:

        %s = arith.addf %a, %c : vector<8xf64>
        %t = arith.mulf %w, %s : vector<8xf64>

and two rows of outputs share products with differences of inputs where the processor adds beside
its multiply-adds and this spares enough of them:

        %d = arith.subf %a, %b : vector<8xf64>
        %both = math.fma %w01, %b, %p : vector<8xf64>
        %even = math.fma %w0, %d, %q : vector<8xf64>

Sums of many hundred terms are loops over a table of weights:

        %s = scf.for %j = %c0 to %c31 step %c1 iter_args(%sum = %zero) -> (vector<8xf64>) {
          %a = vector.load %in[%i, %j] ...
          %w = memref.load @heat_kernel0_weights0[%j] ...
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from twofour.codegen.cpu.direct_kernel import DirectKernel, build_direct_kernel
from twofour.codegen.cpu.kernel_abi import PAST_CACHES
from twofour.codegen.cpu.register_tile import given_tile
from twofour.codegen.cpu.vector_unit import Machine, vector_unit
from twofour.dialects.stencil.chains import Chain, chain_ending_at
from twofour.dialects.stencil.large_arrays import are_large, are_stored_over_inputs
from twofour.dialects.stencil.linear_ops import WeightedSumOp
from twofour.dialects.stencil.sweep import kernel_name, module_end, replace_by_sweep
from twofour.mlir import ir
from twofour.mlir_support import nested_ops
from twofour.passes import ModulePass


def _goes_past_caches(op, chain: Chain, options: "ConvertStencilToVectorPass") -> bool:
    """Whether a kernel is wanted for arrays larger than the caches."""
    if options.past_caches != "large":
        return options.past_caches == "beside"
    nontemporal = op.results[0].type.rank <= vector_unit(options.machine).nontemporal_axes
    return are_large(op, len(chain.inputs) + 1, options.machine) and not (
        nontemporal and are_stored_over_inputs(op, chain.inputs)
    )


def _convert(op, options: "ConvertStencilToVectorPass") -> None:
    chain = chain_ending_at(op)
    kernel = DirectKernel(
        kernel_name(op), chain.terms, chain.constant, chain.has_addend, options.reassociate
    )
    with module_end(op), op.location:
        unit = vector_unit(options.machine)
        tile = options.tile and given_tile(options.tile)
        element = op.results[0].type.element_type
        build_direct_kernel(kernel, element, unit, tile)
        if kernel.waits_for_memory(element, unit) and _goes_past_caches(op, chain, options):
            beside = replace(kernel, name=kernel.name + PAST_CACHES)
            build_direct_kernel(beside, element, unit, tile, past_caches=True)
    replace_by_sweep(op, kernel.name, chain.inputs)
    chain.erase_rest()


@dataclass(frozen=True)
class ConvertStencilToVectorPass(ModulePass):
    """Lower every weighted sum to a vectorised kernel and a call of it (the direct CPU route).

    `machine` names the vector registers to use: avx512, sapphirerapids, znver4, avx2, sse, neon, or
    those of the host. `tile` = rows, vectors is the block of outputs that is summed up in
    registers, = planes, rows, vectors one of rows in several planes; a model of the processor
    chooses it otherwise. With `reassociate` inputs of a row that have the same weight are added
    before they are multiplied, and rows are summed up in pairs where that is faster (znver4; a tile
    has an even number of rows then), boxes of weights that differ column by column
    (sapphirerapids). Long sums have loops over their terms, in ascending order; of two axes where
    they fill a box from about 150 terms on. `past-caches`: kernels that wait for memory get another
    one, NAME_past_caches, for arrays larger than the caches, always (`beside`) or where the arrays
    are (`large`): rows are summed up one by one and stored past the caches; in three axes not past
    them on znver4 and sapphirerapids, and on the latter one of each of several planes at once. What
    is not stored past the caches has its lines asked for before a block is computed, on
    sapphirerapids.
    """

    name: ClassVar[str] = "convert-stencil-to-vector"
    machine: Machine = "avx512"
    tile: tuple[int, ...] | None = None
    reassociate: bool = False
    past_caches: Literal["no", "beside", "large"] = "no"

    def __post_init__(self):
        if self.tile is not None:
            given_tile(self.tile)

    def run(self, module: ir.Operation) -> None:
        while sums := nested_ops(module, WeightedSumOp.OPERATION_NAME):
            _convert(sums[-1], self)
