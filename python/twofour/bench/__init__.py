# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The evaluation: every table and figure of SparStencil's section 4, of this project's kernels.

`predicted` holds the experiments that need the compiler and no GPU, `measured` what compares
kernels with baselines on one. Both give sections of tables and plots, each column of which says
whether its figures are predicted, simulated or measured.
"""
