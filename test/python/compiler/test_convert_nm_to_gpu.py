# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operator each kernel multiplies."""

import re
from unittest.mock import patch

import pytest

from twofour.analysis import layout_passes, run_passes
from twofour.context import make_context
from twofour.dialects.nm.transforms.to_gpu import ConvertNmToGpuPass
from twofour.errors import TwofourError
from twofour.kernels import Kernel
from twofour.mlir import ir
from twofour.options import CompileOptions
from twofour.targets.gpu import build
from twofour.targets.gpu.candidates import Way

SWEEP = """
    %{to} = "stencil.weighted_sum"(%{source})
      {{offsets = {offsets}, weights = array<f64: {weights}>}} : ({source_type}) -> {type}
"""
TYPES = [f"!stencil.temp<#stencil.bounds<[{-n}], [{1000 + n}]>, f16>" for n in range(3)]
FIRST = {"offsets": "[[-1], [0], [1]]", "weights": "0.25, 0.5, 0.25"}
SECOND = {"offsets": "[[-1], [0]]", "weights": "-1.0, 1.0"}


def tables(sweeps):
    """The tables of A of a function's kernels."""
    body = ""
    for number, sweep in enumerate(sweeps):
        source, to = TYPES[len(sweeps) - number], TYPES[len(sweeps) - number - 1]
        body += SWEEP.format(
            source=f"t{number}", to=f"t{number + 1}", source_type=source, type=to, **sweep
        )
    text = (
        f"func.func @f(%t0: {TYPES[len(sweeps)]}) -> {TYPES[0]} {{{body}"
        f"return %t{len(sweeps)} : {TYPES[0]} }}"
    )
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_passes(module, [*layout_passes(), ConvertNmToGpuPass()], "f.mlir")
        return re.findall(r"kernel\d+_values : .*?= (dense<.*?>)", str(module))


def test_every_sweep_of_a_function_has_its_own_operator():
    first, second = tables([FIRST]), tables([SECOND])
    assert first != second
    assert sorted(tables([FIRST, SECOND])) == sorted(first + second)


def test_levels_of_a_step_whose_small_weights_vanish_are_refused():
    kernel = Kernel("k", ((0,), (1,)), (1.0, 2.0**-24))
    options = CompileOptions("sim:sm_90", "stream", "f16", fuse_steps=7)
    with patch.object(build, "best_way", lambda *_: Way(levels=True)):
        with pytest.raises(TwofourError, match=r"expected a reach of .*7,.* for 7 levels"):
            build.compile_gpu(kernel, options)
    automatic = CompileOptions("sim:sm_90", "auto", "f16", fuse_steps=7)
    assert build.compile_gpu(kernel, automatic).schedule == "simt"
