# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler asks the database: how a program was measured to be fastest."""

from twofour.analysis import Analysis
from twofour.cost.explore import REFERENCE
from twofour.options import CompileOptions
from twofour.tuned.database import Key, Tuned, find
from twofour.tuned.fingerprint import fingerprint


def key_of(found: Analysis, arithmetic: str, options: CompileOptions) -> Key:
    """What choices for a linear step are stored under."""
    single = found.single
    return Key(
        fingerprint=fingerprint(single.offsets, single.weights),
        element=found.element,
        arithmetic=arithmetic,
        steps=found.fused.steps if found.fused else 1,
        target=options.chip,
    )


def find_tuned(found: Analysis, arithmetic: str, options: CompileOptions) -> Tuned | None:
    """The measured choice for a program, None where there is none or it is no linear step.

    Where several devices of the architecture were measured, the one that stands for it comes first.
    Raises TwofourError for a database that cannot be read.
    """
    if not found.is_step:
        return None
    key = key_of(found, arithmetic, options)
    return find(key, options.schedule, options.tuned, REFERENCE[options.chip])
