# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command lines and pass pipelines that are wrong."""

import pytest

from bad_input import GENERIC, refused, refused_by_process
from twofour.cli.main import main as twofour
from twofour.opt.main import main as twofour_opt

KERNEL = "heat2d_ftcs"
SMALL = [KERNEL, "--shape", "8,8"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "x.mlir").write_text(GENERIC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words, column, message",
    [
        ([], 1, "the following arguments are required: COMMAND"),
        (["rnu", KERNEL], 1, "invalid choice: 'rnu'"),
        (["run"], 1, "the following arguments are required: FILE|KERNEL"),
        (["run", *SMALL, "--stepz", "3"], 29, "unrecognized arguments: --stepz 3"),
        (["run", "heat2d_ftc"], 5, "unknown kernel 'heat2d_ftc'; did you mean 'heat2d_ftcs'?"),
        (["run", ""], 1, "unknown kernel ''"),
        (["run", *SMALL, "--steps", "1", "--steps=2"], 29, "expected --steps once, got it twice"),
        (["run", "a\nb"], 5, "unknown kernel 'a\\nb'"),
        (["run", "module {\n}\n"], 1, "or a kernel's name, got a text of 2 lines"),
        (["run", *SMALL, "--steps=--"], 29, "expected a value, got '--steps=--'"),
        (["bench", "table2", "--kernels="], 1, "unknown kernel ''"),
        (
            ["run", *SMALL, "--output", "p.png", "--plot", "p.png"],
            38,
            "expected another file for each result, got 'p.png' twice",
        ),
        (["run", *SMALL, "--output", "p.png", "--plot", "./p.png"], 38, "got 'p.png' twice"),
        (["run", "x.mlir", "--output", "x.mlir"], 5, "expected another file than that of the"),
        (["compile", "x.mlir", "--emit", "object", "-o", "./x.mlir"], 33, "got './x.mlir'"),
        (["compile", "x.mlir", "--target", "sme", "-o", "./x.mlir"], 32, "got './x.mlir'"),
        (["explain", "x.mlir", "--html", "./x.mlir"], 23, "another file than that of the program"),
        (["kernels", "heat"], 9, "did you mean 'heat1d_ftcs' or 'heat2d_ftcs' or 'heat3d_ftcs'?"),
        (["run", *SMALL, "--target", "sm_86"], 38, "did you mean 'sm_80', whose code newer chips"),
        (["run", *SMALL, "--target", "sim:sm_99"], 38, "did you mean 'sim:sm_90', whose code"),
        (["run", *SMALL, "--target", "sm_75"], 38, "unknown target 'sm_75'; expected sm_80 or a"),
        (["run", "x.mlir", "--scalar", "--steps", "2"], 12, "--scalar: expected one argument"),
        (["run", "x.mlir", "--scalar"], 12, "argument --scalar: expected one argument"),
        (["run", "x.mlir", "--scalar", "-1e-3"], 1, "expected 0 scalar arguments, got 1"),
        (
            ["compile", KERNEL, "--emit", "llvm", "--boundary", "zero"],
            33,
            "expected no --boundary for target cpu, whose kernels leave halos to their callers",
        ),
        (
            ["compile", KERNEL, "--target", "sme", "--boundary", "zero", "-o", "x.o"],
            34,
            "expected no --boundary for target sme, whose kernels leave halos to their callers",
        ),
        (["explain", "heat2d_ftc"], 9, "unknown kernel 'heat2d_ftc'"),
        (["kernels", "heat2d_ftc"], 9, "unknown kernel 'heat2d_ftc'"),
        (["run", *SMALL, "--steps", "-1"], 37, "expected a number of steps >= 0, got '-1'"),
        (["run", *SMALL, "--steps", "ten"], 29, "invalid int value: 'ten'"),
        (["run", *SMALL, "--steps", "1.5"], 29, "invalid int value: '1.5'"),
        (["run", *SMALL, "--dtype", "f23"], 37, "got 'f23' (did you mean 'f32'?)"),
        (["run", *SMALL, "--target", "cpuu"], 38, "unknown target 'cpuu'; did you mean 'cpu'?"),
        (["run", *SMALL, "--schedule", "sparce"], 40, "did you mean 'sparse'?"),
        (["explain", KERNEL, "--schedule", "q"], 32, "unknown schedule 'q'"),
        (["run", *SMALL, "--schedule", "stream"], 40, "a GPU target for schedule 'stream', got"),
        (
            ["run", *SMALL, "--schedule", "direct", "--target", "sim:sm_90"],
            40,
            "expected target 'cpu' for schedule 'direct', got target 'sim:sm_90'",
        ),
        (
            ["run", *SMALL, "--threads", "2", "--target", "sim:sm_90"],
            29,
            "expected target 'cpu' for --threads, got 'sim:sm_90'",
        ),
        (["run", *SMALL, "--boundary", "periodik"], 40, "did you mean 'periodic'?"),
        (["run", *SMALL, "--boundary", "fixed,periodik"], 40, "got 'periodik'"),
        (["run", *SMALL, "--boundary", "fixed,zero,zero"], 40, "2 boundaries, got 'fixed,zero,"),
        (["run", *SMALL, "--boundary=zero, zero,zero"], 29, "boundaries, got 'zero, zero,zero'"),
        (["run", "x.mlir", "--boundary", "zero,zero"], 23, "1 boundary, got 'zero,zero'"),
        (
            ["run", "x.mlir", "--target", "sim:sm_90", "--boundary", "zero,zero"],
            42,
            "expected 1 boundary, got 'zero,zero'",
        ),
        (
            ["compile", "x.mlir", "--target", "sm_90", "-o", "x.tfb", "--boundary", "zero,zero"],
            51,
            "expected 1 boundary, got 'zero,zero'",
        ),
        (["run", *SMALL, "--boundary", ""], 1, "expected a boundary out of fixed"),
        (["run", *SMALL, "--boundary", "constant"], 40, "expected a value as in 'constant(2.5)'"),
        (["run", *SMALL, "--boundary", "constant(nan)"], 1, "expected a finite boundary constant"),
        (
            ["run", *SMALL, "--boundary", "constant(1e9)", "--dtype", "f16"],
            1,
            "expected a boundary constant in the range of f16, got 1000000000.0",
        ),
        (
            ["compile", KERNEL, "--target=sm_80", "--dtype=f16", "--boundary=constant(1e9)", "-oy"],
            1,
            "expected a boundary constant in the range of f16, got 1000000000.0",
        ),
        (["run", KERNEL, "--shape", "8"], 25, "expected 2 positive extents, got '8'"),
        (["run", KERNEL, "--shape", "0,8"], 25, "expected 2 positive extents, got '0,8'"),
        (["run", KERNEL, "--shape=-3,8"], 17, "expected 2 positive extents, got '-3,8'"),
        (["run", KERNEL, "--shape", "8x8"], 25, "expected extents as N,N,..., got '8x8'"),
        (["run", KERNEL, "--shape", ""], 1, "expected extents as N,N,..., got ''"),
        (["run", KERNEL, "--shape", f"{10**9},{10**9}"], 25, "points, got '1000000000,1000000000'"),
        (["run", KERNEL, "--shape", f"{10**30},1"], 25, "points, got"),
        (["run", KERNEL, "--shape", "10000000,10000000"], 1, "expected arrays that fit in memory"),
        (["run", *SMALL, "--threads", "0"], 1, "expected a positive number of threads, got 0"),
        (["run", *SMALL, "--threads", "two"], 29, "invalid int value: 'two'"),
        (["run", *SMALL, "--fuse-steps", "0"], 1, "expected at least 1 fused step, got 0"),
        (["run", *SMALL, "--scalar", "2"], 29, "expected --scalar with a file only"),
        (["run", *SMALL, "--scalar", "two"], 29, "expected --scalar with a file only"),
        (["run", KERNEL, "--input", ""], 1, "expected the name of a file to read, got ''"),
        (["run", *SMALL, "--output", ""], 1, "expected the name of a file to write, got ''"),
        (["run", *SMALL, "--input", "u.npy"], 17, "expected --input or --shape, got both"),
        (["run", KERNEL, "--input", "u.npy", "--input", "v.npy"], 1, "expected 1 input, got 2"),
        (["run", KERNEL, "--function", "f"], 5, "expected --function with a file only"),
        (["run", "x.mlir", "--shape", "8"], 12, "expected --shape with a kernel only"),
        (["run", "x.mlir", "--scalar", "2"], 1, "expected 0 scalar arguments, got 1"),
        (["run", "x.mlir", "--input", "u.npy", "--input", "u.npy"], 1, "expected 1 input"),
    ],
)
def test_the_command_line_of_twofour(capfd, words, column, message):
    refused(capfd, twofour, words, message, f"<command-line>:1:{column}")


def test_an_object_that_is_a_folder(capfd):
    words = ["compile", KERNEL, "--target", "sme", "-o", "."]
    refused(capfd, twofour, words, "cannot write the file: it is a directory", ".:1:1")


@pytest.mark.parametrize(
    ("tool", "words"),
    [(twofour, ["run", *SMALL, "--output", "new/"]), (twofour_opt, ["x.mlir", "-o", "new/"])],
)
def test_a_file_that_is_named_as_a_folder(capfd, folder, tool, words):
    refused(capfd, tool, words, "cannot write the file: it is a directory", "new/:1:1")
    assert not (folder / "new").exists()


def test_fusing_far_too_many_steps(capfd):
    at = f"{KERNEL}:1:1"
    refused(capfd, twofour, ["run", *SMALL, "--fuse-steps", "4000"], "at most 4096 terms", at)


@pytest.mark.parametrize("value", ["abc", "", "0", "-1", "1.5"])
def test_the_number_of_threads_in_the_environment(capfd, monkeypatch, value):
    monkeypatch.setenv("TWOFOUR_NUM_THREADS", value)
    refused(capfd, twofour, ["run", *SMALL], f"TWOFOUR_NUM_THREADS: expected a positive number of "
            f"threads, got '{value}'")  # fmt: skip


def test_the_installed_commands(folder):
    refused_by_process(folder, ["twofour", "run", KERNEL, "--steps", "x"], "invalid int value")
    refused_by_process(
        folder, ["twofour", "explain", "nope.mlir"], "no such file or directory", "nope.mlir:1:1"
    )
    refused_by_process(folder, ["twofour", "kernels", "heat"], "unknown kernel 'heat'")
    refused_by_process(
        folder,
        ["twofour", "run", *SMALL],
        "TWOFOUR_NUM_THREADS",
        environment={"TWOFOUR_NUM_THREADS": "abc"},
    )
    refused_by_process(
        folder,
        ["twofour-opt", "x.mlir", "--nm-crsh"],
        "did you mean 'nm-crush'?",
        "<pass-pipeline>:1:16",
    )


@pytest.mark.parametrize(
    "words, column, message",
    [
        (["x.mlir", "y.mlir"], 1, "unrecognized arguments: y.mlir"),
        (["x.mlir", "-o"], 8, "argument -o: expected one argument"),
        (["x.mlir", "-o", "--cse"], 8, "argument -o: expected one argument"),
        (["x.mlir", "--pass-pipeline"], 8, "argument --pass-pipeline: expected one argument"),
        (["--", "x.mlir", "--cse"], 11, "unrecognized arguments: --cse"),
        (["x.mlir", "-o", ""], 8, "expected the name of a file after '-o', got ''"),
        (["x.mlir", "-o", "a", "-o", "a"], 8, "expected -o once, got it twice"),
        (["x.mlir", "--cse={"], 8, "expected balanced braces in the options of '--cse'"),
        (["x.mlir", "--cse=a=b},inline{"], 8, "expected balanced braces in the options of"),
        (["x.mlir", "--mlir-print-ir-after-change"], 8, "expected --mlir-print-ir-after-all with"),
        (["x.mlir", "--verify-each=maybe"], 8, "invalid choice: 'maybe'"),
        (["x.mlir", "--list-passes=3"], 8, "ignored explicit argument '3'"),
        (["x.mlir", "--cse", "--pass-pipeline=cse"], 14, "or single passes, got both"),
    ],
)
def test_the_command_line_of_twofour_opt(capfd, words, column, message):
    refused(capfd, twofour_opt, words, message, f"<command-line>:1:{column}")


@pytest.mark.parametrize(
    "pipeline, column, message",
    [
        ("builtin.module(", 16, "expected ')' at the end"),
        ("builtin.module(cse))", 19, "unexpected ')' in the pipeline"),
        ("builtin.module(nm-crush{tile=4)", 31, "expected '}' at the end of the pipeline"),
        ("builtin.module(func.func(cse)", 29, "expected ')' at the end of the pipeline"),
        ("builtin.module(cse)x", 21, "expected ')' at the end"),
        ("(", 2, "expected ')' at the end of the pipeline"),
        ("cse,", 5, "expected a pass, got nothing"),
        (",", 1, "expected a pass, got nothing"),
        ("cse,nm-crsh", 5, "did you mean 'nm-crush'?"),
        ("cse,canonicalise", 5, "'canonicalise' does not refer to a registered pass"),
        ("canonicalize{foo=1}", 1, "no such option foo"),
        ("cse,nm-crush{tiel=4}", 5, "pass 'nm-crush' has no option 'tiel'; did you mean 'tile'?"),
        ("nm-crush{tile}", 1, "expected 'tile=VALUE' in the options of pass 'nm-crush'"),
        ("nm-crush{tile=}", 1, "expected a list of int for option 'tile' of 'nm-crush', got ''"),
        ("nm-crush{tile=4,a}", 1, "expected a list of int for option 'tile'"),
        ("nm-crush{tile=4_0}", 1, "expected a list of int for option 'tile' of 'nm-crush', got"),
        ("nm-crush{tile=4 tile=4}", 1, "expected option 'tile' of pass 'nm-crush' once, got it"),
        ("nm-permute-2to4{fragment=x}", 1, "expected int for option 'fragment'"),
        ("nm-permute-2to4{strategy=blosom}", 1, "expected one of auto, staircase, blossom, exact"),
        ("stencil-extract-weights{compose=maybe}", 1, "expected bool for option 'compose'"),
        ("stencil-convert-element-type{to=f23}", 1, "expected one of f16, bf16, f32, f64"),
        ("nm-permute-2to4{fragment=7}", 1, "expected a fragment of 16, 32, ..., 1024 columns"),
        (f"nm-permute-2to4{{fragment={2**40}}}", 1, "expected a fragment of 16, 32, ..., 1024"),
        ("nm-crush{tile=0}", 1, "expected a tile of positive extents, got [0]"),
        ("stencil-fuse-steps{steps=0}", 1, "expected a positive number of steps, got 0"),
        ("func.func(nm-crush)", 1, "pass 'nm-crush' runs on the module"),
        ("func.func( nm-crush)", 1, "pass 'nm-crush' runs on the module"),
        ("func.func(cse,nm-crush{tile=4})", 1, "pass 'nm-crush' runs on the module"),
    ],
)
def test_pipelines(capfd, pipeline, column, message):
    at = f"<pass-pipeline>:1:{column}"
    refused(capfd, twofour_opt, ["x.mlir", f"--pass-pipeline={pipeline}"], message, at)


FLATTEN = "stencil-infer-bounds,stencil-extract-weights,convert-stencil-to-nm"


@pytest.mark.parametrize(
    "pipeline, at, message",
    [
        ("stencil-bufferize", "x.mlir:4:8", "expected to be lowered to a kernel before"),
        ("convert-stencil-to-loops", "x.mlir:4:8", "run stencil-infer-bounds"),
        (f"{FLATTEN},nm-crush{{tile=4,4}}", "x.mlir:4:8", "expected a tile of 1 positive extents"),
        (f"{FLATTEN},nm-crush{{tile={10**18}}}", "x.mlir:4:8", "a tile of at most 4096 outputs"),
        (f"{FLATTEN},nm-compress", "x.mlir:4:8", "expected a multiple of 16 columns, got 2"),
        (
            "stencil-infer-bounds,stencil-extract-weights,stencil-fuse-steps{steps=5000}",
            "x.mlir:4:8",
            "expected at most 4096 fused steps, got 5000",
        ),
        ("transform-interpreter", "x.mlir:1:1", "could not find a nested named sequence"),
    ],
)
def test_passes_that_cannot_run(capfd, pipeline, at, message):
    refused(capfd, twofour_opt, ["x.mlir", f"--pass-pipeline={pipeline}"], message, at)


@pytest.mark.parametrize(("name", "again"), [("x.mlir", "x.mlir"), ("-y.mlir", "./-y.mlir")])
def test_a_failing_pipeline_says_how_to_see_it_again(capfd, folder, name, again):
    (folder / name).write_text(GENERIC)
    assert twofour_opt(["--pass-pipeline=cse,stencil-bufferize", "--", name]) == 1
    assert f"note: to reproduce: twofour-opt {again} --pass-pipeline='builtin.module(cse," in (
        capfd.readouterr().err
    )
