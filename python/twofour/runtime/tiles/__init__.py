# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of one linear stencil in tiles that native code runs, several steps of each at once."""
