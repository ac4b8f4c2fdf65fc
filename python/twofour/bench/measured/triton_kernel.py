# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel in Triton that others are compared with: a block of a row of outputs a program."""

from collections.abc import Callable, Sequence

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _sweep(
    source,
    target,
    width,
    source_row,
    source_plane,
    target_row,
    target_plane,
    PLACES: tl.constexpr,
    WEIGHTS: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.program_id(1).to(tl.int64)
    z = tl.program_id(2).to(tl.int64)
    inside = x < width
    at = source + z * source_plane + y * source_row + x
    total = tl.zeros((BLOCK,), dtype=tl.float64 if WIDE else tl.float32)
    for n in tl.static_range(len(WEIGHTS)):
        value = tl.load(
            at + PLACES[n][0] * source_plane + PLACES[n][1] * source_row + PLACES[n][2],
            mask=inside,
            other=0.0,
        )
        total += value.to(total.dtype) * WEIGHTS[n]
    result = total.to(target.dtype.element_ty)
    tl.store(target + z * target_plane + y * target_row + x, result, mask=inside)


def launcher(
    source, target, offsets: Sequence[Sequence[int]], weights: Sequence[float]
) -> Callable[[], None]:
    """What runs one sweep on tensors of PyTorch.

    `target` is the output, `source` the inputs under it, part of an array with the halo around.
    """
    shape = (1,) * (3 - target.ndim) + tuple(target.shape)
    strides = [
        stride
        for tensor in (source, target)
        for stride in reversed((0, 0, *tensor.stride())[-3:-1])
    ]
    places = tuple((0, 0, *offset)[-3:] for offset in offsets)
    grid = (triton.cdiv(shape[2], BLOCK), shape[1], shape[0])
    wide = target.element_size() == 8

    def run() -> None:
        _sweep[grid](
            source, target, shape[2], *strides,
            PLACES=places, WEIGHTS=tuple(weights), WIDE=wide, BLOCK=BLOCK,
        )  # fmt: skip

    return run
