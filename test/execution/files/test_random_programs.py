# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs that load, sum up and store fields in any order, compared with NumPy."""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twofour
from native_cases import share_small_work, skew_small_arrays
from random_programs import TARGETS, assert_stores, programs, run, text_of
from twofour.dialects.stencil import large_arrays


@pytest.mark.parametrize("target, threads, skews", TARGETS)
def test_what_a_program_stores(tmp_path, monkeypatch, target, threads, skews):
    share_small_work(monkeypatch)
    depths = skew_small_arrays(monkeypatch, rows=40) if skews else []
    path = tmp_path / "program.mlir"

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.tuples(programs(), st.booleans()))
    def check(program):
        (fields, ops), large = program
        monkeypatch.setattr(large_arrays, "past_caches", lambda *_: large)
        path.write_text(text_of(fields, ops))
        step = twofour.compile(str(path), target=target, threads=threads)
        # The second call finds what the first one left in buffers.
        for seed in range(2):
            assert all(assert_stores(step, fields, partial(run, ops), seed))

    check()
    assert any(depths) == skews
