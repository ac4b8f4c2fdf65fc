# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `twofour explain` says of how fast schedules are predicted to be."""

from dataclasses import asdict

from twofour.analysis import Analysis
from twofour.cost import GpuModel, find
from twofour.cost.explore import reference_gpu
from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.targets.gpu.candidates import candidates


def gpu_model(options: CompileOptions, chip: str | None) -> GpuModel:
    """The chip of this name, or the one that stands for the target.

    Raises TwofourError for a name that is not known and a chip of another architecture.
    """
    if chip is None:
        return reference_gpu(options.chip)
    gpu, reference = find(chip), reference_gpu(options.chip)
    if gpu.architecture == options.chip or gpu == reference:
        return gpu
    expected = f"a chip of {options.chip}"
    if reference.architecture != options.chip:
        expected = f"{reference.name}, which stands for {options.chip}"
    raise TwofourError(f"expected {expected}, got {gpu.name}, which is {gpu.architecture}")


def predictions(found: Analysis, arithmetic: str, schedule: str, gpu: GpuModel) -> dict:
    """Predictions as plain values for JSON: `chip`, `predicted` (of `schedule`) and `candidates`.

    `predicted` is None, and there are no candidates, for programs that are not one linear step.
    """
    ranked = []
    if found.is_step:
        sweep = found.fused or found.single
        ranking = candidates(sweep, found.element, arithmetic, gpu, single=found.single)
        ranked = ranking.candidates
    chosen = next((c for c in ranked if c.schedule == schedule), None)
    return {
        "chip": gpu.name,
        "predicted": chosen and asdict(chosen.prediction),
        "candidates": [
            {
                "schedule": c.schedule,
                "gstencil_per_s": c.prediction.gstencil_per_s,
                "dram_bytes_per_point": c.costs.dram_bytes / c.costs.steps,
                "fraction_of_copy": c.prediction.fraction_of_copy,
                "limited_by": c.prediction.limited_by,
                "chosen": c.schedule == schedule,
            }
            for c in ranked
        ],
    }
