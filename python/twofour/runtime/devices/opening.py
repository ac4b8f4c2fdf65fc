# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices by their names."""

from twofour.errors import TwofourError
from twofour.runtime.devices.device import Device


def open_device(device: Device | str | None, target: str) -> Device:
    """The device of a name: cuda, cuda:N, sim or sim:CHIP; None is the first CUDA device.

    `target` is the chip that a simulator without one stands for. Raises TwofourError where there
    is no such device.
    """
    name = "cuda" if device is None else device
    if hasattr(name, "load") and hasattr(name, "launch"):
        return name
    kind, _, which = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind == "sim":
        # Neither kind of device needs what the other is made of.
        from twofour.runtime.devices.simulated import SimulatedDevice

        return SimulatedDevice(which or target)
    if kind == "cuda" and (not which or which.isdecimal()):
        from twofour.runtime.devices.cuda import CudaDevice

        return CudaDevice(int(which or 0))
    raise TwofourError(f"expected a device cuda, cuda:N, sim or sim:sm_XX, got {name!r}")
