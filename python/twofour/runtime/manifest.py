# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a bundle says about its kernels and its program: the parts of its manifest.

A manifest is plain JSON. Readers take manifests that twofour.runtime.manifest_schema has checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from twofour.runtime.dtypes import field_element_type
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.loops import Bound, Carried, Launch, Loop, Step, View

FORMAT = 5
# Sweeps advance at most so many steps at once.
MAX_FUSED_STEPS = 4096


@dataclass(frozen=True)
class MapSpec:
    """A tensor map that a kernel takes, of its view number `view`, inputs first.

    The tensor begins `lead` elements before the view on the last axis; `box` has the extents of a
    copy, slowest axis first, `element` is its type.
    """

    view: int
    lead: int
    box: tuple[int, ...]
    element: str


@dataclass(frozen=True)
class KernelSpec:
    """One entry of a bundle's PTX: its parameters and how it is launched.

    It takes `inputs` views, numbers of the types `scalars`, and `outputs` views of `rank` axes. A
    block of `threads` threads writes `march` tiles of `tile` points along the first axis.
    `shared_bytes` is its dynamic shared memory; `alignment` (bytes) is asked of views as
    twofour.runtime.devices.launching says. `resident` is set where the blocks of a launch share the
    first axis evenly, however many there are: so many are on a multiprocessor at a time, and
    `march` is only about what suits a block. `maps` are the tensor maps that follow its other
    parameters. `resources` holds what ptxas reported, where it was there.
    """

    name: str
    rank: int
    inputs: int
    outputs: int
    scalars: tuple[str, ...]
    threads: int
    tile: tuple[int, ...]
    march: int
    shared_bytes: int
    alignment: int
    resident: int | None = None
    maps: tuple[MapSpec, ...] = ()
    resources: Mapping[str, int] | None = None


@dataclass(frozen=True)
class LinearProgram:
    """A program that is one linear step of one field; kernels by their names.

    `fused`, where there is one, advances `fused_steps` steps; `edges` is a kernel of one step for
    views of any alignment. `reach_lo` and `reach_hi` are as in LinearKernel. `fields` are the
    fields of a file, None for a stencil whose arrays are the domain; `scalars` are the element
    types of its arguments that are numbers, which nothing needs. `boundary_kernels` refresh halos
    (see twofour.runtime.devices.halo_kernels).
    """

    name: str
    single: str
    fused: str | None
    edges: str | None
    fused_steps: int
    reach_lo: tuple[int, ...]
    reach_hi: tuple[int, ...]
    fields: tuple[FieldSpec, ...] | None
    scalars: tuple[str, ...] = ()
    boundary_kernels: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.reach_lo)

    @property
    def boundary_rank(self) -> int:
        """The number of axes that a boundary has entries for."""
        return self.rank


@dataclass(frozen=True)
class FieldsProgram:
    """A program over several fields; its members are those of FieldStepper and Plan.

    Its launches name their kernels.
    `scalars` are the element types of the arguments that are numbers, in order; `workspaces` the
    (shape, element) of its own buffers. `time_loop` tells whether a call makes steps of its own.
    `boundary_kernels` refresh halos (see twofour.runtime.devices.halo_kernels).
    """

    name: str
    fields: tuple[FieldSpec, ...]
    rotation: tuple[int, ...]
    scalars: tuple[str, ...]
    steps: tuple[Step, ...]
    workspaces: tuple[tuple[tuple[int, ...], str], ...]
    time_loop: bool
    boundary_kernels: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.fields[0].shape)

    @property
    def boundary_rank(self) -> int:
        """The number of axes that a boundary has entries for."""
        return max(len(field.shape) for field in self.fields)


def axis_numbers(bits: int) -> tuple[str, ...]:
    """The types of the numbers that a boundary kernel takes for each axis."""
    return ("i32", "index", "index", f"i{bits}")


def read_kernels(manifest: dict) -> dict[str, KernelSpec]:
    """The kernels of a checked manifest by name."""
    return {
        name: KernelSpec(
            name,
            **{
                key: tuple(value) if isinstance(value, list) else value
                for key, value in entry.items()
                if key in KernelSpec.__dataclass_fields__ and key != "maps"
            },
            maps=tuple(map(_map, entry["maps"])),
        )
        for name, entry in manifest["kernels"].items()
    }


def _map(entry: dict) -> MapSpec:
    return MapSpec(entry["view"], entry["lead"], tuple(entry["box"]), entry["element"])


def read_program(manifest: dict) -> LinearProgram | FieldsProgram:
    """The program of a checked manifest."""
    program = manifest["program"]
    if program["kind"] == "linear":
        return LinearProgram(
            program["name"],
            program["single"],
            program["fused"],
            program["edges"],
            program["fused_steps"],
            tuple(program["reach_lo"]),
            tuple(program["reach_hi"]),
            program["fields"] and _fields(program["fields"]),
            tuple(program["scalars"]),
            tuple(program["boundary_kernels"]),
        )
    return FieldsProgram(
        program["name"],
        _fields(program["fields"]),
        tuple(program["rotation"]),
        tuple(program["scalars"]),
        tuple(map(_step, program["steps"])),
        tuple((tuple(shape), element) for shape, element in program["workspaces"]),
        program["time_loop"],
        tuple(program["boundary_kernels"]),
    )


def _fields(entries: list[dict]) -> tuple[FieldSpec, ...]:
    return tuple(
        FieldSpec(
            entry["position"],
            field_element_type(entry["element"]),
            tuple(entry["shape"]),
            entry["loaded"],
            entry["stored"],
            entry["interior"] and tuple(map(tuple, entry["interior"])),
        )
        for entry in entries
    )


def _view(entry: dict) -> View:
    return View(entry["buffer"], tuple(slice(a, b) for a, b in entry["slices"] or ()))


def _step(entry: dict) -> Step:
    if entry["kind"] == "launch":
        return Launch(
            entry["kernel"],
            tuple(map(_view, entry["inputs"])),
            tuple(map(_view, entry["outputs"])),
            tuple(entry["scalars"]),
        )
    return Loop(
        entry["index"],
        _bound(entry["lower"]),
        _bound(entry["upper"]),
        entry["step"],
        tuple(
            Carried(item["value"], _view(item["initial"]), _view(item["following"]))
            for item in entry["carried"]
        ),
        tuple(map(_step, entry["body"])),
    )


def _bound(entry: int | dict) -> int | Bound:
    return Bound(entry["argument"]) if isinstance(entry, dict) else entry


def field_entry(field: FieldSpec) -> dict:
    """A field as a manifest holds it."""
    return {
        "position": field.position,
        "element": field.element.name,
        "shape": list(field.shape),
        "loaded": field.loaded,
        "stored": field.stored,
        "interior": field.interior and [list(corner) for corner in field.interior],
    }


def view_entry(view: View) -> dict:
    """A view as a manifest holds it."""
    return {
        "buffer": view.buffer,
        "slices": [[part.start, part.stop] for part in view.slices] or None,
    }


def step_entry(step: Step) -> dict:
    """A launch, its kernel given by name, or a loop of such as a manifest holds it."""
    if isinstance(step, Launch):
        return {
            "kind": "launch",
            "kernel": step.kernel,
            "inputs": [view_entry(view) for view in step.inputs],
            "scalars": list(step.scalars),
            "outputs": [view_entry(view) for view in step.outputs],
        }
    return {
        "kind": "loop",
        "index": step.index,
        "lower": _bound_entry(step.lower),
        "upper": _bound_entry(step.upper),
        "step": step.step,
        "carried": [
            {
                "value": item.value,
                "initial": view_entry(item.initial),
                "following": view_entry(item.following),
            }
            for item in step.carried
        ],
        "body": [step_entry(inner) for inner in step.body],
    }


def _bound_entry(bound: int | Bound) -> int | dict:
    return {"argument": bound.argument} if isinstance(bound, Bound) else bound
