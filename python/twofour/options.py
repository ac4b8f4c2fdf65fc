# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What to compile for: target, schedule, element type."""

import re
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, get_args

from twofour.errors import TwofourError
from twofour.runtime.dtypes import ELEMENT_TYPES, choices
from twofour.suggestions import suggest

CPU_SCHEDULES = ("auto", "direct", "sparse", "outer")
GPU_SCHEDULES = ("auto", "stream", "sparse", "dense", "simt")
Chip = Literal["sm_80", "sm_89", "sm_90", "sm_100"]
CHIPS = get_args(Chip)
SIMULATED = "sim:"
TARGETS = ("cpu", *CHIPS, *(SIMULATED + chip for chip in CHIPS))
# Object files for Arm machines with SME, which nothing here runs.
SME = "sme"

# A number of fused steps that the cost model chooses.
AUTO = "auto"
# Fields of f32 that are multiplied as tf32.
TF32 = "tf32"
# Types of fields that stream.
STREAMED = ("f16", "bf16")


@dataclass(frozen=True)
class CompileOptions:
    """What to compile for.

    `dtype` is a storage type, or tf32 (f32 in memory, multiplied with 11 bits of precision), or
    None for the program's own (f32 for kernels). `fuse_steps` is the number of steps in one sweep
    (1: no fusion), or auto for the one that is predicted to be fastest on a GPU. `function` names
    the function of a file. `tuned` is a file of measured choices for GPUs (see
    twofour.tuned.database). With `reassociate` the CPU's schedule direct adds inputs of a row that
    have the same weight before it multiplies them; other schedules add term by term. Raises
    TwofourError for anything that is not known.
    """

    target: str = "cpu"
    schedule: str = "auto"
    dtype: str | None = None
    fuse_steps: int | Literal["auto"] = 1
    function: str | None = None
    tuned: str | None = None
    reassociate: bool = True

    def __post_init__(self):
        if self.target == SME:
            raise TwofourError(
                "expected `twofour compile` for target 'sme', whose code is not run here"
            )
        if self.target not in TARGETS:
            raise TwofourError(f"unknown target '{self.target}'{_target_hint(str(self.target))}")
        schedules = CPU_SCHEDULES if self.target == "cpu" else GPU_SCHEDULES
        if self.schedule not in schedules:
            if self.schedule in (*CPU_SCHEDULES, *GPU_SCHEDULES):
                other = "a GPU target" if self.target == "cpu" else "target 'cpu'"
                raise TwofourError(
                    f"expected {other} for schedule '{self.schedule}', got target '{self.target}'"
                )
            hint = suggest(str(self.schedule), schedules)
            raise TwofourError(f"unknown schedule '{self.schedule}'{hint}")
        if self.dtype == TF32 and self.target == "cpu":
            raise TwofourError("expected a GPU target for dtype tf32, got target 'cpu'")
        dtypes = (*ELEMENT_TYPES,) if self.target == "cpu" else (*ELEMENT_TYPES, TF32)
        known = isinstance(self.dtype, str) and self.dtype in dtypes
        if self.dtype is not None and not known:
            raise TwofourError(f"expected a dtype out of {choices(dtypes, self.dtype)}")
        if self.fuse_steps == AUTO:
            if self.target == "cpu":
                raise TwofourError(
                    "expected a GPU target for --fuse-steps auto, which predicts for GPUs only, "
                    "got target 'cpu'"
                )
        elif not _is_positive(self.fuse_steps):
            raise TwofourError(f"expected at least 1 fused step, got {self.fuse_steps!r}")
        else:
            # NumPy's integers overflow.
            object.__setattr__(self, "fuse_steps", int(self.fuse_steps))
        if not isinstance(self.function, str | None):
            raise TwofourError(f"expected the name of a function, got {self.function!r}")
        if type(self.reassociate) is not bool:
            raise TwofourError(f"expected reassociate to be a bool, got {self.reassociate!r}")
        if self.tuned is not None and self.target == "cpu":
            raise TwofourError("expected a GPU target for --tuned, got target 'cpu'")

    @property
    def storage(self) -> str | None:
        """The storage type asked for."""
        return "f32" if self.dtype == TF32 else self.dtype

    @property
    def chip(self) -> str | None:
        """The GPU architecture, None for the CPU."""
        return None if self.target == "cpu" else self.target.removeprefix(SIMULATED)

    @property
    def is_simulated(self) -> bool:
        """Whether GPU code is executed by the simulator."""
        return self.target.startswith(SIMULATED)


def _is_positive(number: object) -> bool:
    """Whether this is an integer from 1 on, of Python or NumPy."""
    is_integer = isinstance(number, Integral) and not isinstance(number, bool)
    return is_integer and number >= 1


def _target_hint(target: str) -> str:
    """What to say of a target that is not known."""
    chip = re.fullmatch(r"(sim:)?sm_([0-9]{1,4})", target)
    if chip is None:
        return suggest(target, TARGETS)
    older = [known for known in CHIPS if int(known.removeprefix("sm_")) < int(chip[2])]
    if not older:
        return f"; expected {CHIPS[0]} or a newer chip"
    return f"; did you mean '{chip[1] or ''}{older[-1]}', whose code newer chips run as well?"
