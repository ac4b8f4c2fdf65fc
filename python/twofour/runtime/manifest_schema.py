# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The schema of a bundle's manifest: what it must hold, and how its parts fit together."""

import re
from collections.abc import Callable, Sequence
from typing import NoReturn

from twofour.errors import TwofourError
from twofour.runtime.boundary import check_fixed, parse_boundary
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.runtime.manifest import FORMAT, MAX_FUSED_STEPS, axis_numbers
from twofour.runtime.native import MAX_RANK
from twofour.tensor_map import ITEMSIZES, MAX_BOX

MAX_THREADS = 1024
# Buffers of devices begin at multiples of 256 bytes.
ALIGNMENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SCALARS = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "index")

INTEGERS = ("i8", "i16", "i32", "i64", "index")
MAX_LOOPS = 32

# A check raises TwofourError where a value, found at a path of the manifest, does not fit.
Check = Callable[[object, str], None]


def _refuse(expected: str, path: str, value: object) -> NoReturn:
    got = repr(value)
    got = got if len(got) <= 60 else got[:57] + "..."
    raise TwofourError(f"manifest: expected {expected} at {path or 'its top'}, got {got}")


def _any(value: object, path: str) -> None:
    """What is checked later on."""


def _text(value: object, path: str) -> None:
    if not isinstance(value, str):
        _refuse("a text", path, value)


def _flag(value: object, path: str) -> None:
    if not isinstance(value, bool):
        _refuse("true or false", path, value)


def _integer(low: int, high: int = 2**62) -> Check:
    def check(value: object, path: str) -> None:
        if type(value) is not int or not low <= value <= high:
            _refuse(f"an integer from {low} to {high}", path, value)

    return check


def _one_of(choices: Sequence) -> Check:
    def check(value: object, path: str) -> None:
        if type(value) not in (str, int) or value not in choices:
            _refuse(f"one of {', '.join(map(str, choices))}", path, value)

    return check


def _matching(pattern: str, what: str) -> Check:
    def check(value: object, path: str) -> None:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            _refuse(what, path, value)

    return check


def _optional(inner: Check) -> Check:
    def check(value: object, path: str) -> None:
        if value is not None:
            inner(value, path)

    return check


def _either(number: Check, record: Check) -> Check:
    def check(value: object, path: str) -> None:
        (record if isinstance(value, dict) else number)(value, path)

    return check


def _list(inner: Check, count: int | None = None) -> Check:
    def check(value: object, path: str) -> None:
        if not isinstance(value, list) or count is not None and len(value) != count:
            _refuse("a list" if count is None else f"a list of {count}", path, value)
        for index, item in enumerate(value):
            inner(item, f"{path}[{index}]")

    return check


def _record(**members: Check) -> Check:
    def check(value: object, path: str) -> None:
        if not isinstance(value, dict):
            _refuse("an object", path, value)
        for name, inner in members.items():
            at = f"{path}.{name}" if path else name
            if name not in value:
                raise TwofourError(f"manifest: expected a member {at}, got none")
            inner(value[name], at)

    return check


def _map(inner: Check) -> Check:
    def check(value: object, path: str) -> None:
        if not isinstance(value, dict) or not value:
            _refuse("an object with members", path, value)
        for name, item in value.items():
            inner(item, f"{path}.{name}")

    return check


_EXTENTS = _list(_integer(1))
_RESOURCES = _record(registers=_integer(0), spill_bytes=_integer(0), local_bytes=_integer(0))
_MAP = _record(
    view=_integer(0),
    lead=_integer(0, MAX_BOX),
    box=_list(_integer(1, MAX_BOX)),
    element=_one_of(tuple(ITEMSIZES)),
)
_KERNEL = _record(
    rank=_integer(1, MAX_RANK),
    inputs=_integer(0),
    outputs=_integer(1),
    scalars=_list(_one_of(SCALARS)),
    threads=_integer(1, MAX_THREADS),
    tile=_EXTENTS,
    march=_integer(1),
    shared_bytes=_integer(0),
    alignment=_one_of(ALIGNMENTS),
    resident=_optional(_integer(1)),
    maps=_list(_MAP),
    resources=_optional(_RESOURCES),
)
_ELEMENT = _one_of((*ELEMENT_TYPES, *(s for s in SCALARS if s.startswith("i"))))
_FIELD = _record(
    position=_integer(0),
    element=_ELEMENT,
    shape=_EXTENTS,
    loaded=_flag,
    stored=_flag,
    interior=_optional(_list(_list(_integer(0)), 2)),
)
_VIEW = _record(buffer=_integer(0), slices=_optional(_list(_list(_integer(0), 2))))
_LAUNCH = _record(
    kernel=_text, inputs=_list(_VIEW), scalars=_list(_integer(0)), outputs=_list(_VIEW)
)
_BOUND = _either(_integer(-(2**62)), _record(argument=_integer(0)))
_LOOP = _record(
    index=_integer(0),
    lower=_BOUND,
    upper=_BOUND,
    step=_integer(1),
    carried=_list(_record(value=_integer(0), initial=_VIEW, following=_VIEW)),
    body=_list(_any),
)
_STEP = _record(kind=_one_of(("launch", "loop")))
_LINEAR = _record(
    name=_text,
    rank=_integer(1, MAX_RANK),
    single=_text,
    fused=_optional(_text),
    edges=_optional(_text),
    fused_steps=_integer(1, MAX_FUSED_STEPS),
    reach_lo=_list(_integer(-(2**31), 2**31)),
    reach_hi=_list(_integer(-(2**31), 2**31)),
    fields=_optional(_list(_FIELD)),
    scalars=_list(_one_of(SCALARS)),
    boundary_kernels=_list(_text),
)
_FIELDS = _record(
    name=_text,
    fields=_list(_FIELD),
    rotation=_list(_integer(0)),
    scalars=_list(_one_of(SCALARS)),
    steps=_list(_any),
    workspaces=_list(_list(_any, 2)),
    time_loop=_flag,
    boundary_kernels=_list(_text),
)
_MANIFEST = _record(
    format=_one_of((FORMAT,)),
    generator=_text,
    target=_matching("sm_[0-9]{2,3}[a-z]?", "a chip such as sm_90"),
    element=_ELEMENT,
    arithmetic=_one_of(("f16", "bf16", "tf32", "f32", "f64", *INTEGERS, "i1")),
    schedule=_one_of(("stream", "sparse", "dense", "simt")),
    source=_record(name=_text, text=_text),
    pipeline=_text,
    boundary=_list(_text),
    kernels=_map(_KERNEL),
    program=_record(kind=_one_of(("linear", "fields"))),
)


def check_manifest(manifest: object) -> None:
    """Raise TwofourError where a manifest lacks something or its parts do not fit together."""
    _MANIFEST(manifest, "")
    kernels, program = manifest["kernels"], manifest["program"]
    for name, kernel in kernels.items():
        rank = kernel["rank"]
        _list(_integer(1), rank)(kernel["tile"], f"kernels.{name}.tile")
        for index, tensor in enumerate(kernel["maps"]):
            at = f"kernels.{name}.maps[{index}]"
            _integer(0, kernel["inputs"] + kernel["outputs"] - 1)(tensor["view"], f"{at}.view")
            _list(_integer(1), rank)(tensor["box"], f"{at}.box")
    if program["kind"] == "linear":
        _LINEAR(program, "program")
        _check_linear(program, kernels, manifest["element"])
        rank = program["rank"]
    else:
        _FIELDS(program, "program")
        _check_fields(program["fields"])
        _check_plan(program, kernels)
        rank = max(len(field["shape"]) for field in program["fields"])
    _check_boundary_kernels(program["boundary_kernels"], kernels)
    try:
        boundary = parse_boundary(manifest["boundary"], rank)
        if program["kind"] == "fields" and program["time_loop"]:
            check_fixed(boundary)
    except TwofourError as error:
        raise TwofourError(f"manifest: {error.message} at boundary") from None


def _check_linear(program: dict, kernels: dict, element: str) -> None:
    rank, fused = program["rank"], program["fused"]
    for member in ("reach_lo", "reach_hi"):
        _list(_integer(-(2**31)), rank)(program[member], f"program.{member}")
    for member in ("single", "fused", "edges"):
        name = program[member]
        if name is None:
            continue
        kernel = kernels.get(name)
        at = f"program.{member}"
        if kernel is None:
            _refuse(f"one of {', '.join(kernels)}", at, name)
        form = kernel["rank"], kernel["inputs"], kernel["outputs"], len(kernel["scalars"])
        if form != (rank, 1, 1, 0):
            _refuse(f"a kernel of rank {rank} with one input, one output and no numbers", at, name)
    if (fused is None) != (program["fused_steps"] == 1):
        _refuse("several fused steps with a fused kernel, else 1", "program.fused_steps", fused)
    if fused is not None and program["edges"] is None:
        _refuse("a kernel for the edges of fused sweeps", "program.edges", None)
    if program["fields"] is None:
        _one_of(tuple(ELEMENT_TYPES))(element, "element")
        return
    fields = _check_fields(program["fields"])
    loaded = [field for field in fields if field["loaded"]]
    stored = [field for field in fields if field["stored"]]
    if len(loaded) != 1 or len(stored) != 1:
        _refuse("one loaded and one stored field", "program.fields", len(fields))
    field = loaded[0]
    whole = field["shape"], field["element"], field["interior"]
    if len(field["shape"]) != rank or field["element"] != element or field["interior"] is None:
        _refuse(f"a field of rank {rank} of {element} with an interior", "program.fields", whole)
    if (stored[0]["shape"], stored[0]["element"]) != (field["shape"], element):
        _refuse("fields of one type", "program.fields", stored[0]["shape"])


def _check_boundary_kernels(names: list, kernels: dict) -> None:
    for index, name in enumerate(names):
        at = f"program.boundary_kernels[{index}]"
        kernel = kernels.get(name)
        if kernel is None:
            _refuse(f"one of {', '.join(kernels)}", at, name)
        numbers = [[*axis_numbers(bits)] * kernel["rank"] for bits in (8, 16, 32, 64)]
        if (kernel["inputs"], kernel["outputs"]) != (1, 1) or kernel["scalars"] not in numbers:
            _refuse("a kernel with one input, one output and the numbers of its axes", at, name)


def _check_fields(fields: list[dict]) -> list[dict]:
    if not any(field["stored"] for field in fields):
        _refuse("a stored field", "program.fields", len(fields))
    for index, field in enumerate(fields):
        if field["interior"] is not None:
            at = f"program.fields[{index}].interior"
            lower, upper = field["interior"]
            _check_box(list(zip(lower, upper, strict=False)), field["shape"], at)
            if len(lower) != len(upper):
                _refuse("two corners of one rank", at, field["interior"])
    return fields


def _check_box(ranges: Sequence[Sequence[int]], shape: Sequence[int], path: str) -> None:
    inside = all(0 <= a < b <= n for (a, b), n in zip(ranges, shape, strict=False))
    if len(ranges) != len(shape) or not inside:
        _refuse(f"a box within {list(shape)}", path, list(map(list, ranges)))


def _check_plan(program: dict, kernels: dict) -> None:
    fields, rotation, count = program["fields"], program["rotation"], len(program["rotation"])
    positions = [field["position"] for field in fields]
    if len(set(positions)) != len(fields) or count != len(fields) + len(program["scalars"]):
        _refuse(f"{count} distinct positions of arguments", "program.fields", positions)
    if sorted(rotation) != list(range(count)) or max(positions) >= count:
        _refuse(f"a permutation of {count} arguments", "program.rotation", rotation)
    buffers = {field["position"]: (field["shape"], field["element"]) for field in fields}
    for place, source in enumerate(rotation):
        if buffers.get(place) != buffers.get(source):
            _refuse("arguments of one type to change places", "program.rotation", [place, source])
    for number, (shape, element) in enumerate(program["workspaces"]):
        _EXTENTS(shape, f"program.workspaces[{number}][0]")
        _ELEMENT(element, f"program.workspaces[{number}][1]")
        buffers[count + number] = shape, element
    given = [place for place in range(count) if place not in buffers]
    numbers = dict(zip(given, program["scalars"], strict=True))
    _PlanCheck(kernels, numbers).steps(program["steps"], "program.steps", buffers, numbers, 0)


class _PlanCheck:
    """The steps of a program: what they may refer to, and what their kernels take.

    `buffers` gives the (shape, element) of every value that is a buffer, `numbers` the type of
    those that are numbers.
    """

    def __init__(self, kernels: dict, arguments: dict[int, str]):
        self._kernels, self._arguments = kernels, arguments

    def steps(self, steps: list, path: str, buffers: dict, numbers: dict, depth: int) -> None:
        """Check steps; what loops carry is a buffer from there on."""
        if depth > MAX_LOOPS:
            _refuse(f"at most {MAX_LOOPS} loops in each other", path, len(steps))
        for index, step in enumerate(steps):
            at = f"{path}[{index}]"
            _STEP(step, at)
            if step["kind"] == "launch":
                _LAUNCH(step, at)
                self._launch(step, at, buffers, numbers)
            else:
                _LOOP(step, at)
                self._loop(step, at, buffers, numbers, depth)

    def _launch(self, launch: dict, at: str, buffers: dict, numbers: dict) -> None:
        kernel = self._kernels.get(launch["kernel"])
        if kernel is None:
            _refuse(f"one of {', '.join(self._kernels)}", f"{at}.kernel", launch["kernel"])
        for what in ("inputs", "outputs"):
            if len(launch[what]) != kernel[what]:
                _refuse(f"{kernel[what]} views", f"{at}.{what}", launch[what])
        types = [numbers.get(value) for value in launch["scalars"]]
        if types != kernel["scalars"]:
            _refuse(f"numbers of {kernel['scalars']}", f"{at}.scalars", launch["scalars"])
        for view in launch["inputs"]:
            _view_form(view, buffers, at)
        forms = [_view_form(view, buffers, at) for view in launch["outputs"]]
        if len(forms[0][0]) != kernel["rank"]:
            _refuse(f"views of rank {kernel['rank']}", f"{at}.outputs", launch["outputs"])

    def _loop(self, loop: dict, at: str, buffers: dict, numbers: dict, depth: int) -> None:
        for member in ("lower", "upper"):
            bound = loop[member]
            if isinstance(bound, dict) and self._arguments.get(bound["argument"]) not in INTEGERS:
                _refuse("an argument that is an integer", f"{at}.{member}", bound["argument"])
        new = [loop["index"], *(item["value"] for item in loop["carried"])]
        if len(set(new)) != len(new) or any(v in buffers or v in numbers for v in new):
            _refuse("values that nothing else brings forth", at, new)
        carried = {
            item["value"]: _view_form(item["initial"], buffers, f"{at}.carried")
            for item in loop["carried"]
        }
        inner = {**buffers, **carried}
        numbers = {**numbers, loop["index"]: "index"}
        self.steps(loop["body"], f"{at}.body", inner, numbers, depth + 1)
        for item in loop["carried"]:
            if _view_form(item["following"], inner, f"{at}.carried") != carried[item["value"]]:
                _refuse("a view of the type of the initial one", f"{at}.carried", item["value"])
        buffers.update(carried)


def _view_form(view: dict, buffers: dict, path: str) -> tuple[list[int], str]:
    """The extents and the element type of a view."""
    if view["buffer"] not in buffers:
        _refuse(f"a buffer of {sorted(buffers)}", path, view["buffer"])
    shape, element = buffers[view["buffer"]]
    if view["slices"] is None:
        return list(shape), element
    _check_box(view["slices"], shape, f"{path}.slices")
    return [b - a for a, b in view["slices"]], element
