# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tells one stencil from another: its offsets and weights, exactly."""

import hashlib
from collections.abc import Sequence


def fingerprint(offsets: Sequence[Sequence[int]], weights: Sequence[float]) -> str:
    """The name of a stencil, 32 hexadecimal digits; the order of its terms does not matter."""
    terms = sorted(
        (tuple(offset), float(weight).hex())
        for offset, weight in zip(offsets, weights, strict=True)
    )
    text = ";".join(f"{','.join(map(str, offset))}:{weight}" for offset, weight in terms)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
