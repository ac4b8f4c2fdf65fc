# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The block of outputs that a kernel of a region computes at once."""

import pytest

from twofour.opt.main import main

TEXT = """
!temp = !stencil.temp<#stencil.bounds<[0, 0], [9, 72]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0, 0], [8, 72]>, f64>
func.func @powers(%a: !temp) -> !inner {{
  %r = "stencil.apply"() ({{
    %x = "stencil.access"(%a) {{offset = array<i64: 0, 0>}} : (!temp) -> f64
    %0 = "stencil.access"(%a) {{offset = array<i64: 1, 0>}} : (!temp) -> f64
    {products}
    "stencil.return"(%{count}) : (f64) -> ()
  }}) : () -> !inner
  return %r : !inner
}}
"""


def stores(products, machine, tmp_path, capsys):
    """The vectors that a block stores, of a region with so many products."""
    path = tmp_path / "powers.mlir"
    lines = (f"%{n + 1} = arith.mulf %{n}, %x : f64" for n in range(products))
    path.write_text(TEXT.format(products="\n".join(lines), count=products))
    assert main([str(path), f"--convert-stencil-apply-to-vector=machine={machine}"]) == 0
    _, first, further = capsys.readouterr().out.partition("vector.store")
    block, _, _ = further.partition("}")
    return (first + block).count("vector.store")


# Two rows of one vector, or of two on cores of Intel; one row where a block would be too long.
@pytest.mark.parametrize(
    "products, vectors, of_intel",
    [(20, 2, 4), (150, 2, 4), (200, 2, 2), (330, 2, 2), (400, 1, 1)],
)
def test_long_regions_have_small_blocks(products, vectors, of_intel, tmp_path, capsys):
    assert stores(products, "avx512", tmp_path, capsys) == vectors
    assert stores(products, "sapphirerapids", tmp_path, capsys) == of_intel
