# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour kernels`: the built-in kernels, or one of them with its weights and source."""

import argparse
import dataclasses
import json

from twofour.errors import TwofourError
from twofour.kernels import Kernel, built_in_kernels
from twofour.suggestions import suggest


def kernels_command(options: argparse.Namespace) -> None:
    """Print the list, or one kernel; raises TwofourError for an unknown name."""
    kernels = built_in_kernels()
    if options.name is None:
        if options.json:
            print(json.dumps([dataclasses.asdict(k) for k in kernels.values()], indent=2))
        else:
            print(_table(list(kernels.values())))
        return
    if options.name not in kernels:
        raise TwofourError(f"unknown kernel '{options.name}'{suggest(options.name, kernels)}")
    kernel = kernels[options.name]
    print(json.dumps(dataclasses.asdict(kernel), indent=2) if options.json else _details(kernel))


def _table(kernels: list[Kernel]) -> str:
    rows = [("name", "domain", "dim", "radius", "points", "shape", "kind")]
    rows += [
        (k.name, k.domain, str(k.rank), str(k.radius), str(len(k.offsets)), k.shape, k.kind)
        for k in kernels
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _details(kernel: Kernel) -> str:
    lines = [
        f"{kernel.name}: {kernel.rank}-D {kernel.shape}, radius {kernel.radius}, "
        f"{len(kernel.offsets)} points, {kernel.domain}, {kernel.kind}",
        f"  {kernel.formula}",
        f"  source: {kernel.source}",
    ]
    for offset, weight in zip(kernel.offsets, kernel.weights, strict=True):
        lines.append(f"  {', '.join(f'{c:3d}' for c in offset)}   {weight!r}")
    return "\n".join(lines)
