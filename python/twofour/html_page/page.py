# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of `twofour explain` as one HTML page that needs nothing else, no scripts either."""

from collections.abc import Mapping, Sequence

import numpy as np

from twofour import __version__
from twofour.html_page.markup import element, escaped, table
from twofour.html_page.matrix_picture import matrix_picture, metadata_picture, swatch
from twofour.html_page.operator_stages import COMPRESS, CRUSH, FLATTEN, PERMUTE, OperatorStages
from twofour.html_page.roofline_picture import marker, roofline_picture, schedules
from twofour.html_page.style import STYLE
from twofour.layout.compress import compress
from twofour.layout.patch import PatchOperator

_TITLES = {
    FLATTEN: ("Flattened", "the weights of the stencil, one row for one output"),
    CRUSH: ("Crushed", "a row for each output of a tile, a column for each input"),
    PERMUTE: ("Permuted", "two weights at most in each row of a group of four columns"),
}
_STAGES = {
    "stencil": "the program, its linear sweeps as weighted sums",
    "nm": "sweeps as patch operators",
    "gpu": "kernels and their launches",
    "nvvm": "kernels in the dialects of LLVM and NVVM",
    "llvm": "LLVM IR",
    "ptx": "what the GPU loads",
}
_SHOWN_CANDIDATES = 20
# Nothing is loaded and nothing runs, whatever a program's names hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html_report(
    report: Mapping, texts: Mapping[str, str], operators: Sequence[OperatorStages]
) -> str:
    """The page of a report.

    Args:
        report: what `twofour.explain.explain` returns; `candidates` and the costs of GPU kernels
            may be absent.
        texts: the program by stage, in order.
        operators: those of the report's sweeps, in the same order.
    """
    heading = f"{report['name']}: {report['schedule']} on {report['target']}, {report['dtype']}"
    sections = [
        ("choices", "Choices", _choices(report)),
        ("matrix", "The matrix A", _sweeps(report, operators)),
        ("candidates", "Candidates, predicted", _candidates(report)),
        ("costs", "Costs of the kernel", _costs(report)),
        ("stages", "The program after each stage", _stages(texts)),
    ]
    sections = [section for section in sections if section[2]]
    links = (element("li", element("a", title, href=f"#{name}")) for name, title, _ in sections)
    body = [
        element("h1", escaped(heading)),
        element("nav", element("ul", *links), aria_label="Contents"),
        *(
            element("section", element("h2", title), content, id=name)
            for name, title, content in sections
        ),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{element('title', escaped(heading))}\n{element('style', STYLE)}\n</head>\n<body>\n"
        f"{element('main', *body)}\n"
        f"{element('footer', element('p', f'Written by twofour {escaped(__version__)}.'))}\n"
        "</body>\n</html>\n"
    )


def _choices(report: Mapping) -> str:
    steps = report["steps_per_sweep"]
    rows = [
        ("program", report["name"]),
        ("target", report["target"]),
        ("dtype", report["dtype"]),
        ("schedule", report["schedule"]),
        ("why", report["why"]),
        ("steps in one sweep", f"{steps}, single steps at the rims" if steps > 1 else 1),
        ("pipeline", report["pipeline"]),
    ]
    shown = table("What was chosen", ("choice", "value"), rows)
    if report["left_on_general_path"]:
        rows = [(item["location"], item["reason"]) for item in report["left_on_general_path"]]
        shown += table("Left on the general path", ("location", "reason"), rows)
    return shown


def _sweeps(report: Mapping, operators: Sequence[OperatorStages]) -> str:
    """The pictures of every sweep; those besides the main one are folded."""
    if not operators:
        return ""
    notes = ""
    if report["sweeps"] and not report["layout_executed"]:
        notes = element(
            "p",
            escaped(
                f"Schedule {report['schedule']} does not multiply by this matrix: it is what "
                "--schedule sparse would multiply by."
            ),
        )
    sweeps = report["sweeps"] or [None] * len(operators)
    main = report["function"] or operators[0].function
    folded = []
    for stages, sweep in zip(operators, sweeps, strict=True):
        summary = element("summary", element("h3", escaped(f"@{stages.function}")))
        is_open = "" if stages.function == main else None
        folded.append(element("details", summary, *_pictures(stages, sweep), open=is_open))
    return notes + _legend() + "".join(folded)


def _legend() -> str:
    entries = (
        ("plus", "positive weight"),
        ("minus", "negative weight (the stronger, the larger its magnitude)"),
        ("padding", "column of zeros, put in"),
        ("band", "every other group of four columns"),
    )
    shown = "".join(f"{swatch(name)} {text}" for name, text in entries)
    return element("p", shown, "; lines separate fragments", class_="legend")


def _pictures(stages: OperatorStages, sweep: Mapping | None) -> list[str]:
    figures = []
    for name, (title, meaning) in _TITLES.items():
        if name not in stages.operators:
            continue
        operator = stages.operators[name]
        fragment = sweep["fragment"] if sweep and name == PERMUTE else None
        facts = _facts(operator)
        if fragment is not None:
            proof = "proven minimal" if sweep["proven"] else f"lower bound {sweep['k_lower_bound']}"
            facts += f"; by {sweep['strategy']}, {proof}; fragments of {fragment} columns"
        label = f"A {title.lower()}: {facts}"
        picture = matrix_picture(operator.matrix, label, fragment=fragment)
        figures.append(_figure(picture, title, f"{meaning}; {facts}"))
    if COMPRESS in stages.operators:
        figures += _compressed(stages.operators[COMPRESS].matrix)
    return figures


def _facts(operator: PatchOperator) -> str:
    """Shape, K, density and padding of A, in words."""
    rows, columns = operator.matrix.shape
    used = int(np.count_nonzero(operator.matrix))
    padding = int((operator.matrix == 0).all(axis=0).sum())
    return (
        f"tile {'x'.join(map(str, operator.tile))}, {rows} x {columns}, K = {columns}, "
        f"{used} nonzeros, density {used / operator.matrix.size:.3f}, padding columns {padding}"
    )


def _compressed(matrix: np.ndarray) -> list[str]:
    values, metadata = compress(matrix)
    rows, kept = values.shape
    used = int(np.count_nonzero(values))
    facts = (
        f"{rows} x {kept}, two for each group of the K = {matrix.shape[1]} columns, {used} "
        f"nonzeros, density {used / values.size:.3f}"
    )
    words = f"{rows} x {metadata.shape[1]} words of 16 bits, the column (0 to 3) of each value"
    return [
        _figure(
            matrix_picture(values, f"Values of A compressed: {facts}"),
            "Compressed, values",
            f"what the instruction multiplies; {facts}",
        ),
        _figure(
            metadata_picture(metadata, f"Metadata of A compressed: {words}"),
            "Compressed, metadata",
            f"where the values stood in their groups of four; {words}",
        ),
    ]


def _figure(picture: str, title: str, text: str) -> str:
    caption = element("figcaption", element("strong", escaped(title)), escaped(f": {text}."))
    return element("figure", picture, caption)


def _candidates(report: Mapping) -> str:
    candidates = report.get("candidates")
    if not candidates:
        return ""
    # Products of tf32 have fields of f32.
    itemsize = {"f16": 2, "bf16": 2, "f64": 8}.get(report["dtype"], 4)
    legend = "".join(
        element(
            "svg",
            marker(number),
            viewBox="-8 -8 16 16",
            width=16,
            height=16,
            aria_hidden="true",
        )
        + f" {escaped(name)}"
        for number, name in enumerate(schedules(candidates))
    )
    figure = element(
        "figure",
        roofline_picture(candidates, itemsize),
        element("p", legend, "; the ring marks the chosen one", class_="legend"),
        element(
            "figcaption",
            element("strong", "Roofline, predicted"),
            ": rates by the cost model, not measured. The dashed line is the rate of a copy, the "
            "slanted one what a copy reaches of DRAM.",
        ),
    )
    best = sorted(candidates, key=lambda candidate: -candidate["gstencil_per_s"])
    shown = _candidate_table(best[:_SHOWN_CANDIDATES])
    if rest := best[_SHOWN_CANDIDATES:]:
        summary = element("summary", f"{len(rest)} slower candidates, predicted")
        shown += element("details", summary, _candidate_table(rest))
    return figure + shown


_CANDIDATE_COLUMNS = {
    "gstencil_per_s": "GStencil/s, predicted",
    "dram_bytes_per_point": "DRAM bytes a point, predicted",
    "fraction_of_copy": "part of a copy, predicted",
    "limited_by": "limited by, predicted",
}


def _candidate_table(candidates: Sequence[Mapping]) -> str:
    header = ("schedule", *_CANDIDATE_COLUMNS.values(), "chosen")
    rows = [
        (
            candidate["schedule"],
            *(_plain(candidate[key]) for key in _CANDIDATE_COLUMNS),
            "chosen" if candidate["chosen"] else "",
        )
        for candidate in candidates
    ]
    return table("Predicted by the cost model, fastest first", header, rows)


def _costs(report: Mapping) -> str:
    """Counters of the simulator and resources, of GPU kernels."""
    if "counters" not in report:
        return ""
    if report["counters"] is None:
        counters = element("p", "Not simulated: the fields of the file are too large for that.")
    else:
        rows = [(name.replace("_", " "), _plain(x)) for name, x in report["counters"].items()]
        header = ("counter", "per output point, simulated")
        counters = table("Counters of the main kernel, simulated", header, rows)
    resources = [("shared memory of a block, bytes", report["shared_bytes"], "the layout")]
    if report["registers"] is not None:
        resources = [
            ("registers of a thread", report["registers"], "ptxas"),
            ("spilled bytes of a thread", report["spills"], "ptxas"),
            *resources,
            ("occupancy", f"{report['occupancy']:.0%}", "registers by ptxas, limits of the chip"),
        ]
    caption = "Resources of the main kernel"
    if report["registers"] is None:
        caption += "; registers are not known without ptxas"
    return counters + table(caption, ("resource", "value", "by"), resources)


def _stages(texts: Mapping[str, str]) -> str:
    folded = []
    for stage, text in texts.items():
        lines = len(text.splitlines())
        summary = element(
            "summary",
            element("h3", escaped(stage)),
            escaped(f": {_STAGES[stage]}, {lines} lines"),
        )
        folded.append(element("details", summary, element("pre", escaped(text), tabindex=0)))
    return "".join(folded)


def _plain(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) else value
