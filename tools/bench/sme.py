# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels for Arm SME execute, and what a model of a machine makes of it, as Markdown.

    python tools/bench/sme.py [--output FILE]

Instructions are counted under qemu at vectors of 512 bits, beside those of plain C loops that the
cross compiler vectorises. No machine with SME is needed, and nothing here is a time: the second
table is a model of issue widths, printed beside the speed-ups that the paper measured on a
simulator (Stencil Matrixization, Table 3).
"""

import argparse
import math
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test/execution/sme"))

from arm_machine import COMPILER, EMULATOR, missing_tools, run_tool  # noqa: E402
from sme_cases import (  # noqa: E402
    BASELINE_FLAGS,
    box,
    build,
    build_plain,
    check,
    expected_output,
    kernel_functions,
    mirrored,
    random_input,
    star,
)
from twofour.errors import TwofourError  # noqa: E402
from twofour.files import check_output  # noqa: E402
from twofour.kernels import Kernel  # noqa: E402

BITS, TILE = 512, 64
EXTENTS = {2: (64, 512), 3: (16, 32, 64)}
COVERS = {
    ("box", 2): ("parallel",),
    ("box", 3): ("parallel",),
    ("star", 2): ("parallel", "orthogonal"),
    ("star", 3): ("parallel", "orthogonal", "hybrid"),
}
# Table 3, f64: over automatic vectorisation, in caches (64^2, 32^3) and out of them (512^2, 64^3).
PAPER = {
    ("box", 2, 1): (2.92, 1.17),
    ("box", 2, 2): (4.58, 2.17),
    ("box", 2, 3): (4.71, 2.26),
    ("star", 2, 1): (1.59, 1.09),
    ("star", 2, 2): (1.48, 1.19),
    ("star", 2, 3): (1.64, 1.02),
    ("box", 3, 1): (3.68, 1.87),
    ("box", 3, 2): (3.88, 3.05),
    ("star", 3, 1): (1.46, 1.50),
    ("star", 3, 2): (3.10, 1.81),
    ("star", 3, 3): (3.04, 1.80),
}


@dataclass(frozen=True)
class Case:
    """A stencil and the counts of both programs, for the outputs of one tile."""

    kernel: Kernel
    shape: str
    radius: int
    plain: dict[str, float]
    ours: dict[str, dict[str, float]]


def classes(counts: Counter, extents: tuple[int, ...]) -> dict[str, float]:
    """Executed instructions of each class for the outputs of a tile."""
    share = TILE / math.prod(extents)

    def total(*starts: str) -> float:
        return share * sum(n for name, n in counts.items() if name.startswith(starts))

    return {
        "outer": total("fmopa"),
        "multiply": total("fmla", "fmad", "fmul", "fmls", "fmsb", "fnm", "fadd", "fsub"),
        "load": total("ld"),
        "store": total("st"),
        "all": total(""),
    }


def measure(shape: str, rank: int, radius: int) -> Case:
    kernel = mirrored({"box": box, "star": star}[shape](rank, radius))
    extents = EXTENTS[rank]
    values = random_input(kernel, extents, "f64")
    expected = expected_output(kernel, values)

    def counted(program, function: str) -> dict[str, float]:
        got, counts = program.count(values, BITS, function)
        check(got, expected, "f64")
        return classes(counts, extents)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = counted(build_plain(folder, kernel, extents), "plain")
        ours = {
            cover: counted(build(folder, kernel, cover), kernel_functions(kernel))
            for cover in COVERS[shape, rank]
        }
    return Case(kernel, shape, radius, plain, ours)


def cycles(counts: dict[str, float], pipes: int) -> float:
    """A tile's cycles where nothing but issue limits: 4 instructions, 2 loads, 1 store at a time.

    There is one unit for outer products and `pipes` for arithmetic on vectors.
    """
    return max(
        counts["outer"],
        counts["multiply"] / pipes,
        counts["load"] / 2,
        counts["store"],
        counts["all"] / 4,
    )


def counts_table(cases: list[Case]) -> list[str]:
    lines = [
        "| stencil | cover | outer products | loads | instructions | C | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        theirs = case.plain["all"]
        for cover, ours in case.ours.items():
            lines.append(
                f"| {_name(case)} | {cover} | {ours['outer']:.0f} | {ours['load']:.0f} "
                f"| {ours['all']:.0f} | {theirs:.0f} | {theirs / ours['all']:.2f} |"
            )
    return lines


def model_table(cases: list[Case]) -> list[str]:
    lines = [
        "| stencil | model, 1 vector unit | model, 2 vector units | paper, in cache | paper, not |",
        "|---|---|---|---|---|",
    ]
    for case in cases:
        cells = []
        for pipes in (1, 2):
            best = min(case.ours, key=lambda cover, p=pipes: cycles(case.ours[cover], p))
            ratio = cycles(case.plain, pipes) / cycles(case.ours[best], pipes)
            cells.append(f"{ratio:.2f} ({best})")
        inside, outside = PAPER[case.shape, case.kernel.rank, case.radius]
        lines.append(f"| {_name(case)} | {' | '.join(cells)} | {inside:.2f} | {outside:.2f} |")
    return lines


def _name(case: Case) -> str:
    return f"{case.kernel.rank}-D {case.shape}, r = {case.radius}"


def _version(tool: str) -> str:
    return run_tool([tool, "--version"]).decode().splitlines()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", metavar="FILE", help="(default: standard output)")
    options = parser.parse_args()
    if missing := missing_tools():
        sys.exit(f"error: expected {', '.join(missing)} on the path")
    try:
        if options.output:
            check_output(options.output)
    except TwofourError as error:
        sys.exit(str(error))
    cases = []
    for case in PAPER:
        print(f"counting {case}", file=sys.stderr)
        cases.append(measure(*case))
    lines = [
        "Executed for 64 outputs (one tile of f64 at 512 bits), counted by the emulator; C is "
        f"`{COMPILER} {' '.join(BASELINE_FLAGS)}` on the same weights.",
        f"{_version(EMULATOR)}; {_version(COMPILER)}.",
        "",
        *counts_table(cases),
        "",
        "A model, not a time: cycles at 4 instructions, 2 loads and 1 store each, 1 outer product, "
        "and 1 or 2 vector operations, of C over ours (the best cover). Beside it the speed-ups of "
        "the paper's Table 3, which were measured on a simulator.",
        "",
        *model_table(cases),
    ]
    text = "\n".join(lines) + "\n"
    if options.output:
        Path(options.output).write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
