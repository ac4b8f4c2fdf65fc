# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of compiled sweep kernels: MLIR's C interface through ctypes.

A kernel is `void NAME(memref *in_0, ..., memref *out_0, ..., int64_t begin, int64_t end)` with
memref = {void *allocated, void *aligned, int64_t offset, int64_t sizes[rank], int64_t
strides[rank]}, strides in elements. It writes the rows [begin, end) of the outermost axis of the
output views; the input views cover the same region grown by the reach of each input.
"""

import ctypes
from collections.abc import Callable, Collection, Sequence

import numpy as np

from twofour.errors import TwofourError
from twofour.runtime.crew import Crew

# As many axes as arrays of any NumPy have.
MAX_RANK = 32


class NativeKernel:
    """A compiled kernel at `address` with `inputs` + `outputs` views, outputs of rank `rank`.

    Inputs may have other ranks. `keep_alive` is whatever owns the machine code. `past_caches` gives
    the kernel for arrays that do not fit the caches, where there is another one. `crew` gives the
    threads that share sweeps.
    """

    def __init__(
        self,
        name: str,
        address: int,
        rank: int,
        inputs: int,
        outputs: int,
        keep_alive: object,
        past_caches: "Callable[[], NativeKernel] | None" = None,
        crew: Callable[[], Crew] | None = None,
    ):
        self.name = name
        self.address = address
        self.rank = rank
        self.inputs = inputs
        self.outputs = outputs
        self.past_caches = past_caches
        self._keep_alive, self._crew = keep_alive, crew
        pointers = [ctypes.c_void_p] * (inputs + outputs)
        # CFUNCTYPE functions release the interpreter lock while they run.
        self._function = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64, ctypes.c_int64)(address)

    def bind(
        self, views_in: Sequence[np.ndarray], views_out: Sequence[np.ndarray]
    ) -> "BoundKernel":
        """Return the kernel with its descriptors built for these views, which it keeps alive.

        Raises TwofourError where the number of views, an output's rank, or the layout of a view
        (native alignment, inner stride of one element, writable outputs) is not as expected.
        """
        for kind, views, count in (
            ("input", views_in, self.inputs),
            ("output", views_out, self.outputs),
        ):
            if len(views) != count:
                raise TwofourError(
                    f"kernel {self.name}: expected {count} {kind} views, got {len(views)}"
                )
        for view in views_out:
            if view.ndim != self.rank:
                raise TwofourError(
                    f"kernel {self.name}: expected outputs of rank {self.rank}, got {view.ndim}"
                )
            if not view.flags.writeable:
                raise TwofourError(
                    f"kernel {self.name}: expected writable outputs, got a read-only array"
                )
        views = [*views_in, *views_out]
        descriptors = [_in_memory(descriptor(view, self.name)) for view in views]
        return BoundKernel(self._function, descriptors, self._crew, (self, views))


class BoundKernel:
    """A kernel with its views. Its calls release the interpreter lock."""

    def __init__(
        self,
        function: Callable[..., None],
        descriptors: list[ctypes.Array],
        crew: Callable[[], Crew] | None,
        keep_alive: object,
    ):
        self._function, self._crew = function, crew
        self._descriptors = descriptors
        self._arguments = [ctypes.c_void_p(ctypes.addressof(d)) for d in descriptors]
        self._keep_alive = keep_alive

    def run(self, begin: int, end: int) -> None:
        """Sweep the rows [begin, end), 0 <= begin <= end <= outermost extent (not checked)."""
        self._function(*self._arguments, begin, end)

    def run_together(self, extent: int, threads: int) -> None:
        """Sweep the rows [0, extent) of a kernel with one input on up to so many threads.

        Each has a range of its own. Kernels compute a point in the same way whatever range it is
        in, so that the result has the same bits for any number of threads.
        """
        source, target = self._arguments
        self._crew().sweep(self._function, source, target, extent, threads)


class NativeFunction:
    """A compiled function over whole arrays and numbers, `void NAME(memref *, ..., double, ...)`.

    `scalars` gives the ctypes type of each argument that is a number, None for an array, in the
    order of the arguments. `results` is the number of memrefs it returns (their values are not
    kept: they are its arguments again). `strides` are the places of numbers that loops step by.
    """

    def __init__(
        self,
        name: str,
        address: int,
        scalars: Sequence[type | None],
        results: int,
        keep_alive: object,
        strides: Collection[int] = (),
    ):
        self.name = name
        self._keep_alive = keep_alive
        self._results = results
        # With their numbers among the scalars.
        self._strides = [(at, at - list(scalars[:at]).count(None)) for at in strides]
        kinds = [kind or ctypes.c_void_p for kind in scalars]
        if results:
            kinds.insert(0, ctypes.c_void_p)
        self._function = ctypes.CFUNCTYPE(None, *kinds)(address)

    def __call__(self, arguments: Sequence[np.ndarray | float | int]) -> None:
        """Call it with C-contiguous arrays (written in place) and numbers.

        Raises TwofourError for a step of a loop that is not positive: the loop would never end.
        """
        for at, number in self._strides:
            if arguments[at] < 1:
                raise TwofourError(
                    f"scalar {number}: expected a positive step of a loop, got {arguments[at]}"
                )
        descriptors = []
        values = []
        if self._results:
            # Room for the returned descriptors, whatever their ranks.
            descriptors.append((ctypes.c_int64 * ((3 + 2 * MAX_RANK) * self._results))())
            values.append(ctypes.addressof(descriptors[0]))
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                descriptors.append(_in_memory(descriptor(argument, self.name)))
                values.append(ctypes.addressof(descriptors[-1]))
            else:
                values.append(argument)
        self._function(*values)


def descriptor(view: np.ndarray, kernel: str | None = None) -> tuple[int, ...]:
    """The words of the ranked memref descriptor of `view`.

    Raises TwofourError where `kernel`, if any, cannot take it.
    """
    itemsize = view.itemsize
    if not view.flags.aligned or any(stride % itemsize for stride in view.strides):
        raise TwofourError(
            f"kernel {kernel}: expected aligned elements, got strides {view.strides}"
        )
    strides = [stride // itemsize for stride in view.strides]
    if view.ndim and view.shape[-1] == 1:
        # The stride of an axis with one element is arbitrary in NumPy.
        strides[-1] = 1
    if kernel is not None and view.ndim and strides[-1] != 1:
        raise TwofourError(
            f"kernel {kernel}: expected an inner stride of 1 element, got {strides[-1]}"
        )
    address = view.__array_interface__["data"][0]
    return (address, address, 0, *view.shape, *strides)


def _in_memory(words: Sequence[int]) -> ctypes.Array:
    return (ctypes.c_int64 * len(words))(*words)
