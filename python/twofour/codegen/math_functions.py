# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of the math dialect that processors have no instructions for: libraries compute them."""

CALLED_FUNCTIONS = frozenset(
    f"math.{name}"
    for name in """acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp2 expm1
        log log10 log1p log2 powf sin sinh tan tanh""".split()
)
