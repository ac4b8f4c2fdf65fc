# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The nm dialect: N:M sparse matrices and patch operators."""

from twofour.dialects.nm import ops
from twofour.dialects.nm.ops import NM

__all__ = ["NM", "ops"]
