# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`nm-permute-2to4`: permute the columns of A until it is 2:4 sparse (SparStencil, section 3.2).

The columns of A and the input offsets take the same permutation (equation 5), so the operator still
computes its stencil. Zero columns are inserted where no order of the columns alone is 2:4, and at
the end, up to a multiple of the fragment.

    [a b c . . .]        [a c | b . | ...]
    [. a b c . .]   ->   [. b | a c | ...]     every aligned group of four columns holds
    [. . a b c .]        [c a | . b | ...]     at most two non-zeros in each row
    [. . . a b c]        [b . | c a | ...]
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from twofour.dialects.nm.ops import PERMUTATION_ATTRIBUTE, PatchMatmulOp
from twofour.dialects.stencil.linear_ops import linear_terms
from twofour.errors import TwofourError
from twofour.layout.chunks import COLUMNS, OUTPUTS, chunk_operator
from twofour.layout.crush import crush
from twofour.layout.matching import Permutation, apply_permutation, lower_bound, permute_2to4
from twofour.layout.patch import PatchOperator
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_ops, replace_op
from twofour.passes import ModulePass

MAX_FRAGMENT = 1024


@dataclass(frozen=True)
class Permute2to4Pass(ModulePass):
    """Permute and pad the columns of patch operators until every group of four is 2:4.

    `strategy`: `staircase` is the paper's hierarchical two-level matching (Algorithm 1, linear
    time), `blossom` a maximum matching on the complement of the conflict graph, `exact` the fewest
    columns after padding to the fragment, `auto` the cheapest of these that meets the lower bound.
    `chunks` searches nothing: rows of inputs as lanes read them, eight neighbours at once; it takes
    tiles of 16 outputs along the last axis, and may name an input twice.
    `fragment` is the number of columns that one instruction multiplies. The op carries what was
    found: strategy, padding columns, the lower bound of K, and whether K is proven minimal.
    """

    name: ClassVar[str] = "nm-permute-2to4"
    strategy: Literal["auto", "staircase", "blossom", "exact", "chunks"] = "auto"
    fragment: int = 32

    def __post_init__(self):
        if self.fragment % 16 or not 16 <= self.fragment <= MAX_FRAGMENT:
            raise TwofourError(
                f"expected a fragment of 16, 32, ..., {MAX_FRAGMENT} columns, got {self.fragment}"
            )

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, PatchMatmulOp.OPERATION_NAME):
            if self.strategy == "chunks":
                operator, report = self._by_chunks(op)
            else:
                permutation = permute_2to4(op.operator(), self.strategy, self.fragment)
                operator = apply_permutation(op.operator(), permutation)
                report = _report(permutation)
            with ir.InsertionPoint(op):
                permuted = PatchMatmulOp.build(op, operator, loc=op.location)
            permuted.attributes[PERMUTATION_ATTRIBUTE] = report
            replace_op(op, permuted)

    def _by_chunks(self, op: PatchMatmulOp) -> tuple[PatchOperator, ir.DictAttr]:
        """The stencil of an op by chunks of eight inputs."""
        expected = (1,) * (len(op.tile) - 1) + (OUTPUTS,)
        if tuple(op.tile) != expected or self.fragment != COLUMNS:
            raise error_at(
                op,
                f"expected a tile of {list(expected)} and fragments of {COLUMNS} columns for "
                f"chunks, got {list(op.tile)} and {self.fragment}",
            )
        offsets, weights, _ = linear_terms(op)
        operator = chunk_operator(offsets, weights)
        padding = int((operator.matrix == 0).all(axis=0).sum())
        # Of columns that each read another input: those of the op may read one again.
        bound = lower_bound(crush(offsets, weights, tuple(op.tile)).matrix, COLUMNS)
        proven = operator.matrix.shape[1] == bound
        return operator, _attribute("chunks", COLUMNS, padding, bound, proven)


def _report(found: Permutation) -> ir.DictAttr:
    """What was found, as an attribute of the op: it is what `explain` reports."""
    return _attribute(
        found.strategy, found.fragment, found.padding_columns, found.k_lower_bound, found.proven
    )


def _attribute(strategy: str, fragment: int, padding: int, bound: int, proven: bool) -> ir.DictAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.DictAttr.get(
        {
            "strategy": ir.StringAttr.get(strategy),
            "fragment": ir.IntegerAttr.get(i64, fragment),
            "padding_columns": ir.IntegerAttr.get(i64, padding),
            "k_lower_bound": ir.IntegerAttr.get(i64, bound),
            "proven": ir.BoolAttr.get(proven),
        }
    )
