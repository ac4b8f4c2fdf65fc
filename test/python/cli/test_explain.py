# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour explain`: the choices it reports are those that were made."""

import json

import pytest

from twofour.cli.main import main
from twofour.codegen.cpu import vector_unit as vector_units
from twofour.codegen.cpu.vector_unit import vector_unit
from twofour.kernels import built_in_kernels
from twofour.layout.crush import crush
from twofour.layout.matching import lower_bound
from twofour.options import CompileOptions
from twofour.runtime import parse_boundary
from twofour.runtime.box import Box
from twofour.runtime.tiles import stepping as tiled_stepping
from twofour.runtime.tiles.stepping import TilePrograms
from twofour.runtime.tiles.streamed import is_streamed
from twofour.targets.cpu import report as cpu_report
from twofour.targets.cpu.build import compile_cpu
from twofour.targets.cpu.executable import CpuExecutable

FIELDS = (
    "name target dtype schedule tile rows columns k k_lower_bound padding_columns strategy "
    "mma_per_128_outputs density"
).split()


def explain(capsys, *words: str) -> dict:
    assert main(["explain", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "kernel, steps, most",
    [
        ("heat1d_ftcs", 1, 1),
        ("paper_1d5p", 1, 1),
        ("heat2d_ftcs", 1, 1),
        ("lbm_d2q9_diffusion", 1, 2),
        ("paper_star2d13p", 1, 2),
        ("paper_box2d49p", 1, 4),
        ("heat3d_ftcs", 1, 2),
        ("paper_box3d27p", 1, 3),
        ("heat1d_ftcs", 3, 1),
        ("heat2d_ftcs", 3, 3),
        ("lbm_d2q9_diffusion", 3, 4),
        ("heat3d_ftcs", 3, 8),
    ],
)
def test_finds_the_layout_of_the_papers_kernels(capsys, kernel, steps, most):
    """The fewest instructions known for the kernels of Table 2, one step and three fused."""
    options = ["--dtype", "f16", "--schedule", "sparse", "--fuse-steps", str(steps)]
    report = explain(capsys, kernel, *options)
    assert set(FIELDS) <= set(report)
    assert report["mma_per_128_outputs"] <= most
    assert report["steps_per_sweep"] == steps
    assert report["dtype"] == "f16" and report["schedule"] == "sparse"


def test_reports_the_layout_whatever_the_schedule(capsys):
    sparse = explain(capsys, "paper_star2d13p", "--dtype", "f16", "--schedule", "sparse")
    direct = explain(capsys, "paper_star2d13p", "--dtype", "f16")
    assert (sparse["layout_executed"], direct["layout_executed"]) == (True, False)
    assert (sparse["schedule"], direct["schedule"]) == ("sparse", "direct")
    assert direct["sweeps"] == sparse["sweeps"]


def test_numbers_agree_with_the_matrix(capsys):
    kernel = built_in_kernels()["paper_box2d49p"]
    report = explain(capsys, "paper_box2d49p", "--dtype", "f16", "--schedule", "sparse")
    operator = crush(kernel.offsets, kernel.weights, tuple(report["tile"]))
    rows, columns = operator.matrix.shape
    assert (report["rows"], report["columns"]) == (rows, columns)
    assert report["k"] == columns + report["padding_columns"]
    assert report["k"] >= report["k_lower_bound"] == lower_bound(operator.matrix, 32)
    assert report["density"] == pytest.approx((operator.matrix != 0).sum() / (rows * report["k"]))


@pytest.mark.parametrize("kernel", ["laplacian1d_o8", "heat2d_ftcs", "paper_box3d27p"])
def test_says_what_stays_in_registers_and_caches(capsys, kernel):
    report, stencil = explain(capsys, kernel, "--dtype", "f64"), built_in_kernels()[kernel]
    tile, block = report["time_tile"], report["register_tile"]
    rank, radius, domain = stencil.rank, stencil.radius, tuple(tile["domain"])
    executable = CpuExecutable(compile_cpu(stencil, CompileOptions(dtype="f64")))
    stepper = executable.linear_stepper(parse_boundary("fixed", rank))
    interior = Box((radius,) * rank, tuple(n - radius for n in domain))
    geometry = stepper.geometry(interior)
    program = TilePrograms(stepper, interior, domain).program(1000)
    assert (program.steps, stepper.threads) == (tile["steps"], tile["threads"])
    unit = vector_unit("host")
    direct = executable.compiled.direct_kernel(executable.compiled.single)
    found = direct.tile(unit, unit.bytes // 8)
    assert (block["rows"], block["vectors"]) == (found.rows, found.vectors)
    assert block["planes"] == found.planes
    assert block["vector_bytes"] == (found.vector_bytes or unit.bytes)
    assert main(["explain", kernel, "--dtype", "f64"]) == 0
    vectors = f"{block['rows']} x {block['vectors']} vectors of {block['vector_bytes']} bytes"
    extents = " x ".join(map(str, tile["extents"]))
    text = capsys.readouterr().out
    assert tile["streamed"] == is_streamed(geometry, tile["extents"][0], tile["steps"])
    kind = "streamed tile" if tile["streamed"] else "tile"
    assert (f"{block['planes']} planes of " in text) == (block["planes"] > 1)
    if report["skewed"] is None:
        many = f" of {extents} points in a {kind}"
    else:
        many = f" {report['skewed']['steps']} skewed steps at once"
    assert vectors in text and many in text
    assert ("bytes at a time, rows in pairs;" in text) == block["in_pairs"]


def test_says_how_many_steps_are_skewed(capsys, monkeypatch):
    """The rounds that a stepper of the same domain runs."""
    monkeypatch.setattr(cpu_report, "is_skewing_faster", lambda *_: True)
    monkeypatch.setattr(tiled_stepping, "is_skewing_faster", lambda *_: True)
    for kernel, is_cube in (("heat3d_ftcs", True), ("heat2d_ftcs", False)):
        report = explain(capsys, kernel, "--dtype", "f64")
        compiled = compile_cpu(built_in_kernels()[kernel], CompileOptions(dtype="f64"))
        domain = tuple(report["time_tile"]["domain"])
        stepper = CpuExecutable(compiled).linear_stepper(parse_boundary("fixed", len(domain)))
        interior = Box((1,) * len(domain), tuple(n - 1 for n in domain))
        skewed = TilePrograms(stepper, interior, domain).skewed(1000)
        assert (skewed is None) == (report["skewed"] is None)
        if skewed is None:
            assert not is_cube
            continue
        cutting = skewed.rounds.cutting
        rows = None if cutting is None else cutting.width
        assert report["skewed"] == {"steps": skewed.rounds.depth, "rows": rows}
        assert main(["explain", kernel, "--dtype", "f64"]) == 0
        strips = f" in strips of {rows} rows" if rows else ""
        text = f", {skewed.rounds.depth} skewed steps at once{strips}\n"
        assert text in capsys.readouterr().out


@pytest.mark.parametrize("machine", ["znver4", "avx2"])
def test_says_where_rows_are_summed_up_in_pairs(capsys, monkeypatch, machine):
    monkeypatch.setattr(vector_units, "_host", lambda: machine)
    report = explain(capsys, "gauss7x7_binomial", "--dtype", "f64")
    assert report["register_tile"]["in_pairs"] == (machine == "znver4")
    assert main(["explain", "gauss7x7_binomial", "--dtype", "f64"]) == 0
    text = capsys.readouterr().out
    assert ("vectors of 64 bytes at a time, rows in pairs; on" in text) == (machine == "znver4")


@pytest.mark.parametrize("words", [("--schedule", "sparse"), ("--fuse-steps", "2")])
def test_only_unfused_direct_sums_have_time_tiles(capsys, words):
    report = explain(capsys, "heat2d_ftcs", *words)
    assert report["time_tile"] is None
    assert (report["register_tile"] is None) == ("sparse" in words)


def test_says_why_and_where_an_apply_is_left(capsys, tmp_path):
    program = tmp_path / "square.mlir"
    program.write_text(
        """
func.func @square(%u : !stencil.field<[0,64]xf64>, %v : !stencil.field<[0,64]xf64>) {
  %t = stencil.load %u : !stencil.field<[0,64]xf64> -> !stencil.temp<?xf64>
  %r = stencil.apply(%a = %t : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %x = stencil.access %a[0] : !stencil.temp<?xf64>
    %y = arith.mulf %x, %x : f64
    stencil.return %y : f64
  }
  stencil.store %r to %v(<[0], [64]>) : !stencil.temp<?xf64> to !stencil.field<[0,64]xf64>
  return
}
"""
    )
    report = explain(capsys, str(program))
    assert report["schedule"] == "loops" and report["tile"] is None
    (left,) = report["left_on_general_path"]
    assert left["location"] == f"{program}:6:10"
    assert "multiplies two values" in left["reason"]


def test_text_names_the_layout(capsys):
    assert main(["explain", "heat2d_ftcs", "--dtype", "f16", "--schedule", "sparse"]) == 0
    text = capsys.readouterr().out
    assert "tile 4x4" in text and "K = 32 (proven minimal)" in text and "pipeline:" in text


@pytest.mark.parametrize(
    "source, pairs",
    [
        ("heat2d_ftcs", []),
        ("docs/examples/heat2d.mlir", [(1, 0)]),
        ("docs/examples/gray_scott.mlir", [(2, 0), (3, 1)]),
        ("docs/examples/wave2d.mlir", [(1, 0), (2, 1)]),
        # Of its inputs one stays.
        ("docs/examples/smooth3d.mlir", [(2, 0)]),
    ],
)
def test_which_arguments_become_which(source, pairs, capsys):
    found = explain(capsys, source)["next_inputs"]
    assert [(one["from"], one["input"]) for one in found] == pairs
    assert main(["explain", source]) == 0
    said = ", ".join(f"argument {after} becomes {before}" for after, before in pairs)
    assert ("from step to step: " + said in capsys.readouterr().out) == bool(pairs)
