# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divisions of integers, at both ends of every type; those without a quotient end no process."""

import itertools

import numpy as np
import pytest

import twofour

PROGRAM = """
!f = !stencil.field<#stencil.bounds<[0], [COUNT]>, TYPE>
!t = !stencil.temp<1 : i64, TYPE>
func.func @divide(%u: !f, %v: !f, %o: !f) {
  %a = "stencil.load"(%u) : (!f) -> !t
  %b = "stencil.load"(%v) : (!f) -> !t
  %r = "stencil.apply"() ({
    %x = "stencil.access"(%a) {offset = array<i64: 0>} : (!t) -> TYPE
    %y = "stencil.access"(%b) {offset = array<i64: 0>} : (!t) -> TYPE
    %q = arith.DIVISION %x, %y : TYPE
    "stencil.return"(%q) : (TYPE) -> ()
  }) : () -> !t
  "stencil.store"(%r, %o) {bounds = #stencil.bounds<[0], [COUNT]>} : (!t, !f) -> ()
  return
}
"""


def towards_zero(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# Of Python's integers, which have no ends.
DIVISIONS = {
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "ceildivui": lambda a, b: -(-a // b),
    "divsi": towards_zero,
    "divui": towards_zero,
    "remsi": lambda a, b: a - b * towards_zero(a, b),
    "remui": lambda a, b: a % b,
}


@pytest.mark.parametrize("target", ["cpu", "sim:sm_80"])
@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("bits", [8, 32, 64])
def test_divisions(bits, division, target, tmp_path):
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    values = [least, least + 1, -7, -3, -2, -1, 0, 1, 2, 3, 7, most - 1, most]
    pairs = list(itertools.product(values, values))
    u, v = np.array(pairs, f"i{bits // 8}").T.copy()
    words = {"COUNT": str(len(pairs)), "TYPE": f"i{bits}", "DIVISION": division}
    text = PROGRAM
    for word, value in words.items():
        text = text.replace(word, value)
    (tmp_path / "divide.mlir").write_text(text)
    read = (lambda x: x % 2**bits) if division.endswith("ui") else int
    program = twofour.compile(tmp_path / "divide.mlir", target=target)
    for (a, b), got in zip(pairs, program(u, v), strict=True):
        # A processor may make anything of what has no quotient.
        if b and (division.endswith("ui") or (a, b) != (least, -1)):
            assert read(int(got)) == DIVISIONS[division](read(a), read(b))


def test_divisions_of_arguments(tmp_path):
    """Of what is no point of a field, by a number that is 0 and one that leaves the type."""
    text = PROGRAM.replace("%o: !f)", "%o: !f, %k: i32)").replace("COUNT", "5")
    text = text.replace("arith.DIVISION %x, %y", "arith.addi %x, %n").replace("TYPE", "i32")
    text = text.replace("  %r =", "  %n = arith.divsi %least, %k : i32\n  %r =")
    text = text.replace("  %a =", "  %least = arith.constant -2147483648 : i32\n  %a =", 1)
    (tmp_path / "divide.mlir").write_text(text)
    program, zeros = twofour.compile(tmp_path / "divide.mlir"), np.zeros(5, np.int32)
    assert (program(zeros, zeros, scalars=[2]) == -(2**30)).all()
    for divisor in (0, -1):
        assert program(zeros, zeros, scalars=[divisor]).shape == (5,)
