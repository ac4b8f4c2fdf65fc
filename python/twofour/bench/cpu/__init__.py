# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native sweeps against C compilers, LLVM and packages on the CPU, beside what it can do at most.

Everything timed here advances the same arrays: one contestant after another in rounds, each thread
on a core of its own, and a copy and the peak of multiply-adds between them.
"""
