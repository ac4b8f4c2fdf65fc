# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What experiments share: the chip, the kernels, and what the compiler explains of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from twofour.analysis import LinearSweep
from twofour.bench.section import Column
from twofour.cost import GpuModel
from twofour.errors import TwofourError
from twofour.explain import explain
from twofour.kernels import TABLE_2, Kernel, built_in_kernels
from twofour.options import CompileOptions
from twofour.runtime import Progress
from twofour.suggestions import suggest

Item = TypeVar("Item")

RATE = Column("GStencil/s", "predicted", digits=0)
OF_COPY = Column("of a copy", "predicted")
LIMITED = Column("limited by", "predicted")


@dataclass(frozen=True)
class Setting:
    """The chip to predict for, and the names of the kernels to look at (None: the usual ones)."""

    gpu: GpuModel
    names: tuple[str, ...] | None = None

    @property
    def target(self) -> str:
        """The target to compile for."""
        return self.gpu.architecture

    def table_2(self) -> dict[str, Kernel]:
        """The kernels of table 2 by the paper's names, or those asked for by their own."""
        built_in = built_in_kernels()
        if self.names is None:
            return {label: built_in[name] for label, name in TABLE_2.items()}
        labels = {name: label for label, name in TABLE_2.items()}
        return {labels.get(name, name): built_in[name] for name in self.names}

    def all_kernels(self) -> list[Kernel]:
        """All built-in kernels, or those asked for."""
        built_in = built_in_kernels()
        return [built_in[name] for name in self.names or built_in]

    def explain(self, kernel: Kernel, dtype: str, steps: int = 1, schedule: str = "auto") -> dict:
        """What `twofour explain` says of a kernel: compiled and simulated, once for each choice."""
        options = CompileOptions(self.target, schedule, dtype, steps)
        return _explained(kernel, options, self.gpu.name)


@cache
def _explained(kernel: Kernel, options: CompileOptions, chip: str) -> dict:
    return explain(kernel, options, chip)


def find_kernels(words: Sequence[str]) -> tuple[str, ...]:
    """The names of built-in kernels, from their names or those in table 2.

    Raises TwofourError for others.
    """
    known = built_in_kernels()
    names = tuple(TABLE_2.get(word, word) for word in words)
    for word, name in zip(words, names, strict=True):
        if name not in known:
            raise TwofourError(f"unknown kernel '{word}'{suggest(word, [*TABLE_2, *known])}")
    return tuple(dict.fromkeys(names))


def sweep_of(kernel: Kernel) -> LinearSweep:
    """One step of a kernel."""
    return LinearSweep(kernel.name, kernel.name, kernel.offsets, kernel.weights, 1)


def over(items: Sequence[Item], label: str, unit: str = "kernels") -> Iterator[Item]:
    """The items, with progress on standard error."""
    with Progress(label, unit) as progress:
        for done, item in enumerate(items):
            progress(done, len(items))
            yield item
        progress(len(items), len(items))


def ratio(a: float | None, b: float | None) -> float | None:
    """The quotient of a and b where there are both."""
    return None if a is None or b is None else a / b


def rates(report: dict, key: str = "gstencil_per_s") -> dict[str, float]:
    """What is predicted of each schedule that can execute a kernel, from its explanation."""
    return {candidate["schedule"]: candidate[key] for candidate in report["candidates"]}


def per_schedule(schedules: Sequence[str]) -> list[Column]:
    """A column of predictions for each schedule."""
    return [Column(schedule, "predicted") for schedule in schedules]
