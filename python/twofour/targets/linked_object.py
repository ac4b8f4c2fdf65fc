# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs in C are linked with."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LinkedObject:
    """An object file, and the header that its users include."""

    data: bytes
    header: str
