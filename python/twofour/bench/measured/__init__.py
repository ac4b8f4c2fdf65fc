# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels against baselines on a GPU.

`prepare` needs the compiler; everything else needs NumPy and, on a GPU, CuPy. PyTorch and Triton
are used where they are installed.
"""
