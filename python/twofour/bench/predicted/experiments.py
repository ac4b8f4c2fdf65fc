# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All experiments that need no GPU, by name."""

from collections.abc import Sequence

from twofour.bench.predicted import (
    ablation,
    domains,
    exploration,
    heatmap,
    preprocessing,
    resources,
    sweep,
    table2,
)
from twofour.bench.predicted.setting import Setting
from twofour.bench.report import Report, versions

RUN = {
    "table2": table2.run,
    "domains": domains.run,
    "ablation": ablation.run,
    "preprocessing": preprocessing.run,
    "sweep": sweep.run,
    "heatmap": heatmap.run,
    "resources": resources.run,
    "counters": resources.run_counters,
    "fp64": table2.run_fp64,
    "exploration": exploration.run,
}
BASIS = """\
Made without a GPU. *Predicted* figures are those of the cost model, *simulated* ones are
counters of the PTX simulator, or predictions from them; *ptxas* says what a figure was assembled
to. Only the time of the compiler itself was *measured*, on a CPU. GStencil/s are 1e9 point
updates a second, true time steps; domains are of 10 240 000, 10 240 x 10 240 or 1024 x 1024 x
1024 points."""


def evaluate(names: Sequence[str], setting: Setting, date: str, command: str) -> Report:
    """Run experiments; raises TwofourError as the compiler does."""
    sections = tuple(RUN[name](setting) for name in names)
    title = "Evaluation, predicted and simulated"
    return Report(title, BASIS, date, command, setting.gpu.name, versions(), sections)
