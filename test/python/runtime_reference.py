# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runtime's tests compare with: explicit index arithmetic that shares no code with it.

Also a stand-in for compiled kernels that follows their calling convention.
"""

import itertools

import numpy as np

from twofour.runtime import LinearKernel


def source(mode, extent, coordinate):
    """The cell in [0, extent) that `coordinate` takes its value from, one fold at a time."""
    while not 0 <= coordinate < extent:
        if mode == "nearest":
            coordinate = 0 if coordinate < 0 else extent - 1
        elif mode == "periodic":
            coordinate += extent if coordinate < 0 else -extent
        elif mode == "reflect":
            coordinate = -1 - coordinate if coordinate < 0 else 2 * extent - 1 - coordinate
        else:
            raise AssertionError(mode)
    return coordinate


def gather(u, boundary, coordinates):
    """Values at the outer product of `coordinates` (one list an axis), inside `u` or not."""
    index = []
    for extent, entry, wanted in zip(u.shape, boundary, coordinates, strict=True):
        folds = entry.mode in ("periodic", "reflect", "nearest")
        index.append(
            [source(entry.mode, extent, c) if folds else min(max(c, 0), extent - 1) for c in wanted]
        )
    values = u[np.ix_(*index)]
    for axis, (extent, entry, wanted) in enumerate(
        zip(u.shape, boundary, coordinates, strict=True)
    ):
        outside = np.array([not 0 <= c < extent for c in wanted])
        if entry.mode in ("zero", "constant"):
            value = entry.value if entry.mode == "constant" else 0.0
            np.moveaxis(values, axis, 0)[outside] = value
        elif entry.mode == "fixed":
            assert not outside.any()
    return values


def one_step(u, weights, boundary, updated):
    """One step of the domain `u` (float64); `updated` has one range an axis."""
    result = u.copy()
    if all(len(r) for r in updated):
        total = np.zeros([len(r) for r in updated])
        for offset, weight in weights.items():
            shifted = [[x + o for x in r] for r, o in zip(updated, offset, strict=True)]
            total += weight * gather(u, boundary, shifted)
        result[np.ix_(*updated)] = total
    return result


def reference(u, weights, boundary, steps, interior=None):
    """`steps` single steps in float64, as LinearStepper.advance documents them."""
    u = u.astype(np.float64)
    rank = u.ndim
    fixed = [entry.mode == "fixed" for entry in boundary]
    lower, upper = interior or ((0,) * rank, u.shape)
    begin = [0 if fixed[d] else lower[d] for d in range(rank)]
    end = [u.shape[d] if fixed[d] else upper[d] for d in range(rank)]
    domain = u[tuple(map(slice, begin, end))].copy()
    updated = []
    for d in range(rank):
        if interior and fixed[d]:
            updated.append(range(lower[d], upper[d]))
        elif fixed[d]:
            reach = [o[d] for o in weights]
            updated.append(range(max(0, -min(reach)), u.shape[d] - max(0, *reach)))
        else:
            updated.append(range(domain.shape[d]))
    for _ in range(steps):
        domain = one_step(domain, weights, boundary, updated)
    if steps == 0 or not interior:
        return u if steps == 0 else domain
    return gather(domain, boundary, [range(-b, n - b) for b, n in zip(begin, u.shape, strict=True)])


def reach(weights):
    offsets = np.array(list(weights))
    return tuple((-offsets.min(axis=0)).tolist()), tuple(offsets.max(axis=0).tolist())


def convolved(weights, steps):
    """The weights of `steps` steps at once."""
    fused = weights
    for _ in range(steps - 1):
        product = {}
        for (a, v), (b, w) in itertools.product(fused.items(), weights.items()):
            key = tuple(x + y for x, y in zip(a, b, strict=True))
            product[key] = product.get(key, 0.0) + v * w
        fused = product
    return fused


class NumpyKernel:
    """Follows the convention of compiled kernels: views that cover region and reach exactly."""

    def __init__(self, weights):
        self.weights = weights
        self.lo, self.hi = reach(weights)
        self.binds = 0
        self.runs = []

    def bind(self, views_in, views_out):
        (source,), (target,) = views_in, views_out
        expected = np.array(target.shape) + self.lo + self.hi
        assert source.shape == tuple(expected.tolist())
        assert target.size > 0
        for view in (source, target):
            assert view.flags.aligned
            assert view.shape[-1] == 1 or view.strides[-1] == view.itemsize
        self.binds += 1
        return NumpyBound(self, source, target)


class NumpyBound:
    def __init__(self, kernel, source, target):
        self.kernel, self.source, self.target = kernel, source, target

    def run(self, begin, end):
        assert 0 <= begin < end <= self.target.shape[0]
        self.kernel.runs.append((begin, end))
        shape = (end - begin, *self.target.shape[1:])
        total = np.zeros(shape)
        for offset, weight in self.kernel.weights.items():
            start = np.add(offset, self.kernel.lo)
            start[0] += begin
            total += weight * self.source[tuple(map(slice, start, start + shape))]
        self.target[begin:end] = total


def linear_kernel(weights, steps=1):
    fused = convolved(weights, steps)
    return LinearKernel(NumpyKernel(fused), *reach(fused), steps=steps)
