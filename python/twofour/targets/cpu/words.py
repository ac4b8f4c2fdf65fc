# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words of tables that native code reads, as text in LLVM's dialect."""

from collections.abc import Sequence

WORD = ": (!llvm.ptr) -> !llvm.ptr, i64"


def load_words(address: str, names: Sequence[str], pointers: Sequence[str] = ()) -> str:
    """Code that loads the words at %`address`, to %`name` each."""
    lines = []
    for number, name in enumerate(names):
        kind = "!llvm.ptr" if name in pointers else "i64"
        lines += [
            f"  %{address}_{number} = llvm.getelementptr %{address}[{number}] {WORD}",
            f"  %{name} = llvm.load %{address}_{number} : !llvm.ptr -> {kind}",
        ]
    return "\n".join(lines)
