# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles, blocks and stages that the search would not choose give the same right results."""

import re

import numpy as np
import pytest

import kernel_cases as cases
import reference
from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu.build import compile_gpu
from twofour.tuned.choice import Choice

CASES = [
    # Rows of A that are no multiple of a fragment, tiles that are no powers of two.
    ("heat2d_ftcs", "f16", "sparse", Choice(tile=(3, 4)), (29, 100)),
    ("heat2d_ftcs", "f16", "sparse", Choice(tile=(5, 5)), (29, 170)),
    ("heat2d_ftcs", "tf32", "dense", Choice(tile=(1, 3)), (9, 70)),
    ("heat2d_ftcs", "f64", "dense", Choice(tile=(3, 3)), (29, 70)),
    ("laplacian1d_o8", "bf16", "sparse", Choice(tile=(24,)), (5001,)),
    ("heat3d_ftcs", "f16", "sparse", Choice(tile=(2, 1, 6)), (5, 4, 99)),
    # Two blocks of rows share the inputs; a tile along the slow axis only.
    ("paper_box2d49p", "f16", "sparse", Choice(tile=(4, 8)), (40, 130)),
    ("heat2d_ftcs", "f16", "sparse", Choice(tile=(16, 1)), (40, 130)),
    # Blocks and stages.
    ("heat2d_ftcs", "f16", "sparse", Choice(block=(4, 32)), (21, 70)),
    ("heat2d_ftcs", "f16", "sparse", Choice(block=(8, 64), stages=1), (43, 150)),
    ("heat2d_ftcs", "f16", "sparse", Choice(block=(8, 64), stages=3), (143, 150)),
    ("heat2d_ftcs", "f16", "dense", Choice(block=(4, 64), stages=5), (143, 70)),
    ("heat1d_ftcs", "f32", "sparse", Choice(block=(512,), stages=4), (20011,)),
]


@pytest.mark.parametrize("name, arithmetic, schedule, choice, shape", CASES)
def test_choices_give_right_results(name, arithmetic, schedule, choice, shape):
    kernel = cases.KERNELS[name]
    boundary = ("periodic",) * kernel.rank
    storage = "f32" if arithmetic == "tf32" else arithmetic
    options = CompileOptions("sim:sm_90", schedule, arithmetic)
    compiled = compile_gpu(kernel, options, choice=choice)
    bundle = compiled.bundle
    values = cases.random_values(5, shape, storage)
    got = from_bundle(bundle, "sim:sm_90")(cases.stored(values, storage), 2, boundary=boundary)
    states = reference.run(values, kernel.offsets, kernel.weights, boundary, 2)
    sums = cases.absolute_sums(states, kernel, boundary)
    bounds = cases.error_bounds(states, sums, arithmetic, kernel, boundary, matrix=True)
    assert cases.within(got, states[-1], bounds[-1])
    spec = bundle.kernels[bundle.program.single]
    if choice.block is not None:
        assert np.prod(spec.tile) == np.prod(choice.block)
    if choice.tile is not None and schedule == "sparse":
        assert compiled.layouts[0].tile == choice.tile
    if choice.tile is not None:
        assert f"tile={','.join(map(str, choice.tile))}" in bundle.manifest["pipeline"]
    if choice.stages is not None:
        assert len(re.findall(r"mbarrier\.init", bundle.ptx)) == choice.stages or re.search(
            rf"cp\.async\.wait_group \t?{choice.stages - 1};", bundle.ptx
        )


@pytest.mark.parametrize(
    "choice, message",
    [
        (Choice(tile=(4,)), "expected a tile of 2 positive extents"),
        (Choice(block=(16, 100)), "expected a block of multiples of"),
        (Choice(block=(512, 512)), "bytes of shared memory"),
        (Choice(stages=0), "expected 1 to 12 stages"),
        (Choice(block=(16, 512), stages=8), "bytes of shared memory"),
    ],
)
def test_choices_that_do_not_fit_are_refused(choice, message):
    options = CompileOptions("sim:sm_90", "sparse", "f16")
    with pytest.raises(TwofourError, match=message):
        compile_gpu(cases.KERNELS["heat2d_ftcs"], options, choice=choice)


@pytest.mark.parametrize(
    "choice, message",
    [
        (Choice(tile=(4,)), "expected a tile of 2 positive extents"),
        (Choice(tile=(4, 4)), r"expected a tile of \[1, 16\]"),
        (Choice(block=(16, 100)), "expected a block of 1x512 outputs"),
    ],
)
def test_auto_gives_way_to_plain_threads_for_what_cannot_be_taken_only(choice, message):
    options = CompileOptions("sim:sm_90", "auto", "f16")
    with pytest.raises(TwofourError, match=message):
        compile_gpu(cases.KERNELS["lbm_d2q9_diffusion"], options, choice=choice)
