# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounds of steps as tables that native code runs, one after the other or skewed in time."""
