# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are wrong, in both syntaxes: refused at the line of the user's own file."""

import sys

import pytest

from bad_input import ERROR, GENERIC, PRETTY, refused, refused_by_process
from twofour.cli.main import main as twofour
from twofour.opt.main import main as twofour_opt

FIELD = "!stencil.field<#stencil.bounds<[-1], [65]>, f64>"
TEMP = "!stencil.temp<1 : i64, f64>"
# xDSL 0.73, the last one for Python 3.10, does not name it.
UNKNOWN_VALUE = "got '%z'" if sys.version_info >= (3, 11) else "used before assignment"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


LEFT = "{offset = array<i64: -1>}"


@pytest.mark.parametrize(
    "old, new, at, message",
    [
        # Attributes of the wrong kind, rank or size.
        (LEFT, '{offset = "x"}', "5:10", "expected base attribute 'builtin.dense_array'"),
        (LEFT, "{offset = array<i32: -1>}", "5:10", "expected offset as integers"),
        (LEFT, "{offset = array<f64: -1.0>}", "5:10", "expected offset as integers"),
        # MLIR says of one place what it expected at first, and then.
        (LEFT, "{offset = array<}", "5:", "expected non-function type"),
        (LEFT, "", "5:10", 'attribute "offset" is expected but not provided'),
        (LEFT, "{offset = array<i64: -1, 0>}", "5:10", "expected an offset of rank 1, got [-1, 0]"),
        (
            LEFT,
            "{offset = array<i64: -9999999999999999999>}",
            "5:",
            "integer constant out of range",
        ),
        (LEFT, LEFT[:-1] + ", offset_mapping = [1]}", "5:10", "strictly increasing axes below 1"),
        (LEFT, LEFT[:-1] + ", offset_mapping = [1.0]}", "5:10", "offset_mapping as integers"),
        ("<[0], [64]>", "<[0], [66]>", "12:3", "expected the field's bounds to cover [0,66]"),
        ("<[0], [64]>", "<[0, 0], [64, 64]>", "12:3", "expected bounds of rank 1"),
        ("<[0], [64]>", "<[64], [64]>", "12:3", "expected bounds that are not empty, got [64,64]"),
        ("{bounds = #stencil.bounds<[0], [64]>}", '{bounds = "x"}', "12:3", "'stencil.bounds'"),
        # Types.
        ("[-1], [65]", "[0], [0]", "3:8", "expected bounds that are not empty, got [0,0] on axis"),
        ("[-1], [65]", "[-1, 0], [65]", "3:8", "lower and upper bounds of one rank"),
        ("[-1], [65]", '"a", "b"', "2:", "expected base attribute 'builtin.array'"),
        ("[-1], [65]", "[-1], [9223372036854775807]", "3:8", "expected bounds of at most"),
        ("[-1], [65]", f"[-1], [{10**30} : i128]", "3:8", "expected upper bounds of 64 bits"),
        ("[65]>, f64>", '[65]>, "x">', "3:8", 'expected an element type, got "x"'),
        ("[65]>, f64>", "[65]>>", "2:", "expected 2 type arguments, but had 1"),
        ("1 : i64", "0 : i64", "3:8", "expected #stencil.bounds or a positive rank"),
        ("1 : i64", '"x"', "3:8", "expected #stencil.bounds or a positive rank"),
        ("1 : i64", "9223372036854775807 : i64", "3:8", "expected rank 1, got rank 9223372036854"),
        ("f64", "f46", "2:", "expected attribute value"),
        # Ops and values.
        ('"stencil.access"', '"stencil.acess"', "5:10", "unregistered operation 'stencil.acess'"),
        ("arith.addf", "arith.adff", "7:10", "custom op 'arith.adff' is unknown"),
        (
            "arith.addf %a, %b : f64",
            '"foo.add"(%a, %b) : (f64, f64) -> f64',
            "7:19",
            "unregistered dialect",
        ),
        ("arith.addf %a, %b", "arith.addf %a, %z", "7:25", "use of undeclared SSA value name"),
        ("arith.addf %a, %b", "arith.addf %a, %m", "7:10", "does not dominate this use"),
        ("arith.addf %a, %b : f64", "arith.addf %a, %b : f32", "7:21", "expects different type"),
        ("%b = ", "%a = ", "6:5", "redefinition of SSA value '%a'"),
        ('    "stencil.return"(%m) : (f64) -> ()\n', "", "9:10", "block with no terminator"),
        ("(%m) : (f64) ->", "(%m, %m) : (f64, f64) ->", "10:5", "expected 1 values, got 2"),
        ('"stencil.apply"() ({', '"stencil.apply"() ({\n^b(%q: f64):', "4:8", "no block arguments"),
        (
            "%h = arith",
            f'"stencil.store"(%t, %out) {{bounds = #stencil.bounds<[0], [1]>}} : ({TEMP}, {FIELD})'
            " -> ()\n %h = arith",
            "8:5",
            "expected to be outside of 'stencil.apply'",
        ),
        (
            "%m = arith.mulf %s, %h : f64",
            '%o = "stencil.store_result"(%s) : (f64) -> !stencil.result<"x">\n'
            "%m = arith.mulf %s, %h : f64",
            "9:10",
            'expected an element type, got "x"',
        ),
        ("0.5 : f64", f"{'9' * 2000} : f64", "8:25", "expected numbers of fewer than 1000 digits"),
    ],
)
@pytest.mark.parametrize("tool, words", [(twofour, ["run"]), (twofour_opt, [])])
def test_invalid_programs(capfd, folder, tool, words, old, new, at, message):
    (folder / "x.mlir").write_text(edited(GENERIC, (old, new)))
    refused(capfd, tool, [*words, "x.mlir"], message, f"x.mlir:{at}")


@pytest.mark.parametrize(
    "edits, at, message",
    [
        ([(LEFT, "{offset = array<i64: -2>}")], "5:10", "expected the field's bounds to cover"),
        ([("0.5 : f64", "0x7FF8000000000000 : f64")], "9:10", "NaN"),
        ([("#stencil.bounds<[-1], [65]>", "1 : i64")], "3:8", "a field with known bounds"),
        ([("f64", "f128")], "2:1", "got 'f128' in argument 0"),
        (
            [(", %out: ", ", %q: tensor<4xf64>, %out: ")],
            "2:1",
            "expected fields, memrefs or numbers",
        ),
        (
            [(", %out: ", ", %q: memref<?xf64>, %out: ")],
            "2:1",
            "expected known bounds for argument 1",
        ),
        (
            [("arith.mulf %s, %h", "math.clampf %s to [%h, %h]")],
            "9:10",
            "the CPU target has code for",
        ),
        (
            [
                ("arith.mulf %s, %h", "arith.sitofp %k"),
                ("%h =", "%k = arith.constant 1 : i65\n%h ="),
            ]
            + [("%k : f64", "%k : i65 to f64")],
            "10:10",
            "expected an integer of at most 64 bits beside a float, got i65",
        ),
        (
            [
                ("arith.mulf %s, %h : f64", "vector.extract %v[0] : f64 from vector<[4]xf64>"),
                ("%h =", "%v = vector.broadcast %s : f64 to vector<[4]xf64>\n%h ="),
            ],
            "8:10",
            "expected a vector of known length, got vector<[4]xf64>",
        ),
        (
            [("arith.mulf %s, %h", "llvm.fmul %s, %h"), ("f64", "bf16")],
            "9:10",
            "expected an op of arith or math on bf16",
        ),
        ([("  return", "  gpu.barrier\n  return")], "13:3", "the CPU target has code for"),
        (
            [
                ("// The", "func.func private @g(f64) -> f64 // The"),
                ("arith.mulf %s, %h : f64", "func.call @g(%s) : (f64) -> f64"),
            ],
            "1:1",
            "expected a body, got a declaration of @g alone",
        ),
        (
            [("{\n  %t", "attributes {stencil.rotation = [0, 0]} {\n  %t")],
            "2:1",
            "expected stencil.rotation to permute 2 arguments, got [0, 0]",
        ),
        (
            [("{\n  %t", 'attributes {stencil.rotation = "x"} {\n  %t')],
            "2:1",
            "expected stencil.rotation as integers",
        ),
        (
            [("{\n  %t", "attributes {stencil.rotation = array<f16: 1.0>} {\n  %t")],
            "2:1",
            "expected stencil.rotation as integers, got array<f16: 1.000000e+00>",
        ),
        ([("array<i64: -1>", "array<i128: -1>")], "5:10", "expected offset as integers"),
        (
            [("{\n  %t", 'attributes {stencil.rotation = loc("x":1:1)} {\n  %t')],
            "2:1",
            'expected stencil.rotation as integers, got loc("x":1:1)',
        ),
        (
            [("{\n  %t", "attributes {stencil.steps = 3} {\n  %t")],
            "2:1",
            "expected no stencil.steps",
        ),
        ([("@average", '@""')], "2:1", "expected a name of UTF-8 characters"),
        ([("@average", '@"\\FF"')], "2:1", "expected a name of UTF-8 characters"),
        (
            [("{\n  %t", "attributes {stencil.past_caches} {\n  %t")],
            "2:1",
            "expected no stencil.past_caches",
        ),
        (
            [("  return\n}\n", "  return\n}\nscf.execute_region { scf.yield }\n")],
            "15:1",
            "expected code in functions alone",
        ),
        ([("%r, %out", "%r, %t"), ("64]>} : (", "64]>} : (")], "12:", "expects different type"),
    ],
)
def test_programs_that_cannot_run(capfd, folder, edits, at, message):
    (folder / "x.mlir").write_text(edited(GENERIC, *edits))
    refused(capfd, twofour, ["run", "x.mlir"], message, f"x.mlir:{at}")


def test_weights_beyond_the_range_of_their_type(capfd, folder):
    """NumPy warns of them as well."""
    sum_of = '"stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0e39>}'
    temp = "!stencil.temp<1 : i64, f32>"
    (folder / "x.mlir").write_text(
        f"func.func @f(%t: {temp}) -> {temp} {{\n"
        f"  %r = {sum_of} : ({temp}) -> {temp}\n  return %r : {temp}\n}}\n"
    )
    message = "expected weights representable in float32, got 1e+39"
    refused_by_process(folder, ["twofour-opt", "x.mlir"], message, "x.mlir:2:8")


def test_which_function(capfd, folder):
    (folder / "x.mlir").write_text(GENERIC + GENERIC.replace("@average", "@mean"))
    got = "got @average, @mean"
    refused(capfd, twofour, ["run", "x.mlir"], f"expected one function, {got}", "x.mlir:1:1")
    words = ["run", "x.mlir", "--function", "median"]
    refused(capfd, twofour, words, f"expected a function @median, {got}", "x.mlir:1:1")
    refused(capfd, twofour, [*words[:-1], "@median"], "function @median, got", "x.mlir:1:1")
    for name in ("mean", "@mean"):
        assert twofour([*words[:-1], name]) == 0
        assert capfd.readouterr().out.startswith("mean: 64 points")
    (folder / "x.mlir").write_text(GENERIC + GENERIC)
    refused(capfd, twofour, ["run", "x.mlir"], "redefinition of symbol", "x.mlir:16:1")
    (folder / "x.mlir").write_text("func.func @f() {\n  return\n}\n")
    refused(capfd, twofour, ["run", "x.mlir"], "expected a function with fields", "x.mlir:1:1")
    (folder / "x.mlir").write_text("\n".join(line for line in GENERIC.split("\n")
                                             if "stencil.store" not in line))  # fmt: skip
    refused(capfd, twofour, ["run", "x.mlir"], "a function that stores to a field", "x.mlir:1:1")


SQUARE = ("arith.mulf %s, %h", "arith.mulf %s, %s")


@pytest.mark.parametrize("text, line", [(GENERIC, 9), (PRETTY, 9)])
def test_what_only_linear_programs_can_do(capfd, folder, text, line):
    (folder / "x.mlir").write_text(edited(text, SQUARE))
    words = ["run", "x.mlir"]
    at = f"x.mlir:{line}:10"
    message = "expected constant weights for schedule 'sparse': multiplies two values"
    refused(capfd, twofour, [*words, "--schedule", "sparse"], message, at)
    refused(capfd, twofour, [*words, "--fuse-steps", "2"], "one linear step", "x.mlir:2:1")
    refused(capfd, twofour, [*words, "--dtype", "f23"], "'f32'", "<command-line>:1:20")


@pytest.mark.parametrize(
    "old, new, at, message",
    [
        ("stencil.access %u[-1]", "stencil.acess %u[-1]", "5:10", "known operation"),
        ("stencil.access %u[-1]", "stencil.access %u[-1, 0]", "5:10", "offset"),
        ("stencil.access %u[-1]", "stencil.access %u[-2]", "5:10", "to cover [-2,62]"),
        ("stencil.access %u[-1]", "stencil.access %z[-1]", "5:25", UNKNOWN_VALUE),
        ("stencil.access %u[-1]", "stencil.access %u[x]", "5:28", "expected"),
        ("%a, %b : f64", "%a, %b : f32", "7:", "f32"),
        (
            "%a, %b : f64",
            "%a, %b {fastmath = 3} : f64",
            "7:10",
            "'fastmath' of another kind, got 3",
        ),
        ("arith.addf", "arith.adff", "7:10", "known operation, got 'arith.adff'"),
        ("[-1,65]xf64", "[-1,65]xf46", "2:", "expected"),
        ("<[0], [64]>", "<[0], [66]>", "12:3", "[0,66]"),
        ("<[0], [64]>", "<[0, 0], [64, 64]>", "12:3", "'stencil.store' op"),
        ("    stencil.return %m : f64\n", "", "9:10", "expected a return, a branch or a yield"),
        ("[-1,65]xf64", "[0,0]xf64", "2:", "upper bound must be strictly greater"),
        ("[-1,65]xf64", "[-1,65]x[0,1]x[0,1]x[0,1]xf64", "2:", "1 to 3 axes in xDSL's syntax"),
        ("[-1,65]xf64", "[-1,9223372036854775807]xf64", "2:1", "expected bounds of at most"),
        ("5.000000e-01", "nan", "8:", "expected"),
        ("5.000000e-01 : f64", "1.0e40 : f32", "8:10", "numbers in the range of their types"),
        ("  return\n}\n", "", "13:1", "expected"),
    ],
)
def test_invalid_programs_in_pretty_syntax(capfd, folder, old, new, at, message):
    (folder / "x.mlir").write_text(edited(PRETTY, (old, new)))
    refused(capfd, twofour, ["run", "x.mlir"], message, f"x.mlir:{at}")


LOOP = f"""func.func @steps(%u : {FIELD}, %v : {FIELD}) {{
  %begin = arith.constant 0 : index
  %end = arith.constant 4 : index
  %one = arith.constant 1 : index
  scf.for %i = %begin to %end step %one iter_args(%p = %u, %q = %v) -> ({FIELD}, {FIELD}) {{
    %t = "stencil.load"(%p) : ({FIELD}) -> {TEMP}
    %r = "stencil.apply"() ({{
      %a = "stencil.access"(%t) {{offset = array<i64: 1>}} : ({TEMP}) -> f64
      "stencil.return"(%a) : (f64) -> ()
    }}) : () -> {TEMP}
    "stencil.store"(%r, %q) {{bounds = #stencil.bounds<[0], [64]>}} : ({TEMP}, {FIELD}) -> ()
    scf.yield %q, %p : {FIELD}, {FIELD}
  }}
  return
}}
"""


def test_time_loops_in_the_file(capfd, folder):
    (folder / "x.mlir").write_text(LOOP)
    assert twofour(["run", "x.mlir"]) == 0
    capfd.readouterr()
    words = ["run", "x.mlir", "--boundary", "periodic"]
    refused(capfd, twofour, words, "expected boundary 'fixed'", "x.mlir:5:3")
    (folder / "x.mlir").write_text(edited(LOOP, ("yield %q, %p", "yield %q, %q")))
    refused(capfd, twofour, ["run", "x.mlir"], "got one field twice", "x.mlir:5:3")


def test_buffers_larger_than_memory(capfd, folder):
    """Without a check, the code that fills such a buffer would end the process."""
    last = 10**14
    huge = f"!stencil.temp<#stencil.bounds<[0], [{last + 1}]>, f64>"
    one = "!stencil.temp<#stencil.bounds<[0], [1]>, f64>"
    (folder / "x.mlir").write_text(f"""func.func @f(%out : {FIELD}) {{
  %one = arith.constant 1.0 : f64
  %r = "stencil.apply"() ({{
    "stencil.return"(%one) : (f64) -> ()
  }}) : () -> {huge}
  %b = "stencil.buffer"(%r) : ({huge}) -> {huge}
  %s = "stencil.apply"() ({{
    %x = "stencil.access"(%b) {{offset = array<i64: 0>}} : ({huge}) -> f64
    %y = "stencil.access"(%b) {{offset = array<i64: {last}>}} : ({huge}) -> f64
    %p = arith.mulf %x, %y : f64
    "stencil.return"(%p) : (f64) -> ()
  }}) : () -> {one}
  "stencil.store"(%s, %out) {{bounds = #stencil.bounds<[0], [1]>}} : ({one}, {FIELD}) -> ()
  return
}}
""")
    refused(capfd, twofour, ["run", "x.mlir"], "expected arrays that fit in memory")


@pytest.mark.parametrize("op", ["nm.patch_matmul", "stencil.apply"])
@pytest.mark.parametrize("before", ["", "  %a, %b = ", "  // stencil.store\n  "])
def test_ops_that_have_the_generic_form_alone(capfd, folder, op, before):
    """MLIR says nothing about them."""
    text = f"func.func @first() {{\n  return\n}}\n// -----\nmodule {{\n{before}{op} {{\n}}\n"
    (folder / "x.mlir").write_text(text)
    last = f"{before}{op}".splitlines()[-1]
    at = f"x.mlir:{6 + before.count(chr(10))}:{last.index(op) + 1}"
    message = f"expected '{op}' in generic form, as \"{op}\"(...)"
    refused(capfd, twofour_opt, ["--split-input-file", "x.mlir"], message, at)


@pytest.mark.parametrize(
    "text, message",
    [
        ("module {\n" * 5000 + "}\n" * 5000, "at most 128 brackets inside each other"),
        ("module attributes {a.b = " + "[" * 20000 + "]" * 20000 + "} {}", "at most 128 brackets"),
        ("#m = affine_map<(d) -> (" + "-" * 100000 + "d)>", "fewer than 100 signs"),
        ("module attributes {a.b = 1." + "9" * 50000 + " : f64} {}", "fewer than 1000 digits"),
        (
            "#a0 = [1]\n" + "".join(f"#a{i + 1} = [#a{i}]\n" for i in range(20000)),
            "at most 10000 aliases",
        ),
    ],
)
def test_texts_on_which_mlir_would_end_the_process(folder, text, message):
    (folder / "x.mlir").write_text(text)
    refused_by_process(folder, ["twofour-opt", "x.mlir"], message, "x.mlir:")


@pytest.mark.parametrize("text", [GENERIC, PRETTY], ids=["generic", "pretty"])
def test_truncated_anywhere(capfd, folder, text):
    """Every beginning of a valid file is refused at a line of it, or valid itself."""
    refusals = 0
    for length in range(0, len(text), 37):
        (folder / "x.mlir").write_text(text[:length])
        status = twofour_opt(["x.mlir"])
        captured = capfd.readouterr()
        if status == 0:
            # Nothing but a comment.
            assert length < text.index("func.func")
            continue
        refusals += 1
        assert captured.out == ""
        for line in captured.err.splitlines():
            assert ERROR.fullmatch(line), line
            assert 1 <= int(line.split(":")[1]) <= text[:length].count("\n") + 1
    assert refusals > 10
