# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that MLIR, C and PTX all take, made of those that MLIR alone does."""

import re
from collections.abc import Container
from itertools import count


def identifier(name: str) -> str:
    """The name of a program or function as an identifier; different names may have the same one.

    It may be a keyword, or a function of the C library: whoever declares it adds something to it.
    """
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return plain if plain and not plain[0].isdigit() else f"stencil_{plain}"


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with a number behind it where it is taken."""
    if name not in taken:
        return name
    return next(free for n in count() if (free := f"{name}_{n}") not in taken)
