# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the bundles that are measured on a GPU, and writes the plan."""

import os
from collections.abc import Sequence

from twofour.bench.cube_programs import CUBE_EXAMPLES
from twofour.bench.field_example import FieldExample
from twofour.bench.measured.baselines import BASELINES, COPY, PLAIN
from twofour.bench.measured.measurements import check_unmeasured
from twofour.bench.measured.plan import Entry, FieldGroup, Group, Plan
from twofour.bench.plane_programs import PLANE_EXAMPLES
from twofour.bench.predicted.setting import over
from twofour.bench.report import check_folder, versions
from twofour.cost.explore import DOMAINS
from twofour.errors import Unsuitable
from twofour.frontend.source import ProgramText
from twofour.kernels import TABLE_2, Kernel, built_in_kernels
from twofour.options import CompileOptions
from twofour.pipeline import PipelineFailure
from twofour.runtime import Bundle
from twofour.targets.gpu.build import compile_gpu

# (dtype, schedule, steps) of the kernels of table 2, and of all others.
TABLE_2_ENTRIES = (
    ("f16", "auto", 1),
    ("f16", "simt", 1),
    ("f16", "dense", 1),
    ("f16", "sparse", 1),
    ("f16", "stream", 1),
    ("f16", "auto", 3),
    ("f32", "auto", 1),
    ("f64", "auto", 1),
    ("f64", "simt", 1),
    ("f64", "dense", 1),
)
OTHER_ENTRIES = (
    ("f16", "auto", 1),
    ("f16", "simt", 1),
    ("f16", "stream", 1),
    ("f32", "auto", 1),
    ("f64", "auto", 1),
)
# Other kernels in other types are compared with these alone: libraries take minutes for them.
FEW_BASELINES = (COPY, PLAIN)
# Programs over several fields: types, and the points along each axis, by the number of axes.
FIELD_TYPES, FIELD_EDGES = ("f32", "f64"), {2: 8192, 3: 512}


def prepare(folder: str, target: str, names: Sequence[str] | None = None) -> str:
    """Write bundles and plan of all built-in kernels, or of those named; says what was written.

    With all kernels there are programs over several fields, too.

    Raises TwofourError for a folder that cannot be written, or that holds results.
    """
    check_folder(folder)
    check_unmeasured(folder)
    built_in = built_in_kernels()
    # Those of table 2 first: what is interrupted has them.
    order = dict.fromkeys([*TABLE_2.values(), *built_in])
    chosen = [name for name in order if names is None or name in names]
    groups = []
    for name in over(chosen, "compiling"):
        kernel = built_in[name]
        wanted = TABLE_2_ENTRIES if name in TABLE_2.values() else OTHER_ENTRIES
        for dtype in dict.fromkeys(dtype for dtype, _, _ in wanted):
            choices = [(s, steps) for d, s, steps in wanted if d == dtype]
            groups.append(_group(folder, target, kernel, dtype, choices))
    programs = (*PLANE_EXAMPLES, *CUBE_EXAMPLES) if names is None else ()
    pairs = [(example, dtype) for example in programs for dtype in FIELD_TYPES]
    fields = tuple(_fields(folder, target, *pair) for pair in over(pairs, "compiling"))
    Plan(target, versions(), tuple(groups), fields).save(folder)
    bundles = sum(len(group.entries) for group in groups) + len(fields)
    return f"{len(groups) + len(fields)} groups, {bundles} bundles for {target}"


def _group(
    folder: str, target: str, kernel: Kernel, dtype: str, choices: Sequence[tuple[str, int]]
) -> Group:
    entries: dict[tuple[str, int], Entry] = {}
    for schedule, steps in choices:
        bundle = _compiled(kernel, CompileOptions(target, schedule, dtype, steps))
        if bundle is None:
            continue
        got = bundle.manifest["schedule"]
        if (got, steps) not in entries:
            file = f"{kernel.name}-{dtype}-{got}-{steps}.tfb"
            bundle.save(os.path.join(folder, file))
            entries[got, steps] = Entry(got, steps, file, bundle.sha256, schedule == "auto")
    labels = {name: label for label, name in TABLE_2.items()}
    compared = dtype == "f16" or kernel.name in labels
    return Group(
        kernel=kernel.name,
        label=labels.get(kernel.name, kernel.name),
        domain=kernel.domain,
        dtype=dtype,
        shape=DOMAINS[kernel.rank],
        offsets=kernel.offsets,
        weights=kernel.weights,
        baselines=tuple(BASELINES) if compared else FEW_BASELINES,
        entries=tuple(entries.values()),
    )


def _fields(folder: str, target: str, example: FieldExample, dtype: str) -> FieldGroup:
    edge, file = FIELD_EDGES[example.rank], f"{example.name}-{dtype}.tfb"
    program = ProgramText(f"{example.name}.mlir", example.mlir(edge).replace("f64", dtype))
    bundle = compile_gpu(program, CompileOptions(target)).bundle
    bundle.save(os.path.join(folder, file))
    return FieldGroup(
        program=example.name,
        label=example.label,
        dtype=dtype,
        shape=(edge,) * example.rank,
        halo=example.halo,
        loaded=example.loaded,
        stored=example.stored,
        rotation=example.rotation,
        loops=example.loops,
        file=file,
        sha256=bundle.sha256,
    )


def _compiled(kernel: Kernel, options: CompileOptions) -> Bundle | None:
    """The bundle; None where the schedule cannot take the kernel."""
    try:
        return compile_gpu(kernel, options).bundle
    except PipelineFailure as failure:
        if not isinstance(failure.errors[0], Unsuitable):
            raise
        return None
