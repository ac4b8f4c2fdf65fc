# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--plot`: a picture of a 2-D field."""

import importlib.util
import os
from typing import BinaryIO

import numpy as np

from twofour.errors import SourceLocation, TwofourError
from twofour.runtime import ElementType, from_storage, storage_view


def check_plot(path: str, rank: int) -> None:
    """Raise TwofourError where a result of this rank cannot be plotted to `path`."""
    if rank != 2:
        raise TwofourError(f"expected a 2-D field to plot, got {rank}-D", SourceLocation(path))
    if os.path.splitext(path)[1].lower() != ".png":
        raise TwofourError("expected a file that ends with .png", SourceLocation(path))
    if importlib.util.find_spec("matplotlib") is None:
        raise TwofourError("expected matplotlib for --plot: pip install matplotlib")


def plot(field: np.ndarray, element: ElementType, title: str, file: BinaryIO) -> None:
    """Write a PNG of a 2-D field, axis 0 downwards, with a colour bar."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    values = from_storage(storage_view(field, element), element)
    figure, axes = pyplot.subplots(layout="constrained")
    image = axes.imshow(values, cmap="viridis")
    axes.set(title=title, xlabel="axis 1", ylabel="axis 0")
    figure.colorbar(image, ax=axes)
    figure.savefig(file, format="png", dpi=150)
    pyplot.close(figure)
