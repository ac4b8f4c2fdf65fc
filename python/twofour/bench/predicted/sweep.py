# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stencil size against fragment shape (SparStencil, figure 9, upper half)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from twofour.analysis import LinearSweep
from twofour.bench.predicted.setting import OF_COPY, RATE, Setting, over
from twofour.bench.predicted.tiles import instructions, predict_tile, sparsity
from twofour.bench.section import Column, Plot, Section, table
from twofour.cost import Prediction
from twofour.layout.chunks import chunk_operator
from twofour.layout.crush import crush
from twofour.layout.matching import apply_permutation
from twofour.layout.patch import Offset
from twofour.layout.search import best_tile
from twofour.targets.gpu.candidates import candidates

RADII = range(1, 8)
FAMILIES = ((1, "box"), (2, "star"), (2, "box"))


@dataclass(frozen=True)
class Instruction:
    """A matrix instruction of f16, and the columns of A that it takes.

    `schedule` is that of kernels with this instruction, None where there are none.
    """

    name: str
    columns: int
    schedule: str | None


INSTRUCTIONS = (
    Instruction("mma.m16n8k16", 16, "dense"),
    Instruction("mma.sp.m16n8k16", 16, None),
    Instruction("mma.sp.m16n8k32", 32, "sparse"),
    Instruction("mma.sp.m16n8k32, stream", 32, "stream"),
)
COLUMNS = (
    Column("family"),
    Column("radius", "exact"),
    Column("points", "exact"),
    Column("fragment"),
    Column("tile", "exact"),
    Column("sparsity of A", "exact"),
    Column("mma", "exact", "128 outputs"),
    RATE,
    OF_COPY,
)
TEXT = """\
Stencils of radius 1 to 7, f16. Tiles are those that need the fewest sparse instructions of the
fragment's width, in schedule `stream` 16 outputs of a row. Sparsity is the share of zeros in A
as it is multiplied, padding included. Rates are those of kernels with this instruction:
schedules `dense`, `sparse` and `stream`; none uses `mma.sp.m16n8k16` with f16. In one dimension
stars and boxes are the same."""


def run(setting: Setting, radii: Sequence[int] = RADII) -> Section:
    """Sparsity, instructions and rates by family, radius and fragment."""
    rows = []
    cases = list(product(FAMILIES, radii, INSTRUCTIONS))
    for (rank, shape), radius, instruction in over(cases, "sweep", "stencils"):
        offsets = stencil(rank, radius, shape)
        stated = [f"{shape}-{rank}D", radius, len(offsets), instruction.name]
        rows.append(stated + _measures(setting, offsets, instruction))
    plots = []
    for rank, shape in FAMILIES:
        mine = [row for row in rows if row[0] == f"{shape}-{rank}D"]
        plots.append(_plot(mine, radii, "sparsity of A", "", "exact", 5))
        rate = _plot(mine, radii, "rate", "GStencil/s", "predicted", 7, setting.gpu.name)
        plots.append(rate)
    found = table("Stencil size and fragments", COLUMNS, rows)
    return Section("sweep", "Stencil size and fragment shape", TEXT, (found,), tuple(plots))


def stencil(rank: int, radius: int, shape: str) -> list[Offset]:
    """The offsets of a star or a box."""
    points = product(range(-radius, radius + 1), repeat=rank)
    return [p for p in points if shape == "box" or np.count_nonzero(p) <= 1]


def _measures(setting: Setting, offsets: list[Offset], instruction: Instruction) -> list:
    """Tile, sparsity, instructions, rate and its share of a copy's."""
    weights = [1 / len(offsets)] * len(offsets)
    if instruction.schedule == "stream":
        operator = chunk_operator(offsets, weights)
        predicted = _streamed(setting, offsets, weights)
    else:
        tile, permutation, _ = best_tile(offsets, weights, fragment=instruction.columns)
        operator = crush(offsets, weights, tile)
        if instruction.schedule != "dense":
            operator = apply_permutation(operator, permutation)
        predicted = None
        if instruction.schedule is not None:
            sparse = instruction.schedule == "sparse"
            predicted = predict_tile(setting.gpu, operator, offsets, sparse)
    return [
        "x".join(map(str, operator.tile)),
        sparsity(operator.matrix, instruction.columns),
        instructions(operator.matrix, instruction.columns),
        predicted and predicted.gstencil_per_s,
        predicted and predicted.fraction_of_copy,
    ]


def _streamed(setting: Setting, offsets: list[Offset], weights: list[float]) -> Prediction | None:
    """How fast a stencil streams; None where it does not."""
    sweep = LinearSweep("f", "k", tuple(offsets), tuple(weights), 1)
    found = candidates(sweep, "f16", "f16", setting.gpu, ("stream",)).candidates
    return found[0].prediction if found else None


def _plot(
    rows: list[list],
    radii: Sequence[int],
    label: str,
    unit: str,
    basis: str,
    column: int,
    chip: str | None = None,
) -> Plot:
    family = rows[0][0]
    values = {i.name: tuple(r[column] for r in rows if r[3] == i.name) for i in INSTRUCTIONS}
    return Plot(
        name=f"sweep-{family.lower()}-{label.split()[0]}",
        title=f"{family}, f16: {label} by radius" + (f", {chip}" if chip else ""),
        kind="lines",
        x_label="radius",
        y_label=label,
        unit=unit,
        basis=basis,
        x=tuple(radii),
        series={name: found for name, found in values.items() if any(found)},
    )
