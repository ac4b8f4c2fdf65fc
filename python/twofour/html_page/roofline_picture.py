# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A roofline of candidates: predicted rate over arithmetic intensity, both axes logarithmic.

Stencils of one step do the same arithmetic for each point, so the intensity is counted in points
for each byte of DRAM traffic, and the roof is what a device copy reaches.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twofour.html_page.markup import element, escaped, svg

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 16, 24, 56  # margins around the plot
MARGIN = 1.3  # of the axes beyond the outermost points
MIN_SPAN = 6.0  # an axis has at least two ticks
# Outlines of about equal area around the origin.
_MARKERS = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "M-4.5 -4.5h9v9h-9z",
    "M0 -6.4L6.4 0L0 6.4L-6.4 0z",
    "M0 -6.5L6 4.5H-6z",
    "M0 6.5L6 -4.5H-6z",
)


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis: values from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> "_Axis":
        low, high = min(values) / MARGIN, max(values) * MARGIN
        if high / low < MIN_SPAN:
            middle = math.sqrt(low * high)
            low, high = middle / math.sqrt(MIN_SPAN), middle * math.sqrt(MIN_SPAN)
        return cls(low, high, start, end)

    def place(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """The values 1, 2 and 5 times a power of ten on the axis."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return [value for value in values if self.low <= value <= self.high]


def roofline_picture(candidates: Sequence[Mapping], itemsize: int) -> str:
    """Candidates (see `twofour.explain`) of fields whose elements have `itemsize` bytes.

    A copy of the output moves 2 * itemsize bytes a point; its rate follows from that of a candidate
    and its `fraction_of_copy`, and so does what the copy reaches of DRAM.
    """
    first = candidates[0]
    copy = first["gstencil_per_s"] / first["fraction_of_copy"]
    dram = copy * 2 * itemsize
    intensities = [1 / candidate["dram_bytes_per_point"] for candidate in candidates]
    x = _Axis.around([*intensities, copy / dram], LEFT, WIDTH - RIGHT)
    rates = [candidate["gstencil_per_s"] for candidate in candidates]
    y = _Axis.around([*rates, copy], HEIGHT - BOTTOM, TOP)
    # The slanted roof, from where it enters the plot to where it leaves it.
    lowest, highest = max(x.low, y.low / dram), min(x.high, y.high / dram)
    parts = [
        *_axes(x, y),
        _line("roof dram", x, y, (lowest, dram * lowest), (highest, dram * highest)),
        _label(
            x.place(lowest) + 8,
            min(y.place(dram * lowest) + 16, y.start - 6),
            "DRAM bound",
            "start",
        ),
        _line("roof copy", x, y, (x.low, copy), (x.high, copy)),
        _label(x.end - 4, y.place(copy) - 6, "copy bound", "end"),
    ]
    names = schedules(candidates)
    # The chosen one comes last, so that no other covers it.
    for candidate in sorted(candidates, key=lambda candidate: candidate["chosen"]):
        name, rate = candidate["schedule"], candidate["gstencil_per_s"]
        title = element("title", escaped(f"{name}: {rate:.4g} GStencil/s, predicted"))
        right, down = x.place(1 / candidate["dram_bytes_per_point"]), y.place(rate)
        shown = marker(names.index(name), candidate["chosen"])
        parts.append(element("g", title, shown, transform=f"translate({right:.2f} {down:.2f})"))
    label = (
        f"Roofline of {len(candidates)} candidates, predicted: GStencil/s over points a byte of "
        f"DRAM traffic; the copy bound is {copy:.4g} GStencil/s, the DRAM bound {dram:.4g} GB/s"
    )
    return svg(label, WIDTH, HEIGHT, *parts)


def schedules(candidates: Sequence[Mapping]) -> list[str]:
    """The schedules of candidates, each once: their markers are in this order."""
    return list(dict.fromkeys(candidate["schedule"] for candidate in candidates))


def marker(number: int, chosen: bool = False) -> str:
    """The marker of the schedule of a number, with a ring around the chosen candidate."""
    ring = element("circle", class_="ring", r=10) if chosen else ""
    shape = _MARKERS[number % len(_MARKERS)]
    return ring + element("path", class_=f"marker marker{number % len(_MARKERS)}", d=shape)


def _axes(x: _Axis, y: _Axis) -> list[str]:
    parts = []
    for value in x.ticks():
        place = x.place(value)
        parts.append(_line("tick", x, y, (value, y.low), (value, y.high)))
        parts.append(_label(place, y.start + 18, f"{value:g}", "middle"))
    for value in y.ticks():
        parts.append(_line("tick", x, y, (x.low, value), (x.high, value)))
        parts.append(_label(x.start - 8, y.place(value) + 4, f"{value:g}", "end"))
    middle = (y.start + y.end) / 2
    sideways = element(
        "text",
        "GStencil/s, predicted",
        class_="label",
        text_anchor="middle",
        transform=f"translate(20 {middle:g}) rotate(-90)",
    )
    title = _label((x.start + x.end) / 2, HEIGHT - 14, "points a byte of DRAM, predicted", "middle")
    frame = element(
        "rect",
        class_="frame",
        x=x.start,
        y=y.end,
        width=x.end - x.start,
        height=y.start - y.end,
    )
    return [*parts, title, sideways, frame]


def _line(
    name: str, x: _Axis, y: _Axis, begin: tuple[float, float], end: tuple[float, float]
) -> str:
    return element(
        "line",
        class_=name,
        x1=x.place(begin[0]),
        y1=y.place(begin[1]),
        x2=x.place(end[0]),
        y2=y.place(end[1]),
    )


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return element("text", escaped(text), class_="label", x=x, y=y, text_anchor=anchor)
