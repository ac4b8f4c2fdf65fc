# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of the command line: `.npy` files in and out, and what runs when no input is given."""

import io
import os
from collections.abc import Sequence

import numpy as np

from twofour.errors import SourceLocation, TwofourError
from twofour.files import STANDARD_STREAM, read_bytes
from twofour.runtime import ElementType, check_array, to_storage


def load_array(
    path: str,
    element: ElementType,
    rank: int | None = None,
    shape: Sequence[int] | None = None,
) -> np.ndarray:
    """Read a `.npy` file, or standard input for `-`.

    Raises TwofourError, located at the file, where it does not fit.
    """
    if not path:
        raise TwofourError("expected the name of a file to read, got ''")
    location = SourceLocation(path)
    # NumPy reads from files that can seek only.
    file = path if os.path.isfile(path) else io.BytesIO(read_bytes(path))
    try:
        # Odd shapes overflow, of which NumPy warns before it refuses them.
        with np.errstate(all="ignore"):
            array = np.load(file, allow_pickle=False)
    except OSError as failure:
        reason = (failure.strerror or str(failure)).lower()
        raise TwofourError(f"cannot read the file: {reason}", location) from None
    except Exception as failure:
        # NumPy lets exceptions of its tokenizer, of zipfile and others escape from malformed files.
        reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        # NumPy takes any file that it does not know for one of objects.
        what = " of numbers" if "pickle" in reason else f", got: {reason}"
        raise TwofourError(f"expected a .npy file{what}", location) from None
    if not isinstance(array, np.ndarray):
        raise TwofourError("expected a .npy file of one array, got an archive", location)
    check_array(array, element, rank=rank, shape=shape, what="input", location=location)
    return array


def bump(shape: Sequence[int], element: ElementType) -> np.ndarray:
    """A smooth bump in the middle of a grid: exp(-|x|^2 / 0.02) with x in [-1/2, 1/2] an axis."""
    if element.storage.kind not in "fu" or element.name.startswith("i"):
        return np.zeros(shape, element.storage)
    total = np.zeros(shape)
    for axis, extent in enumerate(shape):
        x = (np.arange(extent) + 0.5) / extent - 0.5
        total += (x * x).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    return to_storage(np.exp(-total / 0.02), element)


def output_paths(path: str, count: int) -> list[str]:
    """Where `count` arrays go, as result_paths; raises TwofourError for several to `-`."""
    if count > 1 and path == STANDARD_STREAM:
        raise TwofourError(f"expected --output FILE.npy for {count} results, got '{path}'")
    return result_paths(path, count)


def check_array_names(paths: Sequence[str]) -> None:
    """Raise TwofourError for a file whose name says that it is no `.npy` file."""
    for path in paths:
        if os.path.splitext(path)[1].lower() not in ("", ".npy"):
            raise TwofourError("expected a file that ends with .npy", SourceLocation(path))


def result_paths(path: str, count: int) -> list[str]:
    """The files of `count` results: `out.npy` itself for one, else `out.0.npy`, `out.1.npy`, ..."""
    if count == 1:
        return [path]
    stem, suffix = os.path.splitext(path)
    return [f"{stem}.{number}{suffix}" for number in range(count)]
