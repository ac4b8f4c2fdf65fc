# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Heat maps over tiles of r1 x r2 outputs (SparStencil, figure 9, lower half)."""

from collections.abc import Sequence
from itertools import product

from twofour.bench.predicted.setting import Setting, over
from twofour.bench.predicted.tiles import instructions, predict_tile
from twofour.bench.section import Basis, Column, Plot, Section, Table, table
from twofour.errors import Unsuitable
from twofour.kernels import TABLE_2, Kernel, built_in_kernels
from twofour.layout.crush import crush
from twofour.layout.fragments import SPARSE_16
from twofour.layout.matching import apply_permutation, permute_2to4
from twofour.layout.patch import Offset

EXTENTS = range(1, 17)
MAPPED = ("Heat-2D", "Box-2D49P")
TEXT = """\
The rate of schedule `sparse` for tiles of r1 x r2 outputs, r2 along the fastest axis, f16 on
10240 x 10240 points, each tile in 2:4 form by the permutation that the compiler finds for it.
Density is the share of multiply-adds of matrix instructions that the stencil asks for, at most
one half. A dash or a white cell: no thread block takes the tile."""

Cells = dict[tuple[int, int], float | None]


def run(setting: Setting, extents: Sequence[int] = EXTENTS) -> Section:
    """The rate and the compute density of every tile of these extents."""
    kernels = {label: k for label, k in setting.table_2().items() if k.rank == 2}
    if setting.names is None:
        kernels = {label: built_in_kernels()[TABLE_2[label]] for label in MAPPED}
    tables, plots = [], []
    for label, kernel in kernels.items():
        rate, density = {}, {}
        for tile in over(list(product(extents, repeat=2)), f"heat map of {label}", "tiles"):
            rate[tile], density[tile] = _cell(setting, kernel, tile)
        titled = f"{label}: rate by tile, f16, schedule sparse, {setting.gpu.name}"
        for found in (
            _drawn(kernel, titled, "rate", "GStencil/s", "predicted", extents, rate),
            _drawn(kernel, f"{label}: density by tile", "density", "", "exact", extents, density),
        ):
            tables.append(found[0])
            plots.append(found[1])
    return Section("heatmap", "Heat maps over tiles", TEXT, tuple(tables), tuple(plots))


def _cell(setting: Setting, kernel: Kernel, tile: Offset) -> tuple[float | None, float]:
    """The rate of a tile, None where it does not fit, and the density of A."""
    offsets = kernel.offsets
    operator = crush(offsets, kernel.weights, tile)
    operator = apply_permutation(operator, permute_2to4(operator))
    multiplied = instructions(operator.matrix, SPARSE_16.k) * SPARSE_16.k
    density = len(offsets) / multiplied
    try:
        return predict_tile(setting.gpu, operator, offsets, True).gstencil_per_s, density
    except Unsuitable:
        return None, density


def _drawn(
    kernel: Kernel,
    title: str,
    name: str,
    unit: str,
    basis: Basis,
    extents: Sequence[int],
    cells: Cells,
) -> tuple[Table, Plot]:
    digits = 0 if unit else 2
    columns = [Column("r1"), *(Column(f"r2={r2}", basis, unit, digits) for r2 in extents)]
    details = columns[-1].details
    rows = {str(r1): tuple(cells[r1, r2] for r2 in extents) for r1 in extents}
    plot = Plot(
        name=f"heatmap-{kernel.name}-{name}",
        title=title,
        kind="grid",
        x_label="r2",
        y_label="r1",
        unit=unit or name,
        basis=basis,
        x=tuple(extents),
        series=rows,
    )
    return table(title, columns, [(r1, *values) for r1, values in rows.items()], details), plot
