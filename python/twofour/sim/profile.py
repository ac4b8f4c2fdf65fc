# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counters as text: totals, costs of one output point, and the lines of PTX that cost most."""

from twofour.sim.counters import Counters, LineCounters

_HOT_LINES = 20


def report(counters: Counters, points: int, source: str, hot_lines: int = _HOT_LINES) -> str:
    """The profile of a kernel.

    `points` output points were computed by it in all launches that `counters` adds up; `source` is
    the text of the PTX that was parsed.
    """
    lines = [f"{'':<26}{'total':>14}{'per point':>12}"]

    def row(name: str, value: int) -> None:
        lines.append(f"{name:<26}{value:>14}{value / max(points, 1):>12.4f}")

    row("warp instructions", counters.instructions)
    for name, value in counters.classes.most_common():
        row(f"  {name}", value)
    for name, value in counters.mma_kinds.most_common():
        row(f"  {name}", value)
    for name, accesses in (("load", counters.global_loads), ("store", counters.global_stores)):
        row(f"global {name} requests", accesses.requests)
        row(f"global {name} bytes", accesses.bytes)
    for name, accesses in (("load", counters.shared_loads), ("store", counters.shared_stores)):
        row(f"shared {name} wavefronts", accesses.wavefronts)
        row(f"shared {name} conflicts", accesses.conflicts)
    return "\n".join([*lines, "", *_hot(counters, source.splitlines(), hot_lines)]) + "\n"


def _hot(counters: Counters, source: list[str], count: int) -> list[str]:
    lines = [f"{'line':>6} {'issued':>9} {'sectors':>9} {'wavefronts':>10} {'conflicts':>9}  PTX"]
    hottest = sorted(counters.lines.items(), key=lambda item: (-_cost(item[1]), item[0]))[:count]
    for number, line in sorted(hottest):
        text = source[number - 1].strip() if number <= len(source) else ""
        lines.append(
            f"{number:>6} {line.executions:>9} {line.sectors:>9} {line.wavefronts:>10} "
            f"{line.conflicts:>9}  {text}"
        )
    return lines


def _cost(line: LineCounters) -> int:
    """What orders the lines: whatever the hardware has to issue or move for them."""
    return line.executions + line.sectors + line.wavefronts
