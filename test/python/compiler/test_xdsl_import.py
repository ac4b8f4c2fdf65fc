# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading xDSL's syntax: what is built, where errors point, and that nothing else gets out."""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from twofour.context import make_context
from twofour.errors import TwofourError
from twofour.frontend.xdsl_import import import_xdsl
from twofour.frontend.xdsl_text import is_xdsl_syntax
from twofour.mlir import ir

PROGRAMS = sorted((Path(__file__).parents[2] / "execution" / "programs").glob("*.mlir"))


def imported(text):
    """The module's generic text, which parses again to the same module."""
    with make_context():
        module = import_xdsl(text, "user.mlir")
        printed = module.operation.get_asm(print_generic_op_form=True)
        again = ir.Module.parse(printed)
        assert again.operation.get_asm(print_generic_op_form=True) == printed
    return printed


def error_of(text):
    """The one line that a rejected text gives."""
    with make_context(), pytest.raises(TwofourError) as caught:
        import_xdsl(text, "user.mlir")
    line = str(caught.value)
    assert re.match(r"user\.mlir:\d+:\d+: error: \S", line)
    assert "\n" not in line
    return line


def in_function(body):
    return (
        "func.func @f(%u: !stencil.field<[0,64]xf64>, %k: f64) {\n"
        "  %t = stencil.load %u : !stencil.field<[0,64]xf64> -> !stencil.temp<[0,64]xf64>\n"
        f"{body}\n  func.return\n}}\n"
    )


def in_apply(body, results="!stencil.temp<[1,63]xf64>", names="%r"):
    """`body` starts on line 4; %x is the temp on [0,64] and %s a scalar."""
    return in_function(
        f"  {names} = stencil.apply(%x = %t : !stencil.temp<[0,64]xf64>, %s = %k : f64)"
        f" -> ({results}) {{\n{body}\n  }}"
    )


COPY = """    %v = stencil.access %x[0] : !stencil.temp<[0,64]xf64>
    stencil.return %v : f64"""


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_import_and_survive_a_round_trip(path):
    text = path.read_text()
    assert is_xdsl_syntax(text)
    assert not is_xdsl_syntax(imported(text))


def test_apply_captures_and_types_are_ours():
    printed = imported(in_apply(COPY))
    assert '"stencil.apply"() ({\n' in printed
    grid = "!stencil.temp<#stencil.bounds<[0], [64]>, f64>"
    assert f'"stencil.access"(%0) {{offset = array<i64: 0>}} : ({grid}) -> f64' in printed
    assert f": () -> {grid.replace('[0], [64]', '[1], [63]')}" in printed


def test_applies_are_verified_once_whatever_they_access(monkeypatch):
    from xdsl.dialects.stencil import ApplyOp

    verify, verified = ApplyOp.verify_, []
    monkeypatch.setattr(ApplyOp, "verify_", lambda op: verified.append(op) or verify(op))
    first = COPY.splitlines()[0]
    imported(in_apply("\n".join([first, first.replace("%v", "%w"), COPY.splitlines()[1]])))
    assert len(verified) == 1


def test_unknown_bounds_become_a_rank():
    printed = imported("func.func @f(%u: !stencil.field<?x?xf32>) {\n func.return\n}")
    assert "!stencil.field<2 : i64, f32>" in printed


def test_generic_form_of_xdsl_is_read():
    text = """"func.func"() <{
      function_type = (!stencil.field<[-1,3]xf64>) -> (), sym_name = "f"
    }> ({
    ^bb0(%u : !stencil.field<[-1,3]xf64>):
      %t = "stencil.load"(%u) : (!stencil.field<[-1,3]xf64>) -> !stencil.temp<[-1,3]xf64>
      %r = "stencil.apply"(%t) <{operandSegmentSizes = array<i32: 1, 0>}> ({
      ^bb1(%x : !stencil.temp<[-1,3]xf64>):
        %v = "stencil.access"(%x) {offset = #stencil.index<[1]>}
          : (!stencil.temp<[-1,3]xf64>) -> f64
        "stencil.return"(%v) : (f64) -> ()
      }) : (!stencil.temp<[-1,3]xf64>) -> !stencil.temp<[0,2]xf64>
      "stencil.store"(%r, %u) {bounds = #stencil.bounds<[0], [2]>}
        : (!stencil.temp<[0,2]xf64>, !stencil.field<[-1,3]xf64>) -> ()
      "func.return"() : () -> ()
    }) : () -> ()"""
    assert is_xdsl_syntax(text)
    printed = imported(text)
    assert '"stencil.store"(%1, %arg0) {bounds = #stencil.bounds<[0], [2]>}' in printed
    assert "operandSegmentSizes" not in printed


def test_operations_carry_the_positions_of_their_names():
    with make_context():
        module = import_xdsl("// a comment\n" + in_apply(COPY), "user.mlir")
        positions = {}

        def note(op):
            at = op.location
            positions[op.name] = (at.filename, at.start_line, at.start_col)
            return ir.WalkResult.ADVANCE

        module.operation.walk(note)
    assert positions["func.func"] == ("user.mlir", 2, 1)
    assert positions["stencil.load"] == ("user.mlir", 3, 8)
    assert positions["stencil.apply"] == ("user.mlir", 4, 8)
    assert positions["stencil.access"] == ("user.mlir", 5, 10)
    assert positions["stencil.return"] == ("user.mlir", 6, 5)


def test_offset_mapping_stays_only_for_lower_ranks():
    text = """func.func @f(%u: !stencil.field<[0,9]xf64>, %v: !stencil.field<[0,9]x[0,9]xf64>) {
      %t = stencil.load %u : !stencil.field<[0,9]xf64> -> !stencil.temp<[0,9]xf64>
      %s = stencil.load %v : !stencil.field<[0,9]x[0,9]xf64> -> !stencil.temp<[0,9]x[0,9]xf64>
      %r = stencil.apply(%a = %t : !stencil.temp<[0,9]xf64>,
          %b = %s : !stencil.temp<[0,9]x[0,9]xf64>) -> (!stencil.temp<[0,5]x[0,5]xf64>) {
        %1 = stencil.access %a[2, _] : !stencil.temp<[0,9]xf64>
        %2 = stencil.access %a[_, 3] : !stencil.temp<[0,9]xf64>
        %3 = stencil.access %b[1, 4] : !stencil.temp<[0,9]x[0,9]xf64>
        stencil.return %3 : f64
      }
      func.return
    }"""
    printed = imported(text)
    assert "{offset = array<i64: 2>, offset_mapping = array<i64: 0>}" in printed
    assert "{offset = array<i64: 3>, offset_mapping = array<i64: 1>}" in printed
    assert "{offset = array<i64: 1, 4>}" in printed


def test_results_of_several_element_types_split_the_apply():
    f64, f32 = "!stencil.temp<[1,63]xf64>", "!stencil.temp<[1,63]xf32>"
    body = """    %v = stencil.access %x[1] : !stencil.temp<[0,64]xf64>
    %n = arith.truncf %v : f64 to f32
    stencil.return %v, %n, %s : f64, f32, f64"""
    uses = "\n  %b = stencil.buffer %r#1 : !stencil.temp<[1,63]xf32> -> !stencil.temp<[1,63]xf32>"
    text = in_apply(body, f"{f64}, {f32}, {f64}", "%r:3").replace(
        "\n  func.return", uses + "\n  func.return"
    )
    printed = imported(text)
    assert printed.count('"stencil.apply"()') == 2
    assert re.search(r'"stencil.return"\(%\d+, %arg1\) : \(f64, f64\)', printed)
    assert re.search(r'"stencil.return"\(%\d+\) : \(f32\)', printed)
    second = re.search(
        r'(%\d+) = "stencil.apply"[^@]*?\(f32\) -> \(\)', printed[printed.index("(f64, f64)") :]
    )
    assert f'"stencil.buffer"({second[1]})' in printed


def test_plain_values_among_results_become_results():
    body = """    %v = stencil.store_result %s : !stencil.result<f64>
    stencil.return %v, %s : !stencil.result<f64>, f64"""
    grid = "!stencil.temp<[1,63]xf64>"
    printed = imported(in_apply(body, f"{grid}, {grid}", "%r:2"))
    assert printed.count('"stencil.store_result"(%arg1)') == 2
    assert "(!stencil.result<f64>, !stencil.result<f64>) -> ()" in printed


def test_public_declarations_become_private_and_calls_stay():
    printed = imported(
        "func.func @g(f64) -> f64\n"
        "func.func @f(%k: f64) -> f64 {\n"
        "  %r = func.call @g(%k) : (f64) -> f64\n"
        "  func.return %r : f64\n}\n"
    )
    assert re.search(r'sym_name = "g", sym_visibility = "private"', printed)
    assert "callee = @g" in printed
    assert '"func.return"(%0) : (f64) -> ()' in printed


def test_control_flow_attributes_and_precise_constants_are_kept():
    printed = imported(
        "func.func @f(%c: i1, %a: f64, %i: index) -> f64 attributes {stencil.order = [2, 0],"
        " stencil.at = #stencil.index<[3, -1]>} {\n"
        "  %n = arith.constant 0.1234567890123456 : f64\n"
        "  %d = arith.constant dense<[1.0, 0.30000000000000004]> : vector<2xf64>\n"
        "  %s = scf.for %j = %i to %i step %i iter_args(%q = %a) -> (f64) {\n"
        "    %w = arith.addf %q, %n fastmath<contract> : f64\n"
        "    scf.yield %w : f64\n  }\n"
        "  cf.cond_br %c, ^bb1(%s : f64), ^bb2\n"
        "^bb1(%x : f64):\n  func.return %x : f64\n"
        "^bb2:\n  func.return %n : f64\n}\n"
    )
    assert "stencil.at = array<i64: 3, -1>, stencil.order = [2, 0]" in printed
    assert float(re.search(r"value = (0\.\d+) : f64", printed)[1]) == 0.1234567890123456
    assert "0.30000000000000004" in printed
    assert "^bb0(%arg3: index, %arg4: f64):" in printed
    assert "fastmath = #arith.fastmath<contract>" in printed
    assert '"cf.cond_br"(%arg0, %2)[^bb1, ^bb2]' in printed


REJECTED = {
    "bits": (
        "func.func @f() {\n"
        "  %i = arith.constant dense<[0x1F, 2]> : vector<2xi32>\n"
        "  %d = arith.constant dense<[1.0, 0x3FF0000000000000]> : vector<2xf64>\n"
        "  func.return\n}",
        "3:35: error: expected decimal numbers in dense<...> of floats, got '0x3FF0000000000000'",
    ),
    "outs": (
        "func.func @f(%u: !stencil.field<[0,9]xf64>) {\n"
        "  stencil.apply() outs (%u : !stencil.field<[0,9]xf64>) {\n"
        "    %v = arith.constant 1.0 : f64\n    stencil.return %v : f64\n"
        "  } to <[0], [9]>\n  func.return\n}",
        "2:3: error: 'stencil.apply' op expected results, got destination fields",
    ),
    "no return": (
        "func.func @f(%u: !stencil.field<[0,64]xf64>) {\n"
        "  %t = stencil.load %u : !stencil.field<[0,64]xf64> -> !stencil.temp<[0,64]xf64>\n}\n",
        "2:8: error: 'stencil.load' op expected a return, a branch or a yield after the last op",
    ),
    "bounds": (
        "func.func @f(%t: !stencil.temp<[0,9]xf64>, %u: !stencil.field<[0,9]xf64>) {\n"
        "  stencil.store %t to %u(<[0], [9223372036854775807]>) : "
        "!stencil.temp<[0,9]xf64> to !stencil.field<[0,9]xf64>\n  func.return\n}",
        "2:3: error: 'stencil.store' op expected bounds of at most 576460752303423488 points",
    ),
    "dyn_access": (
        in_apply(
            "    %i = stencil.index 0 <[0]>\n"
            "    %v = stencil.dyn_access %x[%i] in <[0]> : <[0]> : !stencil.temp<[0,64]xf64>\n"
            "    stencil.return %v : f64"
        ),
        "5:10: error: 'stencil.dyn_access' op expected a supported stencil op (access, apply,",
    ),
    "combine": (
        in_function(
            "  %c = stencil.combine 0 at 9 lower = (%t : !stencil.temp<[0,64]xf64>)"
            " upper = (%t : !stencil.temp<[0,64]xf64>) : !stencil.temp<[0,64]xf64>"
        ),
        "3:8: error: 'stencil.combine' op expected a supported stencil op (",
    ),
    "empty store_result": (
        in_apply(
            "    %v = stencil.store_result : !stencil.result<f64>\n"
            "    stencil.return %v : !stencil.result<f64>"
        ),
        "4:10: error: 'stencil.store_result' op expected a value to store, got an empty",
    ),
    "unroll": (
        in_apply("    stencil.return %s, %s unroll <[2]> : f64, f64"),
        "4:5: error: 'stencil.return' op expected one value a result, got 'unroll'",
    ),
    "reduce": (
        in_apply(
            "    stencil.reduce %s init %s {\n    ^bb0(%p: f64, %q: f64):\n"
            "      stencil.yield %p : f64\n    } : f64\n    stencil.return %s : f64"
        ),
        "4:5: error: 'stencil.reduce' op expected a supported stencil op (",
    ),
    "alloc": (
        in_function("  %a = stencil.alloc : !stencil.field<[0,9]xf64>"),
        "3:8: error: 'stencil.alloc' op expected a supported stencil op (",
    ),
    "tensor elements": (
        "func.func @f(%u: !stencil.field<[0,9]xtensor<4xf64>>) {\n  func.return\n}",
        "1:1: error: 'func.func' op expected elements that are no tensors, got !stencil.field<",
    ),
    "dmp": (
        in_function(
            '  "dmp.swap"(%u) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x2>, false>, swaps = []}'
            " : (!stencil.field<[0,64]xf64>) -> ()"
        ),
        "3:3: error: 'dmp.swap' op expected an op of the stencil dialect or of MLIR, got one of",
    ),
    "csl_stencil": (
        in_function("  %v = csl_stencil.access %t[0] : !stencil.temp<[0,64]xf64>"),
        "3:8: error: 'csl_stencil.access' op",
    ),
    "test dialect": (
        in_function('  "test.op"() : () -> ()'),
        "3:3: error: 'test.op' op expected an op of the stencil dialect or of MLIR, got one of",
    ),
    "access of a field": (
        in_function(
            "  %r = stencil.apply(%x = %u : !stencil.field<[0,64]xf64>)"
            " -> (!stencil.temp<[1,63]xf64>) {\n"
            "    %v = stencil.access %x[0] : !stencil.field<[0,64]xf64>\n"
            "    stencil.return %v : f64\n  }"
        ),
        "4:10: error: 'stencil.access' op expected a temp, got !stencil.field<[0,64]xf64>",
    ),
    "unknown op": (
        in_function("  %v = stencil.lod %u : f64"),
        "3:8: error: expected a known operation, got 'stencil.lod'",
    ),
    "load outside the field": (
        "func.func @f(%u: !stencil.field<[0,9]xf64>) {\n"
        "  %t = stencil.load %u : !stencil.field<[0,9]xf64> -> !stencil.temp<[-1,9]xf64>\n"
        "  func.return\n}",
        "2:8: error: 'stencil.load' op expected bounds within those of !stencil.field<[0,9]xf64>,"
        " got !stencil.temp<[-1,9]xf64>",
    ),
    "load to a field": (
        "func.func @f(%u: !stencil.field<[0,9]xf64>) {\n"
        "  %t = stencil.load %u : !stencil.field<[0,9]xf64> -> !stencil.field<[0,9]xf64>\n"
        "  func.return\n}",
        "2:8: error: 'stencil.load' op expected operands and results that fit, got "
        "(!stencil.field<[0,9]xf64>) -> (!stencil.field<[0,9]xf64>)",
    ),
    "access outside the temp": (
        in_apply(COPY.replace("[0]", "[2]")),
        "4:10: error: 'stencil.access' op expected the temp's bounds to cover [3,65], got [0,64]",
    ),
    "values from outside": (
        in_function(
            "  %r = stencil.apply(%x = %t : !stencil.temp<[0,64]xf64>)"
            " -> (!stencil.temp<[1,63]xf64>) {\n"
            "    %v = stencil.access %x[0] : !stencil.temp<[0,64]xf64>\n"
            "    %c = arith.constant 2 : index\n"
            "    %q = scf.for %i = %c to %c step %c iter_args(%w = %v) -> (f64) {\n"
            "      %p = arith.mulf %w, %k : f64\n"
            "      scf.yield %p : f64\n    }\n"
            "    stencil.return %q : f64\n  }"
        ),
        "7:12: error: 'arith.mulf' op expected values that the apply lists, got one from outside",
    ),
    "wrong rank": (
        in_apply(COPY.replace("[0]", "[0, 0]")),
        "4:10: error: 'stencil.access' op offset mappings in stencil.access must be within",
    ),
    "wrong number of values": (
        in_apply("    stencil.return %s, %s : f64, f64"),
        "4:5: error: 'stencil.return' op expected 1 operands to match the parent",
    ),
    "body arguments": (
        in_function(
            '  %r = "stencil.apply"(%k) <{operandSegmentSizes = array<i32: 1, 0>}> ({\n'
            "  ^bb0(%s: f64, %q: f64):\n    stencil.return %s : f64\n"
            "  }) : (f64) -> !stencil.temp<[1,63]xf64>"
        ),
        "3:8: error: 'stencil.apply' op expected 1 body arguments, one an operand, got 2",
    ),
    "two blocks": (
        in_function(
            '  %r = "stencil.apply"(%k) <{operandSegmentSizes = array<i32: 1, 0>}> ({\n'
            "  ^bb0(%s: f64):\n    cf.br ^bb1\n  ^bb1:\n    stencil.return %s : f64\n"
            "  }) : (f64) -> !stencil.temp<[1,63]xf64>"
        ),
        "3:8: error: 'stencil.apply' op expected a body of one block, got 2",
    ),
    "bounds besides the results'": (
        in_apply(COPY).replace("\n  }\n", "\n  } to <[1], [62]>\n"),
        "3:8: error: 'stencil.apply' op expected the bounds of its results",
    ),
    "use before definition": (
        in_function("  %b = arith.addf %a, %a : f64\n  %a = arith.constant 1.0 : f64"),
        "3:8: error: 'arith.addf' op expected operands defined before it, got '%a' defined later",
    ),
    "offset beyond 64 bits": (
        in_apply(COPY.replace("[0]", "[99999999999999999999]")),
        "4:10: error: 'stencil.access' op expected 64-bit integers, got 99999999999999999999",
    ),
    "empty bounds": (
        "func.func @f(%u: !stencil.field<[3,3]xf64>) {\n  func.return\n}",
        "error: incoherent stencil bounds: upper bound must be strictly greater than lower",
    ),
    "a type MLIR lacks": (
        "func.func @f(%u: !fir.array<4xf64>) {\n  func.return\n}",
        "1:1: error: 'func.func' op expected types that MLIR has, got !fir.array<4xf64>",
    ),
    "an unclosed string": (
        'func.func @f() attributes {a = "' + "x" * 60 + "} {\n  func.return\n}",
        "1:32: error: expected a string that is closed on its line",
    ),
    "not UTF-8": ("func.func @f\udcff() {}", "1:13: error: expected text in UTF-8"),
    "binary": ("\x7fELF\x02\x01\x00\x00", "1:1: error: unexpected character: \\x7f"),
    "empty": ("", "1:1: error: could not parse entire input"),
    "deep nesting": (
        "func.func @f() attributes {a = " + "[" * 20000 + "} {}",
        "error: expected valid syntax, got RecursionError",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejections_name_the_op_and_its_line(name):
    text, expected = REJECTED[name]
    assert expected in error_of(text)


def outcome(context, text):
    """Whether `text` imports; whatever it raises besides TwofourError fails the test."""
    with context:
        try:
            import_xdsl(text, "user.mlir")
        except TwofourError as error:
            assert re.match(r"user\.mlir:\d+:\d+: error: \S", str(error))
            assert "\n" not in str(error)
            return False
    return True


def test_every_prefix_imports_or_is_rejected_in_one_line():
    context = make_context()
    text = in_apply(COPY)
    whole = [length for length in range(len(text) + 1) if outcome(context, text[:length])]
    declaration = text.index(" {")
    assert whole == [declaration, declaration + 1, len(text) - 1, len(text)]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_garbled_programs_import_or_are_rejected_in_one_line(path):
    context = make_context()
    text = path.read_text()
    choose = random.Random(path.stem)
    for _ in range(60):
        start = choose.randrange(len(text))
        end = start + choose.randrange(12)
        insert = choose.choice(["", "%", '"', "[", "}", "9" * 20, "f16", "stencil.", "\0", "é"])
        outcome(context, text[:start] + insert + text[end:])


@pytest.mark.parametrize(
    "text, expected",
    [
        ("%t = stencil.load %u : f64", True),
        ("  stencil.apply(%x = %t : f64) -> (f64) {", True),
        ("%r = stencil.apply () -> (f64) {", True),
        ("%i = stencil.index 0 <[0]>", True),
        ("func.func @f(%u: !stencil.field<?x?xf64>)", True),
        ('"stencil.load"(%u) : (!stencil.field<[0,9]xf64>) -> ()', True),
        ('"stencil.load"(%u) : (!stencil.field<#stencil.bounds<[0], [9]>, f64>) -> ()', False),
        ('"stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> ()', False),
        ("// %t = stencil.load %u : !stencil.field<[0,9]xf64>", False),
        ('attributes {note = "%t = stencil.load %u"}', False),
        ("attributes {stencil.program, stencil.order = [0]}", False),
        ("func.func @f() { return }", False),
        ("", False),
    ],
)
def test_sniffing_the_syntax(text, expected):
    assert is_xdsl_syntax(text) is expected


def test_sniffing_imports_neither_xdsl_nor_mlir():
    code = (
        "import sys; from twofour.frontend.xdsl_text import is_xdsl_syntax; is_xdsl_syntax('');"
        "print(sorted({'xdsl', 'torch_mlir', 'mlir', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
