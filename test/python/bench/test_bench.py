# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour bench` without a GPU: figures, their labels, and what is written."""

import json
import runpy
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from bad_input import refused
from twofour import cost
from twofour.bench import plots
from twofour.bench.markdown import table_text
from twofour.bench.predicted import experiments, exploration, heatmap, preprocessing, sweep, table2
from twofour.bench.predicted.experiments import RUN, evaluate
from twofour.bench.predicted.setting import Setting, find_kernels, sweep_of
from twofour.bench.predicted.tiles import predict_tile
from twofour.bench.report import write_report
from twofour.bench.section import Column, Plot, Section, table
from twofour.cli.main import main
from twofour.cost import Costs, Mma
from twofour.cost.counts import Counts
from twofour.errors import TwofourError
from twofour.layout.crush import crush
from twofour.layout.matching import apply_permutation, permute_2to4
from twofour.targets.gpu.candidates import candidates, fastest

ROOT = Path(__file__).resolve().parents[3]
H200 = cost.find("H200")
HEAT = Setting(H200, ("heat2d_ftcs",))
DATE = "2026-11-20"


def row_of(found, **wanted):
    """The only row of a table with these values, by the names of columns."""
    names = [column.name for column in found.columns]
    rows = [dict(zip(names, row, strict=True)) for row in found.rows]
    (row,) = [row for row in rows if all(row[k] == v for k, v in wanted.items())]
    return row


def check_labels(section):
    for found in section.tables:
        for number, column in enumerate(found.columns):
            figures = [row[number] for row in found.rows if isinstance(row[number], float)]
            assert column.basis is not None or not figures, (found.title, column)
        assert found.rows
    for plot in section.plots:
        assert plot.basis and all(len(v) == len(plot.x) for v in plot.series.values())


@pytest.mark.parametrize("name", ["table2", "domains", "ablation", "resources", "counters", "fp64"])
def test_every_figure_says_where_it_comes_from(name):
    section = RUN[name](HEAT)
    assert section.name == name
    check_labels(section)


def test_rates_are_those_that_the_model_predicts():
    single, fused = (row_of(found, kernel="Heat-2D") for found in table2.run(HEAT).tables)
    (kernel,) = HEAT.all_kernels()
    found = {c.schedule: c for c in candidates(sweep_of(kernel), "f16", "f16", H200).candidates}
    chosen, _ = fastest(sweep_of(kernel), "f16", "f16", H200)
    assert single["chosen"] == chosen.schedule and len(found) == 4
    assert single["GStencil/s"] == chosen.prediction.gstencil_per_s
    for schedule, one in found.items():
        assert single[schedule] == one.prediction.fraction_of_copy
    copy = 10240**2 / (4 * 10240**2 / (4.8e12 * 0.87) + 2e-6) / 1e9
    plain = found["simt"].prediction.gstencil_per_s
    for row, steps in ((single, 1), (fused, 3)):
        assert row["copy, GStencil/s"] == pytest.approx(copy)
        assert row["of a copy"] == pytest.approx(row["GStencil/s"] / copy)
        assert 0.7 * steps < row["of a copy"] <= steps
        # Fused steps are compared with plain threads that make one step at a time.
        assert row["over plain threads"] == pytest.approx(row["GStencil/s"] / plain)


def test_stages_of_the_ablation_are_schedules():
    row = row_of(RUN["ablation"](HEAT).tables[0], kernel="Heat-2D")
    single = row_of(table2.run(HEAT).tables[0], kernel="Heat-2D")
    for stage, schedule in (("plain CUDA", "simt"), ("sparse mma", "sparse")):
        rate = row[f"{stage}, GStencil/s"]
        assert rate == pytest.approx(single[schedule] * single["copy, GStencil/s"])
    assert row["gain by sparse mma"] == pytest.approx(
        row["sparse mma, GStencil/s"] / row["layout on dense mma, GStencil/s"]
    )


def test_the_ablation_over_domains_ends_with_the_large_one():
    large, sized = RUN["ablation"](Setting(H200, ("paper_box2d49p",))).tables
    assert len(sized.rows) == 7
    assert sized.rows[-1] == ("10240 x 10240", *large.rows[0][1:])
    # Launches take most of the time of small domains.
    rates = sized.column("all optimisations, GStencil/s")
    assert rates == sorted(rates) and rates[0] < rates[-1] / 10


def test_counters_are_per_128_outputs():
    single, fused = RUN["counters"](HEAT).tables
    row = row_of(single, schedule="stream")
    assert row["mma"] == pytest.approx(3) and 14 < row["warp instructions"] <= 36
    assert row_of(single, schedule="sparse")["mma"] == pytest.approx(1)
    assert row_of(single, schedule="simt")["bytes stored"] == pytest.approx(2)
    assert len(fused.rows) == 1


def test_domains_count_multiply_adds():
    means, kernels = RUN["domains"](Setting(H200, ("paper_box2d49p",))).tables
    row = row_of(kernels, kernel="paper_box2d49p")
    assert row["fastest"] == "stream"
    # Seven instructions of 16 x 8 x 32 for 128 outputs, of which 49 each are asked for.
    assert row["multiply-adds of an output"] == pytest.approx(7 * 32, rel=0.02)
    assert row["useful"] == pytest.approx(49 / (7 * 32), rel=0.02)
    assert row_of(means, domain="hpc_benchmarks")["f16"] == row["of a copy"]


def test_the_sweep_over_sizes_and_fragments():
    section = sweep.run(Setting(H200), radii=(1, 3))
    check_labels(section)
    (found,) = section.tables
    sparse = {"fragment": "mma.sp.m16n8k32"}
    # The instructions that an exhaustive search over tiles found, for kernels of table 2.
    for family, radius, mma in (
        ("box-1D", 1, 1), ("star-2D", 1, 1), ("box-2D", 1, 2), ("star-2D", 3, 2), ("box-2D", 3, 4),
    ):  # fmt: skip
        assert row_of(found, family=family, radius=radius, **sparse)["mma"] == mma
    dense = row_of(found, family="box-1D", radius=1, fragment="mma.m16n8k16")
    # 16 outputs of 3 points each meet 18 inputs, two instructions of 16 columns.
    assert (dense["mma"], dense["sparsity of A"]) == (2, pytest.approx(1 - 48 / (16 * 32)))
    assert (
        row_of(found, family="box-1D", radius=1, fragment="mma.sp.m16n8k16")["GStencil/s"] is None
    )


def test_the_heat_map_has_the_tile_that_the_search_picks():
    section = heatmap.run(HEAT, extents=(4, 16))
    check_labels(section)
    rate, density = section.tables
    # One instruction of 32 columns for tiles of 4 x 4.
    assert row_of(density, r1="4")["r2=4"] == pytest.approx(5 / 32)
    single = row_of(table2.run(HEAT).tables[0], kernel="Heat-2D")
    sparse = single["sparse"] * single["copy, GStencil/s"]
    assert row_of(rate, r1="4")["r2=4"] == pytest.approx(sparse)
    (kernel,) = HEAT.all_kernels()
    upright = crush(kernel.offsets, kernel.weights, (16, 4))
    upright = apply_permutation(upright, permute_2to4(upright))
    expected = predict_tile(H200, upright, kernel.offsets, sparse=True).gstencil_per_s
    assert row_of(rate, r1="16")["r2=4"] == expected != row_of(rate, r1="4")["r2=16"]
    assert section.plots[0].series["16"] == (expected, row_of(rate, r1="16")["r2=16"])


def test_preprocessing_is_measured_on_the_host(monkeypatch):
    monkeypatch.setattr(preprocessing, "ROUNDS", 1)
    section = preprocessing.run(Setting(H200, ("heat1d_ftcs",)))
    check_labels(section)
    (found,) = section.tables
    assert {column.basis for column in found.columns} == {None, "measured"}
    assert "on the host" in section.title and "on the host" in section.plots[0].title
    row = row_of(found, kernel="Heat-1D")
    assert row["whole compilation"] > row["streaming layout"] > 0
    (sample,) = section.samples
    assert 1e3 * sample["seconds"]["metadata"][0] == row["metadata"]


def test_exploration_compares_the_pick_with_all_layouts(monkeypatch):
    every = exploration.stream_layouts
    monkeypatch.setattr(exploration, "stream_layouts", lambda *given: every(*given)[:2])
    section = exploration.run(HEAT)
    check_labels(section)
    row = row_of(section.tables[0], kernel="Heat-2D")
    assert row["layouts"] == 2 and 0 <= row["loss, %"] <= 5
    assert row["best, GStencil/s"] == max(section.samples[0]["gstencil_per_s"].values())


@pytest.mark.full
def test_the_pick_is_within_5_percent_of_the_best():
    (found,) = exploration.run(Setting(H200)).tables
    assert len(found.rows) == 6
    assert max(found.column("loss, %")) <= 5


def test_costs_are_corrected_by_what_was_counted():
    kind = Mma("f16", True, 16, 8, 32)
    costs = Costs(1.0, 2.0, 6.0, 4.0, 2.0, 512.0, 8, 2, 100, mma={kind: 0.5})
    modelled = Counts(10.0, 4.0, 0.0, 6.0, 2.0)
    counted = Counts(20.0, 3.0, 0.0, 4.0, 2.0)
    found = exploration.corrected(costs, modelled, counted)
    assert (found.instructions, found.mma[kind]) == (2.0, 0.375)
    assert (found.l1_wavefronts, found.l2_bytes, found.dram_bytes) == (1.5, 4.5, 4.0)


def test_reports_are_the_same_bytes_again(tmp_path):
    pytest.importorskip("matplotlib")
    written = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        report = evaluate(["ablation", "resources"], HEAT, DATE, "twofour bench ablation resources")
        names = write_report(report, str(folder))
        written.append({name: (folder / name).read_bytes() for name in names})
    first, second = written
    assert first == second
    pictures = [f"{name}.{form}" for name in ("ablation", "resources") for form in plots.FORMATS]
    assert sorted(first) == sorted(["README.md", "results.json", *pictures])
    page, found = first["README.md"].decode(), json.loads(first["results.json"])
    for wanted in ("H200", DATE, "    twofour bench ablation", "numpy", "](resources.svg)"):
        assert wanted in page
    assert found["date"] == DATE and found["chip"] == "H200" and found["versions"]["twofour"]
    (made,) = found["sections"][0]["tables"]
    assert {column["basis"] for column in made["columns"]} == {None, "predicted"}


@pytest.mark.parametrize("kind", ["bars", "lines", "grid"])
def test_plots_say_their_basis(kind):
    pytest.importorskip("matplotlib")
    series = {"1": (1.0, None, 3.0), "2": (2.0, 2.5, 1.0)}
    plot = Plot("p", "Title", kind, "across", "rate", "GStencil/s", "simulated", (1, 2, 3), series)
    found = plots.draw(plot)
    assert found["png"].startswith(b"\x89PNG\r\n")
    text = " ".join(ElementTree.fromstring(found["svg"]).itertext())
    assert "Title (simulated)" in text and "GStencil/s, simulated" in text


@pytest.mark.parametrize(
    ("labels", "upwards"),
    [
        (["Heat-1D", "1D5P", "Heat-2D", "Box-2D9P", "Star-2D13P", "Box-2D49P", "Heat-3D"], False),
        (["acoustic waves of order 8", "wave equation", "Gray-Scott", "FDTD, in place"] * 2, True),
        ([str(n) for n in range(20)], True),
    ],
)
def test_labels_of_bars_do_not_run_into_each_other(labels, upwards):
    pytest.importorskip("matplotlib")
    plot = Plot("p", "", "bars", "", "", "", "measured", tuple(labels), {"1": (1.0,) * len(labels)})
    svg = plots.draw(plot)["svg"].decode()
    assert ("rotate(-90)" in svg.split("matplotlib.axis_2")[0]) == upwards


def test_without_matplotlib_the_command_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(plots, "can_draw", lambda: False)
    words = ["bench", "ablation", "--kernels", "Heat-2D", "--output", str(tmp_path)]
    assert main(words) == 0
    assert "pip install matplotlib" in capsys.readouterr().out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["README.md", "results.json"]
    # Counters are in tables alone.
    assert main(["bench", "counters", *words[2:]]) == 0
    assert "pip install" not in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_is_found_first(monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)

    def work(*_):
        raise AssertionError("expected nothing to be predicted")

    monkeypatch.setattr(experiments, "evaluate", work)
    words = ["bench", "ablation", "--output"]
    message = "cannot make the folder"
    refused(capfd, main, [*words, "/dev/null/folder"], message, "/dev/null/folder:1:1")
    # Nor is there a place for its file.
    (tmp_path / "folder" / "results.json").mkdir(parents=True)
    message = "cannot write the file: it is a directory"
    refused(capfd, main, [*words, "folder"], message, "folder/results.json:1:1")


def test_tables_show_units_bases_and_gaps():
    columns = [Column("k"), Column("a", "exact"), Column("b", "predicted", "s", digits=1)]
    found = table("T", columns, [["x|y", 3, 1.25], ["z", 4, None]], "exact")
    assert table_text(found).splitlines() == [
        "| k | a | b (s, predicted) |",
        "| --- | --: | --: |",
        r"| x\|y | 3 | 1.2 |",
        "| z | 4 | - |",
    ]
    with pytest.raises(TwofourError, match="expected 3 values a row, got 1"):
        table("T", columns, [["x"]])
    assert Section("s", "S", "text", (found,)).as_dict()["tables"][0]["rows"][1] == ("z", 4, None)


def test_kernels_have_two_names():
    assert find_kernels(["Box-2D49P", "heat1d_ftcs", "Heat-1D"]) == (
        "paper_box2d49p",
        "heat1d_ftcs",
    )


def test_the_help_names_every_experiment(capsys):
    assert main(["bench", "--help"]) == 0
    named = capsys.readouterr().out.replace("\n", " ")
    assert all(name in named for name in RUN)


def test_the_tool_becomes_the_command(monkeypatch):
    tool = runpy.run_path(str(ROOT / "tools" / "bench"), run_name="tool")
    started = []
    monkeypatch.setattr("os.execv", lambda program, words: started.append((program, words)))
    tool["main"](["table2", "--chip", "A100"])
    ((program, words),) = started
    assert program == str(ROOT / "tools" / "_environment.sh")
    assert words == [program, "plot", "twofour", "bench", "table2", "--chip", "A100"]
