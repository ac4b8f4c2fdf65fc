# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour compile --target sme`: object files, their headers, stages, and what is refused.

What the code computes is tested in test/execution/sme, where there is an emulator.
"""

import pytest

import twofour
from bad_input import INPUTS, refused
from twofour.cli.main import main
from twofour.errors import TwofourError
from twofour.targets.sme.arm_object import to_arm_object, undefined_symbols
from twofour.targets.sme.header import Interface, header_text

MACHINE_AARCH64 = 183

WEIGHTED = """
func.func @NAME(%u : !stencil.field<FIELDxTYPE>, %v : !stencil.field<FIELDxTYPE>) {
  %t = stencil.load %u : !stencil.field<FIELDxTYPE> -> !stencil.temp<SHAPExTYPE>
  %r = stencil.apply(%a = %t : !stencil.temp<SHAPExTYPE>) -> (!stencil.temp<SHAPExTYPE>) {
    %n = stencil.access %a[FIRST] : !stencil.temp<SHAPExTYPE>
    %s = stencil.access %a[SECOND] : !stencil.temp<SHAPExTYPE>
    %sum = arith.OPf %n, %s : TYPE
    stencil.return %sum : TYPE
  }
  stencil.store %r to %v(<STORED>) : !stencil.temp<SHAPExTYPE> to !stencil.field<FIELDxTYPE>
  return
}
"""
PLANE = {
    "NAME": "sum",
    "FIELD": "[-1,65]x[-1,65]",
    "SHAPE": "?x?",
    "FIRST": "-1, 0",
    "SECOND": "0, 1",
    "STORED": "[0, 0], [64, 64]",
    "TYPE": "f64",
    "OP": "add",
}
ROW = {
    "FIELD": "[-1,65]",
    "SHAPE": "?",
    "FIRST": "-1",
    "SECOND": "1",
    "STORED": "[0], [64]",
}


def program(**changes: str) -> str:
    text = WEIGHTED
    for name, value in (PLANE | changes).items():
        text = text.replace(name, value)
    return text


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_an_object_and_its_header(tmp_path, capsys):
    (tmp_path / "sum.mlir").write_text(program())
    words = ["compile", "sum.mlir", "--target", "sme", "-o"]
    assert main([*words, "sum.o"]) == 0
    data = (tmp_path / "sum.o").read_bytes()
    expected = f"sum.o: object for Arm SME, {len(data)} bytes; sum.h: its header\n"
    assert capsys.readouterr().out == expected
    assert data[:4] == b"\x7fELF" and int.from_bytes(data[18:20], "little") == MACHINE_AARCH64
    assert undefined_symbols(data) == {"__arm_tpidr2_save"}
    header = (tmp_path / "sum.h").read_text()
    assert (
        "static inline void sum_sweep(const double *in, double *out, const int64_t extents[2]"
        in header
    )
    assert "read 1 x 0 points before and 0 x 1 after" in header
    assert main([*words, "again.o", "--emit", "object"]) == 0
    assert (tmp_path / "again.o").read_bytes() == data
    assert (tmp_path / "again.h").read_text() == header


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("stencil", '"stencil.outer_sum"'),
        ("llvm", "@llvm.aarch64.sme.mopa.nxv4f32("),
    ],
)
def test_a_stage_as_text(capfd, stage, text):
    assert main(["compile", "heat2d_ftcs", "--target", "sme", "--emit", stage]) == 0
    assert text in capfd.readouterr().out


@pytest.mark.parametrize("schedule", ["parallel", "orthogonal"])
def test_the_schedule_is_the_cover(capfd, schedule):
    words = ["compile", "heat2d_ftcs", "--target", "sme", "--emit", "stencil"]
    assert main([*words, "--schedule", schedule]) == 0
    assert f'option = "{schedule}"' in capfd.readouterr().out


OBJECT = ["-o", "x.o"]
WAVE = (INPUTS.parents[2] / "docs/examples/wave2d.mlir").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected -o FILE to write the object to, and its header beside it"),
        (["-o", "x.h"], "expected another name for the object than that of its header"),
        ([*OBJECT, "--emit", "ptx"], "expected --emit stencil, llvm, object for target 'sme'"),
        ([*OBJECT, "--schedule", "sparse"], "unknown schedule 'sparse'"),
        ([*OBJECT, "--fuse-steps", "auto"], "expected a number for --fuse-steps with target 'sme'"),
        ([*OBJECT, "--no-reassociate"], "expected a CPU target for --no-reassociate, got target"),
        ([*OBJECT, "--tuned", "x.json"], "expected a GPU target for --tuned, got target 'sme'"),
        ([*OBJECT, "--dtype", "f8"], "expected a dtype out of"),
    ],
)
def test_options_that_are_refused(tmp_path, capfd, words, message):
    (tmp_path / "x.mlir").write_text(program())
    refused(capfd, main, ["compile", "x.mlir", "--target", "sme", *words], message)


@pytest.mark.parametrize(
    ("text", "words", "at", "message"),
    [
        (program(), ["--dtype", "f16"], "4:8", "expected f64 or f32 elements for outer products"),
        (program(TYPE="bf16"), [], "4:8", "expected f64 or f32 elements for outer products"),
        (program(**ROW), [], "4:8", "expected a stencil of rank 2 or 3 for outer products, got"),
        (
            program(FIELD="[-1,3]x[-1,3]", STORED="[0, 0], [2, 2]"),
            ["--fuse-steps", "4"],
            "2:1",
            "'func.func' op expected a domain with room for 4 fused steps",
        ),
        (program(OP="mul"), [], "7:12", "expected constant weights for target 'sme'"),
        (WAVE, [], "7:1", "'func.func' op expected one linear step of one field for target 'sme'"),
    ],
)
def test_programs_that_are_refused(tmp_path, capfd, text, words, at, message):
    (tmp_path / "x.mlir").write_text(text)
    words = ["compile", "x.mlir", "--target", "sme", *OBJECT, *words]
    refused(capfd, main, words, message, at=f"x.mlir:{at}")


@pytest.mark.parametrize("command", ["run", "explain"])
def test_nothing_runs_it_here(tmp_path, capfd, command):
    (tmp_path / "x.mlir").write_text(program())
    message = "expected `twofour compile` for target 'sme', whose code is not run here"
    refused(capfd, main, [command, "x.mlir", "--target", "sme"], message)
    with pytest.raises(TwofourError, match="expected `twofour compile` for target 'sme'"):
        twofour.stencil({(0, 1): 1.0, (1, 0): 1.0}, target="sme")


def test_calls_that_nobody_answers_are_refused():
    """LLVM takes an intrinsic that it does not know for a function."""
    text = "declare void @llvm.aarch64.sme.unheard.of()\n"
    text += "define void @f() { call void @llvm.aarch64.sme.unheard.of() ret void }"
    with pytest.raises(TwofourError, match=r"calls of \['llvm.aarch64.sme.unheard.of'\]"):
        to_arm_object(text)
    with pytest.raises(TwofourError, match="expected LLVM IR that llvmlite reads"):
        to_arm_object("define nothing")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("heat2d", "heat2d"), ("2d-heat", "stencil_2d_heat"), ("double", "double")],
)
def test_names_of_programs_are_identifiers(name, expected):
    interface = Interface(name, "k", "f32", (0, -1), (2, 1))
    text = header_text(interface)
    assert f"static inline void {expected}_sweep(const float *in, float *out," in text
    assert "read 0 x 0 points before and 2 x 1 after" in text
