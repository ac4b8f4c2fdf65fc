# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plots as SVG and PNG, the same bytes for the same plot."""

import importlib.util
import io
import textwrap
from collections.abc import Iterable, Sequence

import numpy as np

from twofour.bench.section import Plot

FORMATS = ("svg", "png")
# Without dates, versions and random names in the files.
_METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
_SETTINGS = {"svg.hashsalt": "twofour", "svg.fonttype": "none"}
_HEIGHT, _WIDTH, _WIDEST = 4.0, 7.0, 24.0  # inches
_CAPTION_LETTERS = 22  # an inch
_LABELS = 12  # on an axis, before the picture is made wider
_MANY = 16  # labels, which are then written upwards
_LABEL_LETTERS = 14  # an inch of labels side by side


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(plot: Plot, caption: str = "") -> dict[str, bytes]:
    """The picture in each of FORMATS, with a caption below where one is given; needs matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        width = min(_WIDEST, _WIDTH * max(1.0, len(plot.x) / _LABELS / 2))
        upwards = plot.kind == "bars" and _is_crowded(plot.x, width)
        height = 1.5 * _HEIGHT if upwards else _HEIGHT
        figure = Figure((width, height), layout="constrained")
        axes = figure.add_subplot()
        _KINDS[plot.kind](figure, axes, plot)
        if upwards:
            axes.tick_params(axis="x", labelrotation=90, labelsize=7)
        axes.set_title(f"{plot.title} ({plot.basis})")
        axes.set_xlabel(plot.x_label)
        if caption:
            lines = textwrap.wrap(caption, int(_CAPTION_LETTERS * width))
            figure.supxlabel("\n".join(lines), fontsize=6, ha="left", x=0.01)
        files = {}
        for form in FORMATS:
            file = io.BytesIO()
            figure.savefig(file, format=form, dpi=120, metadata=_METADATA[form])
            files[form] = file.getvalue()
    return files


def _is_crowded(labels: Sequence[object], inches: float) -> bool:
    """Whether labels side by side would run into each other."""
    widest = max((len(line) for label in labels for line in str(label).split("\n")), default=0)
    return len(labels) > _MANY or (widest + 1) * len(labels) > _LABEL_LETTERS * inches


def _scale(plot: Plot) -> str:
    return f"{plot.y_label} ({', '.join(filter(None, (plot.unit, plot.basis)))})"


def _numbers(values: Iterable[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], float)


def _bars(_, axes, plot: Plot) -> None:
    places, width = np.arange(len(plot.x)), 0.8 / len(plot.series)
    for number, (name, values) in enumerate(plot.series.items()):
        shift = (number - (len(plot.series) - 1) / 2) * width
        axes.bar(places + shift, _numbers(values), width, label=name)
    axes.set_xticks(places, plot.x, fontsize=8)
    axes.margins(x=0.01)
    _finish(axes, plot)


def _lines(_, axes, plot: Plot) -> None:
    for name, values in plot.series.items():
        axes.plot(plot.x, _numbers(values), marker="o", label=name)
    axes.set_xticks(plot.x)
    _finish(axes, plot)


def _finish(axes, plot: Plot) -> None:
    axes.set_ylabel(_scale(plot))
    axes.set_ylim(bottom=0)
    if plot.line is not None:
        axes.axhline(plot.line, color="black", linewidth=0.8, linestyle="--")
    if len(plot.series) > 1:
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))


def _grid(figure, axes, plot: Plot) -> None:
    cells = np.array([_numbers(row) for row in plot.series.values()])
    image = axes.imshow(cells, cmap="viridis", origin="lower", aspect="auto")
    axes.set_xticks(range(len(plot.x)), plot.x)
    axes.set_yticks(range(len(plot.series)), plot.series)
    axes.set_ylabel(plot.y_label)
    figure.colorbar(image, ax=axes, label=", ".join(filter(None, (plot.unit, plot.basis))))


_KINDS = {"bars": _bars, "lines": _lines, "grid": _grid}
