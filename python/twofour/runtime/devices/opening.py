# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices by their names."""

from twofour.errors import TwofourError
from twofour.runtime.devices.device import Device


def open_device(device: Device | str | None, target: str) -> Device:
    """The device of a name: cuda, cuda:N, sim or sim:CHIP; None is the first CUDA device.

    `target` is the chip that a simulator without one stands for. Raises TwofourError where there
    is no such device.
    """
    if _is_open(device):
        return device
    kind, which = _parsed(device)
    if kind == "sim":
        # Neither kind of device needs what the other is made of.
        from twofour.runtime.devices.simulated import SimulatedDevice

        return SimulatedDevice(which or target)
    from twofour.runtime.devices.cuda import CudaDevice

    return CudaDevice(int(which or 0))


def check_device(device: Device | str | None) -> None:
    """Raise TwofourError for what is neither a device nor the name of one, be it there or not."""
    if not _is_open(device):
        _parsed(device)


def _is_open(device: object) -> bool:
    return hasattr(device, "load") and hasattr(device, "launch")


def _parsed(name: object) -> tuple[str, str]:
    """The kind of a device, cuda or sim, and which of these it is."""
    text = "cuda" if name is None else name
    kind, _, which = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind == "sim" or (kind == "cuda" and (not which or which.isdecimal())):
        return kind, which
    raise TwofourError(f"expected a device cuda, cuda:N, sim or sim:sm_XX, got {name!r}")
