# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of `twofour explain` as a page."""
