# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices: memory with kernels that launch on it, real ones and the simulator."""

from collections.abc import Sequence
from typing import Protocol

from twofour.errors import TwofourError
from twofour.runtime.bundle import Bundle
from twofour.runtime.devices.launching import LaunchShape, launch_shape, pack_arguments, tensor_maps
from twofour.runtime.manifest import KernelSpec
from twofour.runtime.memory import Memory
from twofour.tensor_map import TensorMap


class Device(Memory, Protocol):
    """A GPU, or what stands for one.

    `multiprocessors` is how many it has, None where that does not matter. `load` returns the
    bundle's kernels by their names, and raises TwofourError where the device cannot run it. `holds`
    tells whether kernels can read an array of the array module where it is. `encoded` gives the 128
    bytes of a tensor map as the device reads them. `launch` starts a kernel that `load` gave with
    packed parameters, numbers and bytes; on a GPU it does not wait.
    """

    multiprocessors: int | None

    def load(self, bundle: Bundle) -> "dict[str, DeviceKernel]": ...

    def holds(self, array) -> bool: ...

    def encoded(self, tensor: TensorMap) -> bytes: ...

    def launch(self, code: object, shape: LaunchShape, parameters: Sequence) -> None: ...


class DeviceKernel:
    """A kernel loaded on a device. `code` is whatever the device launches."""

    def __init__(self, device: Device, spec: KernelSpec, code: object):
        self.device, self.spec, self.code = device, spec, code

    def aligned_for(self, reach_below: int) -> "AlignedKernel":
        """The kernel for inputs of this reach below on the last axis."""
        return AlignedKernel(self, reach_below)

    def bind(
        self,
        views_in: Sequence,
        views_out: Sequence,
        scalars: Sequence = (),
        reach_below: int = 0,
        covered: Sequence[int] | None = None,
    ) -> "BoundLaunch":
        """Return the kernel with its parameters packed for these views, which it keeps alive.

        Blocks cover the output views, or a box of extents `covered`. Raises ValueError where the
        views do not fit the kernel; see twofour.runtime.devices.launching.
        """
        address = self.device.address
        addresses = [address(view) for view in (*views_in, *views_out)]
        parameters = pack_arguments(self.spec, views_in, scalars, views_out, addresses, reach_below)
        extents = views_out[0].shape if covered is None else covered
        shape = launch_shape(self.spec, extents, self.device.multiprocessors)
        if shape is not None:
            maps = tensor_maps(self.spec, (*views_in, *views_out), addresses)
            parameters += map(self.device.encoded, maps)
        return BoundLaunch(self, shape, parameters, (views_in, views_out))


class AlignedKernel:
    """A kernel of a linear stencil, bound as NativeKernel is."""

    def __init__(self, kernel: DeviceKernel, reach_below: int):
        self._kernel, self._reach_below = kernel, reach_below

    def bind(self, views_in: Sequence, views_out: Sequence) -> "BoundLaunch":
        return self._kernel.bind(views_in, views_out, reach_below=self._reach_below)


class BoundLaunch:
    """A kernel with its views: `run` launches it over the whole of them."""

    def __init__(
        self,
        kernel: DeviceKernel,
        shape: LaunchShape | None,
        parameters: Sequence,
        keep_alive: object,
    ):
        self._kernel, self._shape, self._parameters = kernel, shape, parameters
        self._keep_alive = keep_alive

    def run(self, begin: int, end: int) -> None:
        """Launch the kernel; a device divides the rows by itself, so they must be all of them."""
        if self._shape is not None:
            self._kernel.device.launch(self._kernel.code, self._shape, self._parameters)


def check_chip(target: str, capability: int, device: str) -> None:
    """Raise TwofourError where a device of this capability (90: 9.0) cannot run PTX for `target`.

    PTX runs on its own and newer chips; PTX with features of one architecture on that one only.
    """
    specific = target[-1].isalpha()
    wanted = int(target.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz"))
    if capability != wanted if specific else capability < wanted:
        raise TwofourError(
            f"expected a device of compute capability {wanted / 10:.1f}"
            f"{'' if specific else ' or higher'} for {target}, got {capability / 10:.1f} ({device})"
        )
