# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several fields: what they take, their halos, and their steps."""
