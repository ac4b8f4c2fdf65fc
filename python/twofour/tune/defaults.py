# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many layouts are prepared, and samples taken of each, where nobody says."""

COUNT, ROUNDS = 8, 9
