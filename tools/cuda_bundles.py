# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the bundles of test/execution/cuda, and the list of their cases."""

import argparse
import json
import os
import sys
from pathlib import Path

import twofour
from twofour.errors import TwofourError, Unsuitable
from twofour.kernels import built_in_kernels
from twofour.pipeline import PipelineFailure
from twofour.runtime import Progress

ROOT = Path(__file__).parents[1]
FOLDER = "TWOFOUR_CUDA_BUNDLES"
SCHEDULES = {
    "f16": ("stream", "sparse", "dense", "simt"),
    "bf16": ("stream", "sparse", "dense", "simt"),
    "tf32": ("sparse", "dense"),
    "f32": ("sparse", "dense", "simt"),
    "f64": ("dense", "simt"),
}
FUSED = (("heat2d_ftcs", "f64", "simt"), ("heat2d_ftcs", "f16", "sparse"))
PROGRAMS = ("heat2d", "wave2d")


def kernel_cases(every: int) -> list[dict]:
    """The cases of built-in kernels: one of `every` kernels in all types and schedules."""
    cases = [
        {"kernel": name, "dtype": dtype, "schedule": schedule, "fuse_steps": 1}
        for name in list(built_in_kernels())[::every]
        for dtype, schedules in SCHEDULES.items()
        for schedule in schedules
    ]
    cases += [
        {"kernel": name, "dtype": dtype, "schedule": schedule, "fuse_steps": 2}
        for name, dtype, schedule in FUSED
    ]
    for case in cases:
        case["bundle"] = "-".join(map(str, case.values())) + ".tfb"
    return cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    options = parser.parse_args()
    if FOLDER not in os.environ:
        print(f"error: expected {FOLDER} to name a folder, got nothing", file=sys.stderr)
        return 1
    folder = Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    kernels = kernel_cases(options.every)
    programs = [{"program": name, "bundle": f"{name}.tfb"} for name in PROGRAMS]
    total, unsuitable = len(kernels) + len(programs), []
    try:
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
    return twofour.compile(
        case["kernel"],
        target=target,
        dtype=case["dtype"],
        schedule=case["schedule"],
        fuse_steps=case["fuse_steps"],
    )


if __name__ == "__main__":
    sys.exit(main())
