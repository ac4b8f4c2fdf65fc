# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divisions of integers that round up or down, at both ends of every type."""

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
# Of Python's integers, which have no ends.
DIVISIONS = {
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "ceildivui": lambda a, b: -(-a // b),
}


@pytest.mark.parametrize("target", ["cpu", "sim:sm_80"])
@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("bits", [8, 32, 64])
def test_divisions(bits, division, target, tmp_path):
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    values = [least, least + 1, -7, -3, -2, -1, 0, 1, 2, 3, 7, most - 1, most]
    # What has no quotient is left to the processor.
    pairs = [(a, b) for a, b in itertools.product(values, values) if b and (a, b) != (least, -1)]
    u, v = np.array(pairs, f"i{bits // 8}").T.copy()
    words = {"COUNT": str(len(pairs)), "TYPE": f"i{bits}", "DIVISION": division}
    text = PROGRAM
    for word, value in words.items():
        text = text.replace(word, value)
    (tmp_path / "divide.mlir").write_text(text)
    read = (lambda x: x % 2**bits) if division.endswith("ui") else int
    expected = [DIVISIONS[division](read(a), read(b)) for a, b in pairs]
    program = twofour.compile(tmp_path / "divide.mlir", target=target)
    assert [read(int(q)) for q in program(u, v)] == expected
