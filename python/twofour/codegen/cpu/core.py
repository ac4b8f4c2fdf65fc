# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cores of processors, as far as the choice of kernels depends on them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Core:
    """What measuring showed of a core.

    `in_common`: rows of input that two rows of output read, as a part of what they would read one
    by one; with less in common, several rows at once are slower. `instructions`: of all kinds that
    start in a cycle, and `arithmetic`: multiply-adds and additions. `unaligned`,
    `unaligned_halves`: loads that are not aligned take so much longer, since they lie in two lines
    of the cache; the latter where a core loads a register by halves. `unaligned_alone`: the former
    for single vectors along the only axis, all of whose loads lie in one line or all in two; beside
    those of a neighbour the short ones wait for the long ones. `chains` of multiply-adds keep a
    core busy, and `lack` is how much of the lack of them shows; tiles overlap as far as their
    instructions are within the `window`. `loop`: instructions that a tile takes besides. `streams`:
    rows that a tile may read and write before each further one costs `stream_cost`. `overlap`: how
    much of the work beside the longest shows. `stores`: how much longer than others they take.
    `reserved`: registers beside sums, inputs and weights, without which weights do not stay.
    `eight_rows`: sums of so many points and more may be formed for eight rows. `outputs`: vectors
    in a tile, at most, where it has several of each row. `region_vectors`: vectors of each row of
    regions that are no sums, where rows share what they read. `narrow`: in three
    axes and more, where rows are short and planes far apart, tiles are one vector wide, those of
    short sums half a register, and few rows high. `planes`: there, rows of so many planes are
    summed up together. `by_columns`: boxes of weights that all differ, and sums of many points of
    planes, are better summed up column by column, for which fewer weights are in use at a time.
    `alone_on_diagonals`: rows of output that read the same rows, but no vector of these in common,
    are faster one by one. `claims`: it waits for the line of each store in turn, so that lines are
    better asked for before. `scale`: cycles that were measured for one of this model, None where it
    was only fitted to compare tiles.
    """

    in_common: float = 0.7
    instructions: float = 5
    arithmetic: float = 3
    unaligned: float = 1.2
    unaligned_halves: float = 1.2
    unaligned_alone: float = 1.2
    chains: float = 8
    lack: float = 0.4
    window: int = 128
    loop: float = 4
    streams: float = 6
    stream_cost: float = 0.02
    overlap: float = 0.1
    stores: float = 1
    reserved: int = 0
    eight_rows: int | None = None
    outputs: int = 16
    region_vectors: int = 1
    narrow: bool = False
    planes: int = 1
    by_columns: bool = False
    alone_on_diagonals: bool = False
    claims: bool = False
    scale: float | None = None


# Fitted to an AMD EPYC of family 25, model 1 (Zen 3), assumed for others.
ZEN_3 = Core()
# Fitted to an AMD EPYC of family 25, model 17 (Zen 4).
ZEN_4 = Core(
    in_common=1,
    instructions=4.04,
    arithmetic=3,
    unaligned=1.68,
    unaligned_halves=1.84,
    unaligned_alone=1.4,
    chains=13.9,
    lack=0.28,
    window=241,
    loop=3.6,
    streams=19.4,
    stream_cost=0.002,
    overlap=0.28,
    stores=1.5,
    reserved=7,
    # Rows of 4096 bytes and a few share sets of the first cache, and shorter sums wait for those
    # that were pushed out.
    eight_rows=12,
    narrow=True,
    scale=0.65,
)
# Of an Intel Xeon with AVX-512 FP16 (Golden Cove or later), assumed for others of Intel's with
# AVX-512. It starts six instructions, two multiply-adds and two loads of whole registers a cycle,
# and what lies in two lines counts twice; the rest is a fit.
GOLDEN_COVE = Core(
    in_common=1,
    instructions=6,
    arithmetic=2,
    unaligned=2,
    unaligned_alone=2,
    chains=16,
    lack=0.2,
    window=300,
    streams=64,
    stream_cost=0.003,
    overlap=0.6,
    stores=2,
    eight_rows=6,
    outputs=8,
    region_vectors=2,
    planes=4,
    by_columns=True,
    alone_on_diagonals=True,
    claims=True,
    scale=0.67,
)
