# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of weighted sums over several temps: what one kernel computes."""

from dataclasses import dataclass

from twofour.codegen.cpu.direct_kernel import Terms
from twofour.dialects.stencil.linear_ops import WeightedSumOp, addend_of, linear_terms
from twofour.dialects.stencil.sweep import SweepInput, known_domain
from twofour.mlir_support import defining_op


@dataclass(frozen=True)
class Chain:
    """Weighted sums each of which is the addend of the next, first one first.

    `terms` are those of each temp; `inputs` the temps, then the addend of the first sum where it
    has one; `constant` the sum of the constants, from which a kernel starts.
    """

    links: list
    terms: list[Terms]
    inputs: list[SweepInput]
    constant: float
    has_addend: bool

    def erase_rest(self) -> None:
        """Erase all sums but the last, once that one is gone."""
        for link in reversed(self.links[:-1]):
            link.operation.erase()


def chain_ending_at(op) -> Chain:
    """The longest chain that ends at `op` and whose other sums nothing else uses.

    An `op` in another form than a weighted sum is a chain of its own. Raises TwofourError while
    bounds are unknown.
    """
    domain = known_domain(op)
    links = [op]
    while (addend := addend_of(links[0])) is not None:
        owner = defining_op(addend)
        if owner is None or {owner.name, op.operation.name} != {WeightedSumOp.OPERATION_NAME}:
            break
        if len(list(addend.uses)) > 1:
            break
        links.insert(0, owner.opview)
    linear = [linear_terms(link) for link in links]
    axes = tuple(range(domain.rank))
    inputs = [
        SweepInput(link.operands[0], offsets, axes)
        for link, (offsets, _, _) in zip(links, linear, strict=True)
    ]
    if addend is not None:
        inputs.append(SweepInput(addend, [(0,) * domain.rank], axes))
    return Chain(
        links,
        [Terms(offsets, weights) for offsets, weights, _ in linear],
        inputs,
        sum(constant for _, _, constant in linear),
        addend is not None,
    )
