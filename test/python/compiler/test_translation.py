# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that the translator to LLVM IR would end the process over are found before."""

import pytest

from twofour.context import make_context
from twofour.errors import TwofourError
from twofour.mlir import ir
from twofour.targets.translation import check_translated

KERNEL = """
llvm.func @kernel(%x: f32, %name: !llvm.ptr) -> f32 attributes {note = "\\"math.sin\\"(%x)"} {
  %y = llvm.fadd %x, %x : f32
  OP
  llvm.return %y : f32
}
"""


@pytest.mark.parametrize(
    ("op", "dialects", "is_known"),
    [
        ("", (), True),
        ("%z = llvm.fmul %x, %y : f32", (), True),
        ("%z = math.cbrt %x : f32", (), False),
        ("%z = math.cbrt %x : f32", ("nvvm.",), False),
        ("%z = math.cbrt %x : f32", ("math.",), True),
        ("nvvm.barrier", ("nvvm.",), True),
        ("nvvm.barrier", ("arm_sme.intr.", "nvvm."), True),
        ("nvvm.barrier", ("arm_sme.intr.",), False),
        ("nvvm.barrier", ("nv.",), False),
    ],
)
def test_ops_that_have_no_translation(op, dialects, is_known):
    with make_context():
        module = ir.Module.parse(KERNEL.replace("OP", op))
        if is_known:
            check_translated(module, "nobody has", dialects)
            return
        with pytest.raises(TwofourError, match="op expected an op that nobody has code for") as got:
            check_translated(module, "nobody has", dialects)
        assert got.value.location.line == 4
