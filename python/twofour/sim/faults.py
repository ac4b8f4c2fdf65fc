# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the simulator reports when a kernel does something that PTX leaves undefined."""

from dataclasses import dataclass

from twofour.errors import SourceLocation, TwofourError


@dataclass(frozen=True)
class Place:
    """Who was executing: indices of the block in the grid and of the thread in the block."""

    kernel: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]

    def __str__(self) -> str:
        return f"kernel {self.kernel}, block {self.block}, thread {self.thread}"


class Fault(TwofourError):
    """A finding; the first one ends the launch.

    `kind` is one of "out of bounds", "misaligned", "uninitialised register", "uninitialised read",
    "shared-memory race", "missing cp.async wait", "conflicting global writes", "divergent warp",
    "barrier divergence", "deadlock", "undefined operation", "trap" and "too many steps"; `place` is
    who did it, None where it is not one thread; `address` is the one that was accessed (an offset
    in shared or local memory), None where there is none.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        location: SourceLocation,
        place: Place | None = None,
        address: int | None = None,
    ):
        detail = f"{kind}: {message}"
        if address is not None:
            detail += f" at address {address:#x}"
        if place is not None:
            detail += f" ({place})"
        super().__init__(detail, location)
        self.kind = kind
        self.place = place
        self.address = address
