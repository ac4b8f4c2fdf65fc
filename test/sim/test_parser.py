# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parser of PTX, and what it refuses."""

import numpy as np
import pytest

from ptx_text import Run, parse
from twofour import sim
from twofour.errors import TwofourError

HEADER = ".version 8.6\n.target sm_90a, debug\n.address_size 64\n"


def test_kernels_and_their_directives():
    module = sim.parse(
        HEADER
        + """
        // A comment; with { braces
        .file 1 "kernel.cu"
        .extern .shared .align 16 .b8 dynamic[];
        .visible .entry first(
          .param .u64 .ptr .global .align 16 first_param_0,
          .param .u32 first_param_1,
          .param .f64 first_param_2,
          .param .align 8 .b8 first_param_3[24]
        )
        .maxntid 128, 1, 1
        .minnctapersm 2
        {
          .pragma "nounroll";
          .loc 1 3 0
          .reg .b32 %r<3>, %extra; /* and
          another */
          mov.u32 %r1, %tid.x; mov.u32 %r2, %r1;
          mov.b32 %extra, %r2;
        $L__BB0_1:
          ret;
        }
        .weak .entry second() { ret; }
        .section .debug_info { .b8 1 }
        """,
        "two.ptx",
    )
    assert (module.version, module.target, module.name) == ("8.6", "sm_90a", "two.ptx")
    first, second = module.kernels.values()
    assert first.directives == {"maxntid": (128, 1, 1), "minnctapersm": (2,)}
    assert [(p.kind, p.size, p.offset) for p in first.parameters] == [
        ("u64", 8, 0),
        ("u32", 4, 8),
        ("f64", 8, 16),
        ("b8", 24, 24),
    ]
    assert list(first.registers) == ["%r0", "%r1", "%r2", "%extra"]
    assert first.labels == {"$L__BB0_1": 3}
    assert [i.opcode for i in first.body] == ["mov.u32", "mov.u32", "mov.b32", "ret"]
    assert (first.body[2].location.line, first.body[2].location.column) == (22, 11)
    assert second.name == "second" and len(second.body) == 1


@pytest.mark.parametrize(
    "declaration, expected",
    [
        (".global .align 4 .b8 x[6] = {1, 0x2, -1, 0b11, 010};", bytes([1, 2, 255, 3, 8, 0])),
        (".global .f32 x[2] = {0f3F800000, 2.5};", np.array([1, 2.5], np.float32).tobytes()),
        (".const .f64 x = 0dBFF0000000000000;", np.float64(-1).tobytes()),
        (".global .align 8 .v2 .f32 x = {1.0, 2.0};", np.array([1, 2], np.float32).tobytes()),
        (".global .u16 x[2][2] = {{1, 2}, {3, 4}};", np.arange(1, 5, dtype=np.uint16).tobytes()),
        (".global .s64 x[] = {-2, 3};", np.array([-2, 3]).tobytes()),
        (".visible .global .align 4 .b8 x[3];", b""),
    ],
)
def test_variables(declaration, expected):
    variable = sim.parse(HEADER + declaration).globals["x"]
    assert variable.initial == expected
    assert variable.size == (len(expected) or 3)


def test_nested_scopes_have_their_own_registers():
    run = Run(
        """
        mov.u32 %r5, 1;
        { .reg .b32 %r5, %t; mov.u32 %t, %r0; add.u32 %r5, %t, 10; mov.u32 %r6, %r5;
          { .reg .b32 %t; mov.u32 %t, 100; add.u32 %r6, %r6, %t; }
          add.u32 %r6, %r6, %t; }
        { .reg .b32 %t; mov.u32 %t, 1000; add.u32 %r6, %r6, %t; }
        add.u32 %r6, %r6, %r5;
        st.global.u32 [%d3], %r6;
        """
    )
    assert run.out.tolist() == [2 * t + 1111 for t in range(32)]


def test_labels_belong_to_their_scope():
    wait = "{ .reg .pred p; L: add.u32 %r5, %r5, 1; setp.lt.u32 p, %r5, LIMIT; @p bra L; bra DONE;"
    wait += " add.u32 %r5, %r5, 1000; DONE: }"
    text = "mov.u32 %r5, 0;" + "".join(wait.replace("LIMIT", str(n)) for n in (5, 9, 20))
    text += "{ bra OUT; } add.u32 %r5, %r5, 1000; OUT: st.global.u32 [%d3], %r5;"
    assert (Run(text).out == 20).all()


@pytest.mark.parametrize(
    "text, value",
    [
        ("mov.u32 %r5, 0xFFU;", 255),
        ("mov.u32 %r5, -3;", 2**32 - 3),
        ("mov.b32 %r5, 0f40490FDB;", 0x40490FDB),
        ("mov.u32 %r5, WARP_SZ;", 32),
        ("mov.b32 %r5, {1, 2};", 0x20001),
        ("{.reg.b16 low; mov.u16 low, 7; cvt.u32.u16 %r5, low;}", 7),
        ("mov.u32 %r5, 1; mov.b32 {_, %h1}, 0x50006; cvt.u32.u16 %r5, %h1;", 5),
        ("mov.u64 %d5, p; ", None),
    ],
)
def test_operands(text, value):
    if value is None:
        with pytest.raises(TwofourError, match="undeclared variable p"):
            Run(text)
    else:
        assert (Run(text + "st.global.u32 [%d3], %r5;").out == value).all()


@pytest.mark.parametrize(
    "body, message",
    [
        ("frob.u32 %r5, %r0;", "unsupported instruction frob.u32"),
        ("add.s32.sat %r5, %r0, %r0, %r1;", "expected 3 operands"),
        ("add.rn.u32 %r5, %r0, %r0;", "unsupported modifier .rn"),
        ("add.u33 %r5, %r0, %r0;", "expected .u16 or"),
        ("ld.global.frob.u32 %r5, [%d2];", "unsupported modifier .frob"),
        ("ld.global.u32 %d5, [%d2], 3;", "expected 2 operands"),
        ("add.u32 %d5, %r0, %r0;", "expected a .u32 operand, got %d5 of type .b64"),
        ("add.u32 %r5, %nothing, %r0;", "undeclared register %nothing"),
        ("add.u32 %r5, %r0, lost;", "undeclared variable lost"),
        ("bra NOWHERE;", "expected a label, got NOWHERE"),
        ("bra %r0;", "expected a label, got %r0"),
        ("call f, ();", "unsupported instruction call"),
        ("mov.u32 %r5, [%d0;", "expected an address"),
        ("ld.global.u32 %r5, [1e400];", "expected an address"),
        ("ld.global.u32 %r5, [%d0+1.5];", "expected an address"),
        ("mov.u64 %d5, 18446744073709551616;", "expected an operand"),
        ("selp.u32 %r5, 1, 2, !%tid.x;", "expected a predicate register, got %tid.x"),
        ("ld.global.u32 %r5, [%d0, {1, 2}];", "unexpected coordinates"),
        ("mov.b32 %r5, {};", "expected a list of operands"),
        ("add.u32 %r5, %r0, 1.5;", "expected a literal of type .u32"),
        ("setp.ltu.u32 %p0, %r0, 1;", "unsupported comparison .ltu"),
        ("wgmma.fence.sync.aligned;", "unsupported instruction wgmma.fence"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.im2col [%r0], [%d0];",
            "expected .mbarrier::complete_tx::bytes",
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4"
            ".mbarrier::complete_tx::bytes [%r0], [%d0, {0, 0}], [%r1];",
            "unsupported modifier .tile::gather4",
        ),
        ("cp.async.cg.shared.global [%r5], [%d0], 8;", "copy size"),
        ("cp.async.ca.shared.global [%r5], [%d0], 4.0;", "copy size"),
        ("cp.async.ca.shared.global [%r5], [%d0];", "expected 3 or 4 or 5 operands"),
        ("cp.async.cg.shared.global [%r5], [%d0], 16.0;", "copy size"),
        ("cp.async.wait_group 1.5;", "expected a constant number of groups"),
        ("cp.async.bulk.wait_group 1.5;", "expected a constant number of groups"),
        ("lop3.b32 %r5, %r0, %r1, %r2, 0.5;", "expected a constant below 256"),
        ("addc.u32;", "expected 3 operands"),
        ("add.cc.u32;", "expected 3 operands"),
        ("add.sat.u32 %r5, %r0, %r1;", "unsupported modifier .sat"),
        ("mad.lo.sat.s32 %r5, %r0, %r1, %r2;", "unsupported modifier .sat"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
            " [%r0], [%d0], [%r1];",
            "expected a tensor map and coordinates in cp.async.bulk.tensor",
        ),
        ("ld.param.u32 %r5, [p0+8];", "inside of parameter p0"),
        ("ld.param.u32 %r5, [nothing];", "undeclared parameter nothing"),
        ("membar.cta.frob;", "unsupported modifier .frob"),
        ("bar.sync 16;", "expected a barrier below 16"),
        ("L: L: ret;", "label L is defined twice"),
    ],
)
def test_what_is_not_understood_is_an_error_at_its_place(body, message):
    with pytest.raises(TwofourError, match=message) as caught:
        parse("\n" + body, shared=16)
    assert caught.value.location.file == "k.ptx"
    lines = parse("\nL:", shared=16).text.splitlines()
    assert caught.value.location.line == lines.index("L:") + 1


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "expected .version and .target"),
        (".version 8.6\n.target sm_80\n.address_size 32\n", "expected .address_size 64"),
        (HEADER + ".func f() { ret; }", "functions are not supported: '.func f"),
        (HEADER + ".visible .func f() { ret; }", "functions are not supported: '.func f"),
        (HEADER + ".frob f() { ret; }", "expected a kernel or a variable, got '.frob f"),
        (HEADER + ".global .align 3 .b8 x[4];", "expected an alignment of a power of two, got 3"),
        (HEADER + ".global .align 0 .b8 x[4];", "expected an alignment of a power of two, got 0"),
        (HEADER + ".entry k() {", "expected '}' at the end of kernel k"),
        (HEADER + ".entry k() { ret; } .entry k() { ret; }", "kernel k is defined twice"),
        (HEADER + ".entry k(.param .frob x) { ret; }", "expected a parameter"),
        (HEADER + ".entry k() .frob 3 { ret; }", "unsupported kernel directive .frob"),
        (HEADER + ".global .u32 x[2] = {y, 2};", "expected a constant, got 'y'"),
        (HEADER + ".global .u32 x[];", "expected an extent"),
        (HEADER + ".global .b8 x[99999999999];", "expected a variable of at most 1073741824 bytes"),
    ],
)
def test_malformed_modules(text, message):
    with pytest.raises(TwofourError, match=message):
        sim.parse(text, "bad.ptx")
