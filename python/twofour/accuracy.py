# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far a computed stencil may be from the exact one: the error bound of each element type.

A sweep computes out = sum_i w_i u_i over n terms in the accumulation type, by fused multiply-adds
from weights rounded to that type, and rounds the sum once to the storage type. Points of the same
weight may be added before they are multiplied: no input takes part in more roundings for that. With
g = gamma_{n+1}, gamma_k = k e / (1 - k e), and A = sum_i |w_i| |u_i| at the same point,

    |computed - exact| <= g A + s (|exact| + g A) + t                                         (1)

where e is the unit roundoff of accumulation, s that of storage (0 where both are one type) and t
covers underflow:

    dtype   e       s       t, with n terms
    f64     2^-53   0       n 2^-1074
    f32     2^-24   0       n 2^-150
    f16     2^-24   2^-11   2^-25 + n 2^-150
    bf16    2^-24   2^-8    2^-134 + n 2^-150

Rows summed up in pairs (see twofour.codegen.cpu.row_pairs) multiply differences of inputs and sums
of weights: a weight's part in them is at most 7 times its size, and three roundings come to it, so
that g = 7 gamma_{n+4}, and t counts 2 n terms.

Step by step, an error E in the inputs grows to at most L E, with L = sum_i |w_i|, and (1) is
applied to inputs that are larger by E:

    E_0 = 0,  E_{k+1} = L E_k + (1) with A + L E_k for A and |exact| + L E_k for |exact|       (2)

A sweep that fuses several steps is one step with the convolved weights; points near the boundary
take single steps, so the error is at most the larger of the two bounds. The bounds hold as long as
nothing overflows. Boundary values are exact; a boundary constant counts after its own rounding.

Tensor cores (schedules sparse and dense of the GPU targets) round operands before they multiply,
and may truncate sums. With p for the relative error of a product by the rounding of its operands,
and h = g + p (1 + g),

    |computed - exact| <= h A + s (|exact| + h A) + t                                            (3)

    dtype   p                   e       s       operands
    f64     0                   2^-53   0       as stored; multiplied densely
    f32     2^-21               2^-23   0       each the sum of two of tf32, three products of four
    tf32    2^-10 + 2^-22       2^-23   0       weights and inputs rounded to tf32 (11 bits)
    f16     2^-11               2^-23   2^-11   weights rounded to f16, scaled to fit its range
    bf16    2^-8                2^-23   2^-8    weights rounded to bf16

for bf16 as long as no weight, and for f32 and tf32 as long as no weight, input or part of one is
below 2^-126 in size; inputs of f32 and tf32 from 2^128 - 2^116 on round to infinity. The weight of
a point that a tile reads without a term of its own is zero; an infinity or NaN there still gives
NaN, so on tensor cores these spread over the outputs of a tile. The schedules direct and simt keep
them to the points that the stencil reaches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from twofour.errors import TwofourError


@dataclass(frozen=True)
class _Rounding:
    """e, s, p, and the two parts of t: one for each term, and one for storing the sum."""

    accumulation: float
    storage: float
    term_underflow: float
    storage_underflow: float
    product: float = 0.0


# With weights w and v of a pair, |w + v| + |w| is at most so many |v|, since |w| <= 3 |v|.
PAIRED_PARTS = 7

_ROUNDING = {
    # Half of the smallest subnormal number is no float64: the whole stands in for it.
    "f64": _Rounding(2.0**-53, 0.0, 2.0**-1074, 0.0),
    "f32": _Rounding(2.0**-24, 0.0, 2.0**-150, 0.0),
    "f16": _Rounding(2.0**-24, 2.0**-11, 2.0**-150, 2.0**-25),
    "bf16": _Rounding(2.0**-24, 2.0**-8, 2.0**-150, 2.0**-134),
}

_MATRIX_ROUNDING = {
    "f64": _Rounding(2.0**-53, 0.0, 2.0**-1074, 0.0),
    "f32": _Rounding(2.0**-23, 0.0, 2.0**-149, 0.0, product=2.0**-21),
    "tf32": _Rounding(2.0**-23, 0.0, 2.0**-149, 0.0, product=2.0**-10 + 2.0**-22),
    "f16": _Rounding(2.0**-23, 2.0**-11, 2.0**-149, 2.0**-25, product=2.0**-11),
    "bf16": _Rounding(2.0**-23, 2.0**-8, 2.0**-149, 2.0**-134, product=2.0**-8),
}


def sweep_error(
    dtype: str,
    terms: int,
    exact: np.ndarray | float,
    absolute: np.ndarray | float,
    *,
    matrix: bool = False,
    pairs: bool = False,
) -> np.ndarray | float:
    """Formula (1), or (3) with `matrix`: the error of one sweep from exact inputs, point by point.

    `exact` are the exact results, `absolute` the sums of |w_i| |u_i| at the same points (float64,
    one shape), `terms` is the number n of weights; with `pairs` rows are summed up in pairs. Raises
    TwofourError for an unknown dtype.
    """
    rounding = _rounding(dtype, matrix)
    roundings = (terms + (4 if pairs else 1)) * rounding.accumulation
    gamma = roundings / (1 - roundings)
    if pairs:
        gamma, terms = PAIRED_PARTS * gamma, 2 * terms
    underflow = rounding.storage_underflow + terms * rounding.term_underflow
    summed = (gamma + rounding.product * (1 + gamma)) * absolute
    return summed + rounding.storage * (np.abs(exact) + summed) + underflow


def error_bound(
    dtype: str,
    weights: Sequence[float] | Mapping[Sequence[int], float],
    magnitude: float,
    steps: int = 1,
    *,
    matrix: bool = False,
    pairs: bool = False,
) -> float:
    """Formula (2): the largest error of any point after `steps` single steps.

    `weights` are those of the stencil, alone or by their offsets; `magnitude` bounds |u| of the
    first input and of boundary constants. The magnitude of later inputs is bounded by L^k
    `magnitude`, so the bound is for the worst input; (1) at the points of an actual input is
    sharper. With `pairs` rows are summed up in pairs. Raises TwofourError for an unknown dtype.
    """
    weights = list(weights.values() if isinstance(weights, Mapping) else weights)
    gain = float(np.sum(np.abs(np.asarray(weights, np.float64))))
    error = 0.0
    for _ in range(steps):
        grown = gain * (magnitude + error)
        one = sweep_error(dtype, len(weights), grown, grown, matrix=matrix, pairs=pairs)
        error = gain * error + float(one)
        magnitude = max(magnitude, gain * magnitude)
    return error


def _rounding(dtype: str, matrix: bool) -> _Rounding:
    known = _MATRIX_ROUNDING if matrix else _ROUNDING
    if dtype not in known:
        raise TwofourError(f"expected a dtype out of {', '.join(known)}, got {dtype!r}")
    return known[dtype]
