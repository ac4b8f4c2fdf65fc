# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was measured to be fastest: choices of layouts, and the database that keeps them.

The compiler asks it (`lookup`); `twofour.tune` fills it. All but `lookup` import NumPy and the
standard library only.
"""
