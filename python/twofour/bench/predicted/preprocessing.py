# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler itself takes: the overhead of preprocessing (SparStencil, figure 8).

The only experiment without a GPU whose figures are measured, on the CPU that compiles.
"""

import time
from collections.abc import Callable
from statistics import median

from twofour.bench.cpu.machine import describe_machine
from twofour.bench.predicted.setting import Setting, over
from twofour.bench.predicted.tiles import ITEMSIZE
from twofour.bench.section import Column, Plot, Section, table
from twofour.cost.explore import best_stream
from twofour.kernels import Kernel
from twofour.layout.block import lay_out_block
from twofour.layout.chunks import chunk_operator
from twofour.layout.crush import crush
from twofour.layout.fragments import SPARSE_16
from twofour.layout.matching import apply_permutation
from twofour.layout.search import best_tile
from twofour.layout.stream import metadata_words, stream_layouts
from twofour.options import CompileOptions
from twofour.reach import reach_of
from twofour.targets.gpu.build import compile_gpu

ROUNDS = 5
MS = "ms on the host"
# Of schedule `sparse`, whose stages are those of the paper, and of `stream`.
STAGES = ("tile and permutation", "lookup tables", "metadata", "streaming layout")
WHOLE = "whole compilation"
TEXT = f"""\
Measured on the CPU that compiles, for f16: medians of {ROUNDS} rounds after one that is not
counted. The search for a tile and the permutation to 2:4 form, lookup tables with the block
layout that they belong to, and metadata are stages of schedule `sparse`; the streaming layout,
chosen by the model, is what `stream` has instead. The whole compilation is that of schedule
`auto`, to PTX, with machine code where ptxas is installed. All of it is done once for a kernel,
whatever the domain and the number of steps."""


def run(setting: Setting) -> Section:
    """Milliseconds of each stage for the kernels of table 2."""
    rows, samples, shares = [], [], {}
    for label, kernel in over(list(setting.table_2().items()), "preprocessing"):
        stages = {**_stages(setting, kernel), WHOLE: lambda k=kernel: _compile(setting, k)}
        found = {name: _seconds(stage) for name, stage in stages.items()}
        medians = [1e3 * median(seconds) for seconds in found.values()]
        shares[label] = medians[:-1]
        rows.append([label, *medians, medians[0] + medians[1] + medians[2]])
        samples.append({"kernel": kernel.name, "seconds": found})
    columns = [Column(name, "measured", MS) for name in (*STAGES, WHOLE)]
    columns.append(Column("preprocessing of sparse", "measured", MS))
    plot = Plot(
        name="preprocessing",
        title="Preprocessing on the host",
        kind="bars",
        x_label="kernel",
        y_label="time on the host",
        unit="ms",
        basis="measured",
        x=tuple(shares),
        series={name: tuple(x[n] for x in shares.values()) for n, name in enumerate(STAGES)},
    )
    found = table("Time of compilation", [Column("kernel"), *columns], rows, f"{MS}, measured")
    title = "Preprocessing overhead, measured on the host"
    text = f"{TEXT} The CPU here: {describe_machine()}."
    return Section("preprocessing", title, text, (found,), (plot,), samples)


def _stages(setting: Setting, kernel: Kernel) -> dict[str, Callable[[], object]]:
    offsets, weights = kernel.offsets, kernel.weights
    reach = reach_of(offsets)
    tile, permutation, _ = best_tile(offsets, weights)
    operator = apply_permutation(crush(offsets, weights, tile), permutation)
    layout = lay_out_block(operator, SPARSE_16, ITEMSIZE, reach)

    def tables() -> None:
        lay_out_block(operator, SPARSE_16, ITEMSIZE, reach).input_offsets()

    def metadata() -> None:
        for place in layout.used_blocks():
            SPARSE_16.operands(layout.block(*place))

    def stream() -> None:
        layouts = stream_layouts(chunk_operator(offsets, weights), reach)
        metadata_words(best_stream(layouts, "f16", setting.gpu))

    found = (lambda: best_tile(offsets, weights), tables, metadata, stream)
    return dict(zip(STAGES, found, strict=True))


def _compile(setting: Setting, kernel: Kernel) -> None:
    compile_gpu(kernel, CompileOptions(setting.target, dtype="f16"))


def _seconds(stage: Callable[[], object]) -> list[float]:
    stage()
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        stage()
        found.append(time.perf_counter() - start)
    return found
