# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One fault in each pass: either the verifier refuses what the pass made, or the result is wrong.

Without these, a check that accepts everything would go unnoticed. Each fault is a function of a
pass, replaced; the same check has to pass with the function as it is.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import twofour
from outer_cases import check_passes
from twofour.analysis import load_program, run_passes
from twofour.compiler import compile_module
from twofour.dialects.nm.transforms import compress, crush, permute_2to4
from twofour.dialects.nm.transforms import to_gpu as nm_to_gpu
from twofour.dialects.nm.transforms import to_vector as nm_to_vector
from twofour.dialects.stencil import chains, linear_form, regions
from twofour.dialects.stencil.box import Box
from twofour.dialects.stencil.transforms import (
    block,
    bufferize,
    convert_element_type,
    copy_to_gpu,
    fuse_steps,
    infer_bounds,
    outer_to_sme,
    reorganize,
    schedule_outer,
    select_cover,
    time_tile,
    to_nm,
    to_scatter,
)
from twofour.dialects.stencil.transforms.extract_weights import ExtractWeightsPass
from twofour.dialects.stencil.transforms.infer_bounds import InferBoundsPass
from twofour.errors import TwofourError
from twofour.layout.patch import PatchOperator
from twofour.options import CompileOptions
from twofour.passes import pass_names
from twofour.pipeline import PipelineFailure
from twofour.targets.cpu import outer_kernel
from twofour.targets.gpu import boundary_kernel
from twofour.targets.sme.build import compile_sme
from twofour.targets.sme.options import SmeOptions

LINEAR = """
!field = !stencil.field<[-1,20]x[-1,39]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @step(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %half = arith.constant 0.5 : f64
    %quarter = arith.constant 0.25 : f64
    %eighth = arith.constant 0.125 : f64
    %n = stencil.access %a[-1, 0] : !temp
    %c = stencil.access %a[0, 0] : !temp
    %e = stencil.access %a[0, 2] : !temp
    %s = stencil.access %a[1, -1] : !temp
    %0 = arith.mulf %c, %half : f64
    %1 = math.fma %e, %quarter, %0 : f64
    %2 = math.fma %s, %eighth, %1 : f64
    %3 = arith.subf %2, %n : f64
    %4 = arith.addf %3, %half : f64
    stencil.return %4 : f64
  }
  stencil.store %r to %v(<[0, 0], [19, 37]>) : !temp to !field
  return
}
"""

# Not linear, so that it takes the general path.
GENERAL = """
!field = !stencil.field<[-1,33]xf64>
!temp = !stencil.temp<?xf64>
func.func @product(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[-1] : !temp
    %h = stencil.access %a[1] : !temp
    %p = arith.mulf %l, %h : f64
    stencil.return %p : f64
  }
  stencil.store %r to %v(<[0], [32]>) : !temp to !field
  return
}
"""


def linear_step(u: np.ndarray) -> np.ndarray:
    """One step of LINEAR; the halo keeps its values."""
    v = u.copy()
    v[1:20, 1:38] = (
        -u[:19, 1:38] + 0.5 * u[1:20, 1:38] + 0.25 * u[1:20, 3:40] + 0.125 * u[2:21, :37] + 0.5
    )
    return v


def check_linear(path, steps: int = 1, tolerance: float = 1e-13, **options) -> None:
    path.write_text(LINEAR)
    step = twofour.compile(str(path), **options)
    dtype = np.float32 if options.get("dtype") == "f32" else np.float64
    u = np.random.default_rng(0).random((21, 40)).astype(dtype)
    expected = u.astype(np.float64)
    for _ in range(steps):
        expected = linear_step(expected)
    got = step(u, steps=steps)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def check_direct(path) -> None:
    check_linear(path, schedule="direct")


def check_sparse(path) -> None:
    check_linear(path, schedule="sparse")


def check_outer(path) -> None:
    check_linear(path, schedule="outer")


def check_fused(path) -> None:
    check_linear(path, steps=6, tolerance=1e-11, fuse_steps=3)


def check_single_precision(path) -> None:
    check_linear(path, tolerance=1e-5, dtype="f32")


def check_sme(path) -> None:
    """Skipped where there is no emulator."""
    # The tests of Arm code have a folder of their own.
    sys.path.append(str(Path(__file__).parents[1] / "execution" / "sme"))
    from arm_machine import Program, Sweep, missing_tools

    if missing := missing_tools():
        pytest.skip(f"expected {', '.join(missing)} on the path")
    path.write_text(LINEAR)
    compiled = compile_sme(str(path), SmeOptions("parallel"))
    code, header = path.with_suffix(".o"), path.with_suffix(".h")
    code.write_bytes(compiled.data)
    header.write_text(compiled.header)
    sweep = Sweep("step_rows", "f64", before=(1, 1), after=(1, 2))
    u = np.random.default_rng(0).random((21, 40))
    got = Program(path.parent, sweep, header, [code]).run(u, vector_bits=128)
    np.testing.assert_allclose(got, linear_step(u)[1:20, 1:38], rtol=1e-13, atol=1e-13)


def check_matrix(path) -> None:
    check_linear(path, schedule="dense", target="sim:sm_90")


def check_general(path, **options) -> None:
    path.write_text(GENERAL)
    u = np.random.default_rng(0).random(34)
    got = twofour.compile(str(path), **options)(u)
    np.testing.assert_allclose(got[1:33], u[:32] * u[2:], rtol=1e-13)


def check_points(path) -> None:
    check_general(path, target="sim:sm_90")


def check_copies(path) -> None:
    """A field in place: its old values are read from a copy, and the result is copied back."""
    path.write_text(GENERAL.replace("to %v", "to %u"))
    u = np.random.default_rng(0).random(34)
    expected = u.copy()
    expected[1:-1] = u[:-2] * u[2:]
    got = twofour.compile(str(path), target="sim:sm_90")(u)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def check_halos(path) -> None:
    path.write_text(LINEAR)
    u = np.random.default_rng(0).random((21, 40))
    expected = twofour.compile(path, boundary="reflect,periodic")(u, steps=2)
    got = twofour.compile(path, boundary="reflect,periodic", target="sim:sm_90")(u, steps=2)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def check_time_tile(path) -> None:
    path.write_text(LINEAR)
    module, filename = load_program(str(path), CompileOptions())
    passes = [InferBoundsPass(), ExtractWeightsPass(), time_tile.TimeTilePass(3, (7, 11))]
    with module.context:
        run_passes(module, passes, filename)
    assert compile_module(module, filename, CompileOptions()).time_tile == (3, (7, 11))


@dataclass(frozen=True)
class Mutation:
    """A fault: `make(original)` takes the place of `owner.name` while `check` runs."""

    pass_name: str
    fault: str
    owner: object
    name: str
    make: Callable
    check: Callable
    caught_by: type[Exception]

    @property
    def id(self) -> str:
        return f"{self.pass_name}: {self.fault}"


def bounds_too_small(original):
    def box(self, temp):
        whole = original(self, temp)
        return Box(whole.lower, (*whole.upper[:-1], whole.upper[-1] - 1)) if whole else whole

    return box


def rules_without_sign(original):
    return {**original, "arith.subf": original["arith.addf"]}


def lost_term(original):
    def convolve(offsets, weights, steps):
        found = original(offsets, weights, steps)
        found.pop(max(found))
        return found

    return convolve


def interior_of_one_step(original):
    return lambda box, offsets, steps: original(box, offsets, 1)


def halved_weights(original):
    return lambda self, weights: original(self, [weight / 2 for weight in weights])


def changed(original, change: Callable):
    """The function, with a change made to the matrix and the input offsets that it returns."""

    def mutated(*arguments):
        operator = original(*arguments)
        matrix, inputs = operator.matrix.copy(), operator.input_offsets.copy()
        change(matrix, inputs)
        return PatchOperator(matrix, operator.output_offsets, inputs, operator.tile)

    return mutated


def swapped_offsets(original):
    def change(matrix, inputs):
        inputs[[0, 1]] = inputs[[1, 0]]

    return changed(original, change)


def wrong_column(original):
    def change(matrix, inputs):
        matrix[-1] = np.roll(matrix[-1], 1)

    return changed(original, change)


def columns_alone(original):
    """The columns are permuted and the offsets are not."""

    def apply_permutation(operator, permutation):
        permuted = original(operator, permutation)
        order = np.array(permutation.order)
        inputs = permuted.input_offsets.copy()
        places = np.flatnonzero(order >= 0)
        inputs[places] = operator.input_offsets[np.sort(order[places])]
        return PatchOperator(permuted.matrix, permuted.output_offsets, inputs, permuted.tile)

    return apply_permutation


def flipped_bit(original):
    def flipped(matrix):
        values, metadata = original(matrix)
        metadata[0, 0] ^= 1
        return values, metadata

    return flipped


def lost_value(original):
    def without(matrix):
        values, metadata = original(matrix)
        values[-1, np.flatnonzero(values[-1])[-1]] = 0
        return values, metadata

    return without


def reversed_matrix(original):
    def kernel(name, operator, *arguments, **options):
        matrix = np.ascontiguousarray(operator.matrix[:, ::-1])
        return original(name, replace(operator, matrix=matrix), *arguments, **options)

    return kernel


def rotated_inputs(original):
    def lay_out(*arguments, **options):
        layout = original(*arguments, **options)
        inputs = np.roll(layout.operator.input_offsets, 1, axis=0)
        return replace(layout, operator=replace(layout.operator, input_offsets=inputs))

    return lay_out


def reversed_weights(original):
    return lambda offsets, weights: original(offsets, weights[::-1])


def no_offset(original):
    return lambda constants, bases, shift: original(constants, bases, [0] * len(shift))


def no_halo(original):
    return lambda source, offsets, sizes: original(source, [0] * len(offsets), sizes)


def other_direction(original):
    def launch(shape):
        call = original(shape)
        return lambda kernel, views, domain: call(kernel, views[::-1], domain)

    return launch


def without_sign(original):
    return lambda offsets, weights: dict(sorted(zip(offsets, weights, strict=True)))


def lost_line(original):
    return lambda terms, option: original(terms, option)[:-1]


def line_in_no_block(original):
    def blocks(lines, unroll):
        first, *others = original(lines, unroll)
        return (replace(first, lines=first.lines[1:]), *others)

    return blocks


def first_row_late(original):
    def schedule(lines, chosen, **options):
        plan = original(lines, chosen, **options)
        sweep = plan.sweeps[0]
        start = replace(sweep.rows[0].start, constant=sweep.rows[0].start.constant + 1)
        rows = (replace(sweep.rows[0], start=start), *sweep.rows[1:])
        return replace(plan, sweeps=(replace(sweep, rows=rows), *plan.sweeps[1:]))

    return schedule


def unfolded(original):
    class Emitter(original):
        def _folded(self, from_lower, axis):
            return from_lower

    return Emitter


def rows_reversed(original):
    def window(line, p, count):
        return [(count - 1 - row, weight) for row, weight in original(line, p, count)]

    return window


def nothing_found(original):
    return lambda function: None


def as_before(original):
    return lambda plan, by: plan


def lost_product(original):
    def kernel(name, plan, *others):
        sweep = plan.sweeps[0]
        vector, *vectors = sweep.rows[0].vectors
        vector = replace(vector, products=vector.products[1:])
        rows = (replace(sweep.rows[0], vectors=(vector, *vectors)), *sweep.rows[1:])
        plan = replace(plan, sweeps=(replace(sweep, rows=rows), *plan.sweeps[1:]))
        return original(name, plan, *others)

    return kernel


MUTATIONS = [
    Mutation(
        "stencil-infer-bounds",
        "bounds one too small",
        infer_bounds._Needs,
        "box",
        bounds_too_small,
        check_direct,
        PipelineFailure,
    ),
    Mutation(
        "stencil-extract-weights",
        "lost sign",
        linear_form,
        "_RULES",
        rules_without_sign,
        check_direct,
        AssertionError,
    ),
    Mutation(
        "stencil-fuse-steps",
        "lost term",
        fuse_steps,
        "convolve",
        lost_term,
        check_fused,
        AssertionError,
    ),
    Mutation(
        "stencil-fuse-steps",
        "halo of one step",
        fuse_steps,
        "deep_interior",
        interior_of_one_step,
        check_fused,
        PipelineFailure,
    ),
    Mutation(
        "stencil-convert-element-type",
        "halved weights",
        convert_element_type._Converter,
        "_rounded",
        halved_weights,
        check_single_precision,
        AssertionError,
    ),
    Mutation(
        "stencil-to-scatter",
        "offsets not negated",
        to_scatter,
        "scatter",
        without_sign,
        check_passes,
        PipelineFailure,
    ),
    Mutation(
        "stencil-select-cover",
        "lost line",
        select_cover,
        "cover",
        lost_line,
        check_passes,
        PipelineFailure,
    ),
    Mutation(
        "stencil-block",
        "line in no block",
        block,
        "blocks",
        line_in_no_block,
        check_passes,
        PipelineFailure,
    ),
    Mutation(
        "stencil-schedule-outer",
        "first input row forgotten",
        schedule_outer,
        "schedule",
        first_row_late,
        check_passes,
        PipelineFailure,
    ),
    Mutation(
        "stencil-reorganize",
        "vectors as before",
        reorganize,
        "replace",
        as_before,
        check_passes,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-outer-to-sme",
        "lost product",
        outer_to_sme,
        "OuterKernel",
        lost_product,
        check_sme,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-to-nm",
        "swapped offsets",
        to_nm,
        "flatten",
        swapped_offsets,
        check_sparse,
        PipelineFailure,
    ),
    Mutation(
        "nm-crush", "wrong column", crush, "crush", wrong_column, check_sparse, PipelineFailure
    ),
    Mutation(
        "nm-permute-2to4",
        "permuted columns without their offsets",
        permute_2to4,
        "apply_permutation",
        columns_alone,
        check_sparse,
        PipelineFailure,
    ),
    Mutation(
        "nm-compress",
        "flipped metadata bit",
        compress,
        "compress",
        flipped_bit,
        check_sparse,
        PipelineFailure,
    ),
    Mutation(
        "nm-compress", "lost value", compress, "compress", lost_value, check_sparse, PipelineFailure
    ),
    Mutation(
        "convert-nm-to-vector",
        "columns in the wrong order",
        nm_to_vector,
        "PatchKernel",
        reversed_matrix,
        check_sparse,
        AssertionError,
    ),
    Mutation(
        "convert-nm-to-gpu",
        "offset table of other columns",
        nm_to_gpu,
        "lay_out_block",
        rotated_inputs,
        check_matrix,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-to-gpu",
        "accesses without their offset",
        regions,
        "shifted",
        no_offset,
        check_points,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-to-vector",
        "weights in the wrong order",
        chains,
        "Terms",
        reversed_weights,
        check_direct,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-to-loops",
        "accesses without their offset",
        regions,
        "shifted",
        no_offset,
        check_general,
        AssertionError,
    ),
    Mutation(
        "stencil-bufferize",
        "stores that forget the halo",
        bufferize,
        "subview",
        no_halo,
        check_general,
        AssertionError,
    ),
    Mutation(
        "convert-copy-to-gpu",
        "copies in the other direction",
        copy_to_gpu,
        "launch",
        other_direction,
        check_copies,
        TwofourError,
    ),
    Mutation(
        "convert-stencil-outer-to-vector",
        "weights of the wrong rows",
        outer_kernel,
        "_window",
        rows_reversed,
        check_outer,
        AssertionError,
    ),
    Mutation(
        "stencil-add-boundary-kernels",
        "images that are not folded back",
        boundary_kernel,
        "_Emitter",
        unfolded,
        check_halos,
        AssertionError,
    ),
    Mutation(
        "stencil-time-tile",
        "steps that are not found",
        time_tile,
        "linear_step",
        nothing_found,
        check_time_tile,
        AssertionError,
    ),
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.id)
def test_mutation_is_caught(mutation, monkeypatch, tmp_path):
    path = tmp_path / "program.mlir"
    mutation.check(path)
    original = getattr(mutation.owner, mutation.name)
    monkeypatch.setattr(mutation.owner, mutation.name, mutation.make(original))
    with pytest.raises(mutation.caught_by):
        mutation.check(path)


def test_every_pass_has_a_mutation():
    assert {mutation.pass_name for mutation in MUTATIONS} == set(pass_names())
