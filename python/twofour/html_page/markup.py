# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of HTML and SVG as text, which HTML and XML parsers read alike."""

import html
import re
from collections.abc import Iterable, Sequence

# What XML cannot hold, and UTF-8 cannot encode.
_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escaped(text: object) -> str:
    """Text as content or attribute; what no document can hold becomes U+FFFD."""
    return html.escape(_UNPRINTABLE.sub("\ufffd", str(text)))


def element(name: str, *content: str, **attributes: object) -> str:
    """An element around markup.

    Attributes are escaped; `_` in their names stands for `-` and one at the end for nothing
    (`class_`). Those of None are left out, floats are rounded to hundredths.
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{shown}>{''.join(content)}</{name}>"


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of plain texts; the first of each row is its header."""
    head = element("tr", *(element("th", escaped(text), scope="col") for text in header))
    lines = (
        element(
            "tr",
            element("th", escaped(first), scope="row"),
            *(element("td", escaped(text)) for text in rest),
        )
        for first, *rest in rows
    )
    return element(
        "table",
        element("caption", escaped(caption)),
        element("thead", head),
        element("tbody", *lines),
    )


def svg(label: str, width: float, height: float, *content: str) -> str:
    """A picture of a size in pixels; `label` says what it shows to those who do not see it."""
    return element(
        "svg",
        element("title", escaped(label)),
        *content,
        role="img",
        aria_label=label,
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        width=width,
        height=height,
    )


def _number(value: object) -> object:
    return f"{round(value, 2):g}" if isinstance(value, float) else value
