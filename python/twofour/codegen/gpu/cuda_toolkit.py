# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the CUDA toolkit is installed, and the files of it that the compiler uses."""

import glob
import os
import shutil
from collections.abc import Iterator

PTXAS = "ptxas"
DEFAULT_HOME = "/usr/local/cuda"


def find_ptxas() -> str | None:
    """The path of ptxas: on the path of programs, under CUDA_HOME or where CUDA installs itself.

    None where there is none.
    """
    candidates = [PTXAS, *(os.path.join(home, "bin", PTXAS) for home in _homes())]
    return next(filter(None, map(shutil.which, candidates)), None)


def find_libdevice() -> str | None:
    """The path of libdevice's bitcode: under CUDA_HOME, beside ptxas or where CUDA installs itself.

    None where there is none.
    """
    homes = list(_homes())
    ptxas = shutil.which(PTXAS)
    if ptxas is not None:
        homes.insert(-1, os.path.dirname(os.path.dirname(os.path.realpath(ptxas))))
    for home in homes:
        found = sorted(glob.glob(os.path.join(glob.escape(home), "nvvm", "libdevice", "*.bc")))
        if found:
            return found[-1]
    return None


def _homes() -> Iterator[str]:
    """Places of toolkits, the place where CUDA installs itself last."""
    yield from filter(None, map(os.environ.get, ("CUDA_HOME", "CUDA_PATH")))
    yield DEFAULT_HOME
