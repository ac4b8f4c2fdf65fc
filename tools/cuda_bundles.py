# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the bundles of test/execution/cuda, and the list of their cases."""

import argparse
import json
import os
import sys
from pathlib import Path

import twofour
from twofour.errors import TwofourError, Unsuitable
from twofour.files import make_folder
from twofour.kernels import built_in_kernels
from twofour.options import CompileOptions
from twofour.pipeline import PipelineFailure
from twofour.runtime import Progress
from twofour.targets.gpu.build import compile_gpu
from twofour.tuned.choice import Choice

ROOT = Path(__file__).parents[1]
FOLDER = "TWOFOUR_CUDA_BUNDLES"
SCHEDULES = {
    "f16": ("stream", "sparse", "dense", "simt"),
    "bf16": ("stream", "sparse", "dense", "simt"),
    "tf32": ("sparse", "dense"),
    "f32": ("sparse", "dense", "simt"),
    "f64": ("dense", "simt"),
}
# (kernel, type, steps of a sweep, how): fused steps, vectors, levels, rings, marches of many terms.
CHOSEN = (
    ("heat2d_ftcs", "f64", 2, Choice("simt", rolling=False)),
    ("heat1d_ftcs", "f16", 1, Choice("simt", rolling=False)),
    ("paper_box2d49p", "bf16", 1, Choice("simt", rolling=False)),
    ("heat3d_ftcs", "f32", 1, Choice("simt", rolling=False)),
    ("heat2d_ftcs", "f16", 2, Choice("sparse")),
    ("heat1d_ftcs", "bf16", 4, Choice("stream", levels=True)),
    ("heat2d_ftcs", "f16", 5, Choice("stream", levels=True)),
    ("heat1d_ftcs", "f64", 4, Choice("simt", rolling=True, levels=True)),
    ("heat2d_ftcs", "f32", 3, Choice("simt", rolling=True, levels=True)),
    ("heat2d_ftcs", "f16", 1, Choice("stream", ring=True, march=7)),
    ("heat3d_ftcs", "f32", 1, Choice("simt", rolling=True, ring=True)),
    ("acoustic_iso2d_o16", "f64", 1, Choice("simt", rolling=True, ring=True)),
    ("acoustic_iso3d_o16", "f16", 1, Choice("simt", rolling=True, ring=True)),
)
PROGRAMS = ("heat2d", "wave2d")


def kernel_cases(every: int) -> list[dict]:
    """The cases of built-in kernels: one of `every` kernels in all types and schedules, CHOSEN."""
    cases = [
        {"kernel": name, "dtype": dtype, "schedule": schedule, "fuse_steps": 1}
        for name in list(built_in_kernels())[::every]
        for dtype, schedules in SCHEDULES.items()
        for schedule in schedules
    ]
    cases += [
        {
            "kernel": name,
            "dtype": dtype,
            "schedule": choice.schedule,
            "fuse_steps": steps,
            "choice": choice.as_json(),
        }
        for name, dtype, steps, choice in CHOSEN
    ]
    for case in cases:
        choice = case.get("choice", {})
        chosen = [name for name, value in choice.items() if value is True]
        chosen += [f"no_{name}" for name, value in choice.items() if value is False]
        words = (case["kernel"], case["dtype"], case["schedule"], case["fuse_steps"], *chosen)
        case["bundle"] = "-".join(map(str, words)) + ".tfb"
    return cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    options = parser.parse_args()
    if options.every < 1:
        parser.error(f"expected --every of at least 1, got {options.every}")
    folder = Path(os.environ.get(FOLDER, ""))
    kernels = kernel_cases(options.every)
    programs = [{"program": name, "bundle": f"{name}.tfb"} for name in PROGRAMS]
    total, unsuitable = len(kernels) + len(programs), []
    try:
        if not os.environ.get(FOLDER):
            raise TwofourError(f"expected {FOLDER} to name a folder, got nothing")
        make_folder(folder)
        with Progress("compiling", "bundles") as progress:
            for done, case in enumerate([*kernels, *programs]):
                progress(done, total)
                try:
                    compiled(case, options.target).save(folder / case["bundle"])
                except PipelineFailure as failure:
                    if not isinstance(failure.errors[0], Unsuitable):
                        raise
                    unsuitable.append(case)
    except TwofourError as error:
        print(error, file=sys.stderr)
        return 1
    kernels = [case for case in kernels if case not in unsuitable]
    index = {"kernel": kernels, "program": programs}
    (folder / "cases.json").write_text(json.dumps(index, indent=1) + "\n")
    print(f"{folder}: {total - len(unsuitable)} bundles for {options.target}")
    for case in unsuitable:
        print(f"left out, since its schedule cannot take it: {case['bundle']}")
    return 0


def compiled(case: dict, target: str):
    """The program of a case."""
    if "program" in case:
        path = ROOT / "docs" / "examples" / f"{case['program']}.mlir"
        return twofour.compile(path, target=target)
    if "choice" in case:
        options = CompileOptions(target, "auto", case["dtype"], fuse_steps=case["fuse_steps"])
        choice = Choice.from_json(case["choice"])
        return compile_gpu(built_in_kernels()[case["kernel"]], options, choice=choice).bundle
    return twofour.compile(
        case["kernel"],
        target=target,
        dtype=case["dtype"],
        schedule=case["schedule"],
    )


if __name__ == "__main__":
    sys.exit(main())
