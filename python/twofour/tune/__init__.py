# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts by measurement: prepare candidates, measure them on a device, keep the fastest.

`prepare` and `exploration` belong to the compiler. Everything else imports NumPy and the standard
library only, so that the machine with the GPU needs no more than CuPy: `python -m twofour.tune`.
"""
