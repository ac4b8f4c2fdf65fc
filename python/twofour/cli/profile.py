# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--profile`: what simulated kernels cost, by kernel, by output point, and by line of the PTX."""

from twofour.runtime import Bundle
from twofour.runtime.simulated import KernelProfile, SimulatedDevice

HOT_LINES = 12


def profile_text(device: SimulatedDevice, bundle: Bundle) -> str:
    """The counters of all launches so far."""
    parts = [_kernel(name, profile) for name, profile in device.profiles.items()]
    lines = bundle.ptx.splitlines()
    parts += [_hot_lines(name, profile, lines) for name, profile in device.profiles.items()]
    return "\n".join(part for part in parts if part)


def _kernel(name: str, profile: KernelProfile) -> str:
    counters = profile.counters
    rows = [("", "total", "per point")]
    rows += [
        (what, f"{count}", f"{count / profile.points:.4g}")
        for what, count in counters.as_dict().items()
    ]
    kinds = [(f"  {kind}", n) for kind, n in sorted(counters.classes.items(), key=_most)]
    kinds += [(f"  {kind}", n) for kind, n in sorted(counters.mma_kinds.items(), key=_most)]
    rows += [(kind, f"{n}", f"{n / profile.points:.4g}") for kind, n in kinds]
    launches = f"{profile.launches} launch{'es' if profile.launches > 1 else ''}"
    return f"{name}: {launches}, {profile.points} output points\n{_table(rows, text=0)}"


def _hot_lines(name: str, profile: KernelProfile, lines: list[str]) -> str:
    """The lines of the PTX that issue most: instructions, sectors and wavefronts together."""

    def cost(item):
        number, line = item
        return -(line.executions + line.sectors + line.wavefronts), number

    hot = sorted(profile.counters.lines.items(), key=cost)
    rows = [("line", "executed", "sectors", "wavefronts", "conflicts", "PTX")]
    rows += [
        (
            f"{number}",
            f"{line.executions}",
            f"{line.sectors}",
            f"{line.wavefronts}",
            f"{line.conflicts}",
            " ".join(lines[number - 1].split()),
        )
        for number, line in hot[:HOT_LINES]
    ]
    return f"{name}: the lines that cost most\n{_table(rows, text=5)}" if hot else ""


def _most(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _table(rows: list[tuple[str, ...]], text: int) -> str:
    """Columns of numbers, right-aligned, beside one of text (number `text`)."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if index == text else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"  {'  '.join(cells)}".rstrip())
    return "\n".join(lines)
