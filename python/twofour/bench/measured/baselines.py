# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels are compared with on a CUDA device, in the simplest honest form.

A copy by the driver, a plain CUDA kernel, cuDNN's convolution through PyTorch, and a kernel in
Triton. All of them work on the same arrays as the kernels of this project, one step a sweep.
"""

import math
from collections.abc import Callable

import numpy as np

from twofour.bench.measured import cuda_source
from twofour.bench.measured.contest import Contestant
from twofour.bench.measured.fields import Fields
from twofour.runtime.devices.device import Device

# From so many bytes on, a copy in a CUDA graph is slower than one without (H200, CUDA 13: 2.7
# instead of 4.2 TB/s).
GRAPH_COPY_BYTES = 1 << 30
MAX_MACS = 1e12  # of a convolution, which has all points of the box around a stencil
COPY, PLAIN, CUDNN, TRITON = "copy", "plain CUDA", "cuDNN", "Triton"
_DEVICE_TO_DEVICE = 3  # cudaMemcpyKind


def copy(fields: Fields) -> Contestant:
    """As many bytes as a sweep writes, from inputs to outputs."""
    device, group = fields.device, fields.group
    size = math.prod(group.shape) * fields.element.itemsize
    none = (0,) * len(group.shape)

    def sweep(number: int) -> None:
        # Rows of inputs are not shorter than those of outputs, and follow each other.
        copy_bytes(device, fields.source(number, none, none), fields.targets[number], size)

    return Contestant(COPY, 1, sweep, recordable=size < GRAPH_COPY_BYTES, checked=False)


def copy_bytes(device: Device, source, target, size: int) -> None:
    """Start the driver's copy of so many bytes, from the first element of an array on."""
    addresses = device.address(target), device.address(source)
    runtime = device.array_module.cuda.runtime
    runtime.memcpyAsync(*addresses, size, _DEVICE_TO_DEVICE, device.stream)


def plain(fields: Fields) -> Contestant:
    """The kernel of twofour.bench.measured.cuda_source, compiled by CuPy."""
    group, cupy = fields.group, fields.device.array_module
    text = cuda_source.source_text(group.dtype, group.offsets, group.weights)
    kernel = cupy.RawKernel(text, cuda_source.NAME, options=("-std=c++17",))
    blocks = cuda_source.grid(group.dtype, group.shape)
    threads = cuda_source.THREADS[len(group.shape)]
    bound = [plain_arguments(fields, number) for number in range(fields.sets)]

    def sweep(number: int) -> None:
        kernel(blocks, threads, bound[number])

    return Contestant(PLAIN, 1, sweep)


def plain_arguments(fields: Fields, number: int) -> tuple[np.generic, ...]:
    """The arguments of the plain kernel for one set."""
    group = fields.group
    none = (0,) * len(group.shape)
    source, target = fields.source(number, none, none), fields.targets[number]
    vector = cuda_source.vector_elements(group.dtype) * fields.element.itemsize
    height, width = (1, *group.shape)[-2:]
    strides = [
        stride // vector
        for view in (source, target)
        for stride in reversed((0, 0, *view.strides)[-3:-1])
    ]
    vectors = -(-width * fields.element.itemsize // vector)
    addresses = (fields.device.address(view) for view in (source, target))
    return (*map(np.uint64, addresses), *map(np.int64, (vectors, height, *strides)))


def cudnn(fields: Fields) -> Contestant:
    """A convolution of one channel by PyTorch, which calls cuDNN, with its own choice of algorithm.

    Raises ImportError without PyTorch, and ValueError for what would take many seconds a sweep.
    """
    import torch

    group = fields.group
    box = math.prod(a + b + 1 for a, b in zip(*group.reach, strict=True))
    macs = box * math.prod(group.shape)
    if macs > MAX_MACS:
        raise ValueError(f"{macs:.1e} multiply-adds a sweep, more than {MAX_MACS:.0e}")
    convolve = getattr(torch.nn.functional, f"conv{len(group.shape)}d")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False  # f32 is to be as exact as it is elsewhere
    lo, hi = group.reach
    weights = np.zeros([a + b + 1 for a, b in zip(lo, hi, strict=True)])
    for offset, weight in zip(group.offsets, group.weights, strict=True):
        weights[tuple(a + o for a, o in zip(lo, offset, strict=True))] = weight
    inputs = [
        # Of rows with gaps PyTorch would make a copy in every call.
        torch.from_dlpack(fields.source(number, lo, hi))[None, None].contiguous()
        for number in range(fields.sets)
    ]
    results = [torch.from_dlpack(target) for target in fields.targets]
    kernel = torch.as_tensor(weights[None, None], dtype=inputs[0].dtype, device=inputs[0].device)
    kept = set()

    def sweep(number: int) -> None:
        result = convolve(inputs[number], kernel)
        if number not in kept:
            # The first result is compared with others; later ones need no copy.
            results[number].copy_(result[0, 0])
            kept.add(number)

    return Contestant(CUDNN, 1, sweep, recordable=False)


def triton(fields: Fields) -> Contestant:
    """A kernel in Triton; raises ImportError where it or PyTorch is not installed."""
    import torch

    from twofour.bench.measured.triton_kernel import launcher

    group = fields.group
    none = (0,) * len(group.shape)
    launches = [
        launcher(
            torch.from_dlpack(fields.source(number, none, none)),
            torch.from_dlpack(fields.targets[number]),
            group.offsets,
            group.weights,
        )
        for number in range(fields.sets)
    ]
    return Contestant(TRITON, 1, lambda number: launches[number](), recordable=False)


BASELINES: dict[str, Callable[[Fields], Contestant]] = {
    COPY: copy,
    PLAIN: plain,
    CUDNN: cudnn,
    TRITON: triton,
}
