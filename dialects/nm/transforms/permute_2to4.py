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
from twofour.dialects.stencil.traversal import nested_ops
from twofour.errors import TwofourError
from twofour.layout.matching import Permutation, apply_permutation, permute_2to4
from twofour.mlir import ir
from twofour.mlir_support import replace_op
from twofour.passes import ModulePass

MAX_FRAGMENT = 1024


@dataclass(frozen=True)
class Permute2to4Pass(ModulePass):
    """Permute and pad the columns of patch operators until every group of four is 2:4.

    `strategy`: `staircase` is the paper's hierarchical two-level matching (Algorithm 1, linear
    time), `blossom` a maximum matching on the complement of the conflict graph, `exact` the fewest
    columns after padding to the fragment, `auto` the cheapest of these that meets the lower bound.
    `fragment` is the number of columns that one instruction multiplies. The op carries what was
    found: strategy, padding columns, the lower bound of K, and whether K is proven minimal.
    """

    name: ClassVar[str] = "nm-permute-2to4"
    strategy: Literal["auto", "staircase", "blossom", "exact"] = "auto"
    fragment: int = 32

    def __post_init__(self):
        if self.fragment % 16 or not 16 <= self.fragment <= MAX_FRAGMENT:
            raise TwofourError(
                f"expected a fragment of 16, 32, ..., {MAX_FRAGMENT} columns, got {self.fragment}"
            )

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, PatchMatmulOp.OPERATION_NAME):
            operator = op.operator()
            permutation = permute_2to4(operator, self.strategy, self.fragment)
            with ir.InsertionPoint(op):
                permuted = PatchMatmulOp.build(
                    op, apply_permutation(operator, permutation), loc=op.location
                )
            permuted.attributes[PERMUTATION_ATTRIBUTE] = _report(permutation)
            replace_op(op, permuted)


def _report(permutation: Permutation) -> ir.DictAttr:
    """What was found, as an attribute of the op: it is what `explain` reports."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.DictAttr.get(
        {
            "strategy": ir.StringAttr.get(permutation.strategy),
            "fragment": ir.IntegerAttr.get(i64, permutation.fragment),
            "padding_columns": ir.IntegerAttr.get(i64, permutation.padding_columns),
            "k_lower_bound": ir.IntegerAttr.get(i64, permutation.k_lower_bound),
            "proven": ir.BoolAttr.get(permutation.proven),
        }
    )
