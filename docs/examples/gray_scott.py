# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two fields that react: a program from a file, called on NumPy arrays."""

from pathlib import Path

import numpy as np

import twofour

program = twofour.compile(Path(__file__).with_name("gray_scott.mlir"), boundary="periodic")
# The arrays hold 128 x 128 points and a halo of one cell on each side.
u, v = np.ones((130, 130)), np.zeros((130, 130))
u[54:74, 54:74], v[54:74, 54:74] = 0.5, 0.25
u, v = program(u, v, steps=200)
print(f"{program.schedule}: v between {v.min():.3f} and {v.max():.3f}")
