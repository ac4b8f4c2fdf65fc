# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The experiments that need no GPU: figures of the cost model, the simulator and the compiler."""
