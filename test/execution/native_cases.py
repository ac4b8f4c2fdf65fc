# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over fields that native code runs, and the same kernels called one by one."""

from dataclasses import replace

import numpy as np

from twofour.options import CompileOptions
from twofour.runtime import FieldStepper, Plan
from twofour.runtime.buffer_pool import BufferPool
from twofour.runtime.processor import USUAL_CACHES
from twofour.runtime.rounds import choice as skew_choice
from twofour.runtime.rounds import round_tables
from twofour.runtime.rounds import skewed as skewed_rounds
from twofour.runtime.rounds.actions import footprint
from twofour.runtime.tiles import choice as tile_choice
from twofour.targets.cpu.build import compile_cpu
from twofour.targets.cpu.executable import CpuExecutable


def executable_of(text, folder):
    path = folder / "program.mlir"
    path.write_text(text)
    return CpuExecutable(compile_cpu(str(path), CompileOptions()))


def one_by_one(stepper, boundary):
    """The stepper that calls the same kernels from Python."""
    plan = Plan(tuple(stepper._steps), tuple(stepper._workspaces))
    return FieldStepper(stepper.fields, stepper.rotation, plan.prepare, boundary)


def inputs_of(stepper, seed=1):
    rng = np.random.default_rng(seed)
    return [
        rng.uniform(-1, 1, field.shape).astype(field.element.storage)
        for field in stepper.fields
        if field.loaded
    ]


def assert_same_bits(results, expected):
    assert len(results) == len(expected)
    for one, other in zip(results, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


def fill_new_buffers(monkeypatch):
    """Find other values than those of a call before in buffers that a run does not initialise."""
    lease = BufferPool.lease

    def filled(*arguments):
        found = lease(*arguments)
        np.asarray(found)[...] = 0xFF
        return found

    monkeypatch.setattr(BufferPool, "lease", filled)


def share_small_work(monkeypatch):
    """Take all threads for work of any size."""
    monkeypatch.setattr("twofour.runtime.threads.WAKING_POINTS", 1)
    monkeypatch.setattr(tile_choice, "WAITING_POINTS", 1)


def skew_small_arrays(monkeypatch, rows=24):
    """Take caches for as large as so many rows of all arrays; returns the depths of chains."""
    depths, skew_rounds = [], round_tables.skew_rounds

    def with_small_caches(cycle, buffers, *arguments):
        actions = [action for one in cycle for phase in one for action in phase]
        touches = [touch for one in actions for touch in footprint(one, buffers).touches]
        used = {touch.buffer for touch in touches if buffers[touch.buffer].shape}
        row = sum(buffers[number].strides[0] for number in used)
        *arguments, _ = arguments
        # Those of any machine, so that depths are the same wherever this runs.
        machine = replace(USUAL_CACHES, second=int(rows * row / skew_choice.NEAR_SHARE) + 1)
        skewed = skew_rounds(cycle, buffers, *arguments, machine)
        depths.append(skewed.depth if skewed else 0)
        return skewed

    monkeypatch.setattr(round_tables, "skew_rounds", with_small_caches)
    monkeypatch.setattr(skew_choice, "LEAST_PARTS", 1)
    monkeypatch.setattr(skew_choice, "LEAST_BYTES", 0)
    monkeypatch.setattr(skew_choice, "WORTHWHILE", 9)
    return depths


def cut_planes(monkeypatch, width):
    """Take strips of so many rows wherever planes can be cut; returns how many strips there are."""
    choose, found = skew_choice._of_far_arrays, []

    def in_strips(rounds, candidates, *rest):
        return choose(rounds, [one for one in candidates if one.cutting] or candidates, *rest)

    cut = skewed_rounds.cut

    def counted(*arguments):
        strips = cut(*arguments)
        found.append(len(strips))
        return strips

    monkeypatch.setattr(skew_choice, "WIDTHS", (width,))
    monkeypatch.setattr(skew_choice, "_of_far_arrays", in_strips)
    monkeypatch.setattr(skewed_rounds, "cut", counted)
    return found
