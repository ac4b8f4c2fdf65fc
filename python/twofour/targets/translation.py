# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What MLIR's translator to LLVM IR takes; it ends the process over anything else."""

from collections.abc import Sequence

from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_ops, op_names

_ALWAYS = ("llvm.", "builtin.module")


def check_translated(module: ir.Module, owner: str, dialects: Sequence[str] = ()) -> None:
    """Raise TwofourError at the first op that is neither of LLVM nor of the `dialects`.

    `owner` is who has no code for it, with the verb, as in "the CPU target has"; dialects are named
    with the point behind them, as in "nvvm.".
    """
    known = (*_ALWAYS, *dialects)
    others = [name for name in op_names(module) if not name.startswith(known)]
    if others:
        first = nested_ops(module, *others)[0]
        raise error_at(first, f"expected an op that {owner} code for")
