# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--profile`: what simulated kernels cost, by kernel, by output point, and by line of the PTX."""

from twofour import sim
from twofour.runtime import Bundle
from twofour.runtime.devices.simulated import KernelProfile, SimulatedDevice


def profile_text(device: SimulatedDevice, bundle: Bundle) -> str:
    """The counters of all launches so far, kernel by kernel."""
    parts = [_kernel(name, profile, bundle) for name, profile in device.profiles.items()]
    return "\n".join(parts).rstrip("\n")


def _kernel(name: str, profile: KernelProfile, bundle: Bundle) -> str:
    launches = f"{profile.launches} launch{'es' if profile.launches > 1 else ''}"
    head = f"{name}: {launches}, {profile.points} output points"
    return f"{head}\n{sim.report(profile.counters, profile.points, bundle.ptx)}"
