# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who competes in a program over several fields: a copy, plain CUDA, and the compiled program."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from twofour.bench.measured import field_source
from twofour.bench.measured.baselines import COPY, PLAIN, copy_bytes
from twofour.bench.measured.contest import Contestant
from twofour.bench.measured.entrants import Entrants, one_line
from twofour.bench.measured.plan import FieldGroup
from twofour.errors import Unsuitable
from twofour.runtime import Bundle
from twofour.runtime.devices.device import Device
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.runtime.programs import from_bundle

OWN = "twofour"
STEPS = 32  # of a sample's sweep: one call of the program
# How far results of values of order one may be apart after a step, rounded differently, in units
# of the last place.
STEP_ERROR = 450


@dataclass(frozen=True)
class FieldArrays:
    """The arguments of a program at first: random numbers inside those that are loaded, else zeros.

    They are the same in every session.
    """

    group: FieldGroup
    device: Device

    def initial(self) -> list:
        """New arrays, one an argument."""
        module, group = self.device.array_module, self.group
        draws = module.random.default_rng(0)
        storage = ELEMENT_TYPES[group.dtype].storage
        found = []
        for number in range(len(group.rotation)):
            array = self.device.zeros([n + 2 * group.halo for n in group.shape], storage)
            if number in group.loaded:
                inside = (slice(group.halo, -group.halo),) * len(group.shape)
                array[inside] = draws.random(group.shape, dtype=np.float32).astype(storage)
            found.append(array)
        return found

    def numbers(self, arrays) -> np.ndarray:
        """Arrays in the memory of the process, one behind the other."""
        get = getattr(self.device.array_module, "asnumpy", np.asarray)
        return np.stack([get(array) for array in arrays])


def copy(arrays: FieldArrays) -> tuple[Contestant, None]:
    """As many bytes as the interior of a field has."""
    group = arrays.group
    size = math.prod(group.shape) * ELEMENT_TYPES[group.dtype].itemsize
    source, target = arrays.initial()[:2]

    def sweep(_: int) -> None:
        copy_bytes(arrays.device, source, target, size)

    # Between one pair of arrays copies in a CUDA graph are slower (H200, 512 MiB: 2.7 of 4.2 TB/s).
    return Contestant(COPY, 1, sweep, recordable=False, checked=False), None


def plain(arrays: FieldArrays) -> tuple[Contestant, np.ndarray]:
    """The kernels of field_source on arrays of their own, and the stored fields after one sweep."""
    group, device = arrays.group, arrays.device
    text = field_source.source_text(group.dtype, len(group.shape), group.halo, group.loops)
    kernels = [
        device.array_module.RawKernel(
            text, field_source.kernel_name(number), options=("-std=c++17",)
        )
        for number in range(len(group.loops))
    ]
    blocks = field_source.grid(group.shape)
    extents = [np.int64(n) for n in (group.shape[-1], group.shape[-2])]
    fields = arrays.initial()

    def sweep(_: int) -> None:
        now = list(fields)
        for step in range(STEPS):
            if step:
                now = [now[source] for source in group.rotation]
            addresses = [np.uint64(device.address(array)) for array in now]
            for kernel in kernels:
                kernel(blocks, field_source.THREADS, (*addresses, *extents))
        last[:] = [now[number] for number in group.stored]

    last: list = []
    sweep(0)
    device.synchronize()
    return Contestant(PLAIN, STEPS, sweep), arrays.numbers(last)


def own(arrays: FieldArrays, bundle: Bundle) -> tuple[Contestant, np.ndarray]:
    """Calls of the program from Python, and the stored fields after one of them.

    A call leaves its inputs as they are, and returns new arrays.
    """
    program = from_bundle(bundle, arrays.device)
    initial = arrays.initial()
    inputs = [initial[number] for number in arrays.group.loaded]

    def sweep(_: int):
        return program(*inputs, steps=STEPS)

    found = sweep(0)
    fields = found if isinstance(found, tuple) else (found,)
    return Contestant(OWN, STEPS, sweep, recordable=False), arrays.numbers(fields)


FIELD_BASELINES: Mapping[str, Callable[[FieldArrays], tuple[Contestant, np.ndarray | None]]] = {
    COPY: copy,
    PLAIN: plain,
}


def difference(group: FieldGroup, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """How far two results are apart, infinite where one is no number, and how far they may be."""
    apart = np.abs(first.astype(np.float64) - second)
    largest = float(np.where(np.isnan(apart), np.inf, apart).max())
    return largest, STEPS * STEP_ERROR * float(np.finfo(ELEMENT_TYPES[group.dtype].storage).eps)


def admit_fields(entrants: Entrants, group: FieldGroup, device: Device, bundle: Bundle) -> int:
    """Admit who executes a program over several fields; there is one set of inputs."""
    arrays, expected = FieldArrays(group, device), None
    for name, make in FIELD_BASELINES.items():
        try:
            contestant, result = make(arrays)
        except Exception as failure:
            # Libraries raise what they like; everything else can still be measured.
            entrants.leave_out(name, one_line(failure))
            continue
        entrants.admit(contestant)
        expected = result if result is not None else expected
    if expected is None:
        entrants.leave_out(OWN, "nothing to compare with")
        return 1
    try:
        contestant, result = own(arrays, bundle)
    except Unsuitable as refusal:
        entrants.leave_out(OWN, refusal.message)
        return 1
    entrants.admit(contestant, *difference(group, result, expected))
    return 1
