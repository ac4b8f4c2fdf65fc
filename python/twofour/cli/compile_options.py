# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What to compile for, out of the arguments that run, compile, explain and tune share."""

import argparse
from dataclasses import fields

from twofour.errors import TwofourError
from twofour.options import SME, CompileOptions


def compile_options(arguments: argparse.Namespace, **changes: object) -> CompileOptions:
    """The options that a command line gives.

    `changes` are options that count instead of the arguments of their names. Raises TwofourError
    for anything that is not known.
    """
    names = {field.name for field in fields(CompileOptions)} - changes.keys()
    return CompileOptions(**{name: getattr(arguments, name) for name in names}, **changes)


def refuse_boundary(boundary: str, stage: str, target: str) -> None:
    """Raise TwofourError for a boundary where what is written knows none."""
    if set(boundary.split(",")) == {"fixed"}:
        return
    if target in ("cpu", SME):
        raise TwofourError(
            f"expected no --boundary for target {target}, whose kernels leave halos to their "
            f"callers, got '{boundary}'"
        )
    raise TwofourError(f"expected a bundle (--emit bundle) for --boundary, got '{stage}'")
