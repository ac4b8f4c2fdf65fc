# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices that the kernels of a bundle run on: GPUs through CuPy, and the simulator."""
