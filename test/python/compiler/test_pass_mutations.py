# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One fault in each pass: either the verifier refuses what the pass made, or the result is wrong.

Without these, a check that accepts everything would go unnoticed. Each fault is a function of a
pass, replaced; the same check has to pass with the function as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

import pass_checks as checks
import pass_faults as faults
from outer_cases import check_passes
from twofour.codegen.cpu import outer_kernel
from twofour.codegen.gpu import boundary_kernel
from twofour.dialects.nm.transforms import compress, crush, permute_2to4, to_stencil
from twofour.dialects.nm.transforms import to_gpu as nm_to_gpu
from twofour.dialects.nm.transforms import to_vector as nm_to_vector
from twofour.dialects.stencil import chains, linear_form, regions, vector_region
from twofour.dialects.stencil.transforms import (
    block,
    bufferize,
    convert_element_type,
    copy_to_gpu,
    copy_to_kernels,
    fuse_siblings,
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
from twofour.passes import pass_names
from twofour.pipeline import PipelineFailure


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


MUTATIONS = [
    Mutation(
        "stencil-infer-bounds",
        "bounds one too small",
        infer_bounds._Needs,
        "box",
        faults.bounds_too_small,
        checks.check_direct,
        PipelineFailure,
    ),
    Mutation(
        "stencil-extract-weights",
        "lost sign",
        linear_form,
        "_RULES",
        faults.rules_without_sign,
        checks.check_direct,
        AssertionError,
    ),
    Mutation(
        "stencil-fuse-steps",
        "lost term",
        fuse_steps,
        "convolve",
        faults.lost_term,
        checks.check_fused,
        AssertionError,
    ),
    Mutation(
        "stencil-fuse-steps",
        "halo of one step",
        fuse_steps,
        "deep_interior",
        faults.interior_of_one_step,
        checks.check_fused,
        PipelineFailure,
    ),
    Mutation(
        "stencil-convert-element-type",
        "halved weights",
        convert_element_type._Converter,
        "_rounded",
        faults.halved_weights,
        checks.check_single_precision,
        AssertionError,
    ),
    Mutation(
        "stencil-to-scatter",
        "offsets not negated",
        to_scatter,
        "scatter",
        faults.without_sign,
        check_passes,
        PipelineFailure,
    ),
    Mutation(
        "stencil-select-cover",
        "lost line",
        select_cover,
        "cover",
        faults.lost_line,
        check_passes,
        PipelineFailure,
    ),
    Mutation(
        "stencil-block",
        "line in no block",
        block,
        "blocks",
        faults.line_in_no_block,
        check_passes,
        PipelineFailure,
    ),
    Mutation(
        "stencil-schedule-outer",
        "first input row forgotten",
        schedule_outer,
        "schedule",
        faults.first_row_late,
        check_passes,
        PipelineFailure,
    ),
    Mutation(
        "stencil-reorganize",
        "vectors as before",
        reorganize,
        "replace",
        faults.as_before,
        check_passes,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-outer-to-sme",
        "lost product",
        outer_to_sme,
        "OuterKernel",
        faults.lost_product,
        checks.check_sme,
        AssertionError,
    ),
    Mutation(
        "convert-nm-to-stencil",
        "lost constant",
        to_stencil,
        "linear_terms",
        faults.lost_constant,
        checks.check_operator,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-to-nm",
        "swapped offsets",
        to_nm,
        "flatten",
        faults.swapped_offsets,
        checks.check_sparse,
        PipelineFailure,
    ),
    Mutation(
        "nm-crush",
        "wrong column",
        crush,
        "crush",
        faults.wrong_column,
        checks.check_sparse,
        PipelineFailure,
    ),
    Mutation(
        "nm-permute-2to4",
        "permuted columns without their offsets",
        permute_2to4,
        "apply_permutation",
        faults.columns_alone,
        checks.check_sparse,
        PipelineFailure,
    ),
    Mutation(
        "nm-compress",
        "flipped metadata bit",
        compress,
        "compress",
        faults.flipped_bit,
        checks.check_sparse,
        PipelineFailure,
    ),
    Mutation(
        "nm-compress",
        "lost value",
        compress,
        "compress",
        faults.lost_value,
        checks.check_sparse,
        PipelineFailure,
    ),
    Mutation(
        "convert-nm-to-vector",
        "columns in the wrong order",
        nm_to_vector,
        "PatchKernel",
        faults.reversed_matrix,
        checks.check_sparse,
        AssertionError,
    ),
    Mutation(
        "convert-nm-to-gpu",
        "offset table of other columns",
        nm_to_gpu,
        "lay_out_block",
        faults.rotated_inputs,
        checks.check_matrix,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-to-gpu",
        "accesses without their offset",
        regions,
        "shifted",
        faults.no_offset,
        checks.check_points,
        AssertionError,
    ),
    Mutation(
        "stencil-fuse-siblings",
        "accesses at the point only",
        fuse_siblings,
        "_access",
        faults.access_at_the_point,
        checks.check_siblings,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-to-vector",
        "weights in the wrong order",
        chains,
        "Terms",
        faults.reversed_weights,
        checks.check_direct,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-apply-to-vector",
        "accesses without their offset",
        vector_region,
        "shifted",
        faults.no_offset,
        checks.check_general,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-to-loops",
        "accesses without their offset",
        regions,
        "shifted",
        faults.no_offset,
        checks.check_loops,
        AssertionError,
    ),
    Mutation(
        "stencil-bufferize",
        "stores that forget the halo",
        bufferize,
        "subview",
        faults.no_halo,
        checks.check_general,
        AssertionError,
    ),
    Mutation(
        "convert-copy-to-kernels",
        "copies in the other direction",
        copy_to_kernels,
        "_call",
        faults.target_to_source,
        checks.check_copies,
        AssertionError,
    ),
    Mutation(
        "convert-copy-to-gpu",
        "copies in the other direction",
        copy_to_gpu,
        "launch",
        faults.other_direction,
        checks.check_copies_by_blocks,
        AssertionError,
    ),
    Mutation(
        "convert-stencil-outer-to-vector",
        "weights of the wrong rows",
        outer_kernel,
        "_window",
        faults.rows_reversed,
        checks.check_outer,
        AssertionError,
    ),
    Mutation(
        "stencil-add-boundary-kernels",
        "images that are not folded back",
        boundary_kernel,
        "_Emitter",
        faults.unfolded,
        checks.check_halos,
        AssertionError,
    ),
    Mutation(
        "stencil-time-tile",
        "steps that are not found",
        time_tile,
        "linear_step",
        faults.nothing_found,
        checks.check_time_tile,
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
