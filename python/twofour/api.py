# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python interface: stencils from weights, and programs from files or kernel names."""

import math
import operator
import os
from collections.abc import Mapping, Sequence
from typing import Literal

from twofour.errors import SourceLocation, TwofourError
from twofour.explain import explain
from twofour.kernels import Kernel, built_in_kernels
from twofour.options import CompileOptions
from twofour.reach import halo_of
from twofour.runtime import (
    AxisBoundary,
    Bundle,
    Device,
    LoadedFieldProgram,
    LoadedStencil,
    advance_array,
    advance_field,
    advance_fields,
    check_device,
    element_type,
    field_element_type,
    from_bundle,
    parse_boundary,
    resolve_threads,
)
from twofour.runtime.calls import Report
from twofour.runtime.fields.scalars import read_scalars
from twofour.runtime.manifest import FieldsProgram
from twofour.suggestions import suggest
from twofour.targets.cpu.build import CompiledCpu, compile_cpu
from twofour.targets.cpu.executable import CpuExecutable
from twofour.targets.fields import check_runnable

Boundary = str | Sequence[str | AxisBoundary]

# Numbers up to this size are zero in f32, rounded to nearest even.
LEAST_F32 = 2.0**-150


def stencil(
    weights: Mapping[Sequence[int], float],
    *,
    boundary: str | Sequence[str] = "fixed",
    dtype: str = "f32",
    target: str = "cpu",
    schedule: str = "auto",
    threads: int | None = None,
    fuse_steps: int | Literal["auto"] = 1,
    tuned: str | os.PathLike | None = None,
    reassociate: bool = True,
    device: Device | str | None = None,
) -> "Stencil":
    """A linear stencil: out[x] = sum of weights[offset] * in[x + offset], slowest axis first.

    Weights of zero, also after rounding to f32 where the type is not f64, have no part in it.
    `boundary` is one mode for all axes or one for each, out of fixed, zero, constant(c), periodic,
    reflect and nearest; under `fixed` points whose neighbours would lie outside keep their values.
    `dtype` is the storage type of the arrays (f16, bf16, f32, f64; 16-bit types are summed in f32),
    or tf32: f32 arrays multiplied in that precision by tensor cores of GPUs. `target` is cpu, a
    GPU's chip such as sm_90, or a simulated one (sim:sm_90); a GPU is first needed when the stencil
    is called. `schedule` is direct, sparse or outer on a CPU, stream, sparse, dense or simt on a
    GPU, or auto: what is expected to be fastest. `device` is the GPU to run on, as for
    twofour.runtime.load: cuda:N, or the first. `threads` is how many a CPU may use, None for as
    many as TWOFOUR_NUM_THREADS says, else all CPUs. `fuse_steps` > 1 advances that many steps in
    one sweep where it can; with auto, on a GPU, as many as are predicted to be fastest. `tuned` is
    a file of choices that `twofour tune` stored for GPUs. With `reassociate` the CPU adds inputs of
    a row that have the same weight before it multiplies them; without, term by term, as GPUs do.
    Raises TwofourError for offsets of mixed rank, weights that are not finite, and options that are
    not known.
    """
    kernel = _kernel_from_weights(weights, dtype)
    parsed = parse_boundary(boundary, kernel.rank)
    options = CompileOptions(
        target,
        schedule,
        dtype,
        fuse_steps,
        tuned=_file_name(tuned),
        reassociate=reassociate,
    )
    try:
        return Stencil(kernel, options, parsed, threads, device)
    except TwofourError as error:
        # Weights in a dict have no file, but the choices for them do.
        if error.location is not None and error.location.file == options.tuned:
            raise
        raise TwofourError(error.message) from None


def compile(
    source: str | os.PathLike,
    *,
    target: str = "cpu",
    boundary: str | Sequence[str] = "fixed",
    dtype: str | None = None,
    schedule: str = "auto",
    threads: int | None = None,
    fuse_steps: int | Literal["auto"] = 1,
    function: str | None = None,
    tuned: str | os.PathLike | None = None,
    reassociate: bool = True,
    device: Device | str | None = None,
) -> "Stencil | FieldProgram":
    """Compile a program from a file or a built-in kernel by its name.

    A kernel gives a `Stencil`, a file (`-`: standard input) a `FieldProgram` over arrays of the
    extents of its fields. `function` names one of several functions of a file. `boundary` says how
    halos of fields are refreshed before each step. `dtype` changes the program's element type
    (kernels: f32 unless given); all other options are as for `stencil`. Raises TwofourError for
    anything wrong with the source or the options.
    """
    found = find_source(source)
    options = CompileOptions(
        target,
        schedule,
        dtype,
        fuse_steps,
        function,
        tuned=_file_name(tuned),
        reassociate=reassociate,
    )
    if isinstance(found, Kernel):
        parsed = parse_boundary(boundary, found.rank)
        return Stencil(found, options, parsed, threads, device)
    return FieldProgram(found, options, boundary, threads, device)


def find_source(source: str | os.PathLike) -> Kernel | str:
    """A built-in kernel where `source` names one, otherwise a file's path (`-`: standard input).

    Raises TwofourError for a name that is neither: no kernel, and nothing like a path.
    """
    if not isinstance(source, str | bytes | os.PathLike):
        raise TwofourError(f"expected the path of a file or a kernel's name, got {source!r}")
    name = os.fsdecode(source)
    if "\n" in name and "{" in name:
        lines = len(name.splitlines())
        raise TwofourError(
            f"expected the path of a file or a kernel's name, got a text of {lines} lines"
        )
    kernels = built_in_kernels()
    if name in kernels:
        return kernels[name]
    if name != "-" and not os.path.exists(name) and "." not in name and os.sep not in name:
        hint = suggest(name, kernels) or "; 'twofour kernels' lists them"
        raise TwofourError(f"unknown kernel '{name}'{hint}")
    return name


def _file_name(path: str | os.PathLike | None) -> str | None:
    if path is None or isinstance(path, str | os.PathLike):
        return None if path is None else os.fsdecode(path)
    raise TwofourError(f"expected the path of a file of measured choices, got {path!r}")


def _kernel_from_weights(weights: Mapping[Sequence[int], float], dtype: str) -> Kernel:
    """The kernel of the weights that are not zero in the type that they are multiplied in."""
    if not isinstance(weights, Mapping) or not weights:
        raise TwofourError("expected weights as a dict {offset: weight} with at least one entry")
    terms: dict[tuple[int, ...], float] = {}
    for offset, weight in weights.items():
        try:
            point = tuple(
                map(operator.index, offset if isinstance(offset, Sequence) else (offset,))
            )
            if isinstance(weight, str | bytes):
                raise TypeError("float() would read it")
            value = float(weight)
        except (TypeError, ValueError, OverflowError):
            raise TwofourError(
                f"expected integer offsets and numbers as weights, got {offset!r}: {weight!r}"
            ) from None
        if not math.isfinite(value):
            raise TwofourError(f"expected finite weights, got {value} at offset {point}")
        if point in terms:
            raise TwofourError(f"expected distinct offsets, got {point} twice")
        terms[point] = value
    ranks = sorted({len(point) for point in terms})
    if len(ranks) != 1 or ranks[0] == 0:
        raise TwofourError(f"expected offsets of one rank, got ranks {ranks}")
    least = LEAST_F32 if dtype != "f64" else 0.0
    kept = sorted((point, value) for point, value in terms.items() if abs(value) > least)
    if not kept:
        rounded = " in f32" if any(terms.values()) else ""
        raise TwofourError(f"expected at least one weight that is not zero{rounded}")
    return Kernel("stencil", tuple(p for p, _ in kept), tuple(v for _, v in kept))


def _extents(shape: Sequence[int], rank: int) -> list[int]:
    try:
        extents = list(map(operator.index, shape))
    except TypeError:
        extents = []
    if len(extents) != rank or min(extents) < 0:
        raise TwofourError(f"expected a shape of {rank} extents, got {shape!r}")
    return extents


class _Compiled:
    """What stencils and programs share: the options, and the bundle where the target is a GPU.

    `name` is that of the program, `rank` its number of axes, `element_type` what arrays hold,
    `schedule` the one that was chosen, `target` what it was compiled for, `threads` the number that
    sweeps run on at most, on the CPU, and `bundle` the code for a GPU. Pickled, it is what it was
    made from: the code is compiled again where it is read.
    """

    # What the class is called with.
    _arguments: tuple

    def __init__(self, options: CompileOptions, threads: int | None, device: Device | str | None):
        if device is not None and (options.target == "cpu" or options.is_simulated):
            raise TwofourError(
                f"expected a GPU target such as sm_90 for device {device!r}, got "
                f"target '{options.target}'"
            )
        check_device(device)
        self._options = options
        # What code for a GPU runs on.
        self._where = options.target if options.is_simulated else device
        self.target = options.target
        self.threads = resolve_threads(threads)
        self.bundle: Bundle | None = None
        self._loaded: LoadedStencil | LoadedFieldProgram | None = None

    def _bundle(self, source: Kernel | str, boundary: Boundary) -> None:
        """Compile for a GPU; calls open the device."""
        # The compiler for GPUs is not needed for the CPU.
        from twofour.targets.gpu.build import compile_gpu

        self.bundle = compile_gpu(source, self._options).with_boundary(boundary)
        self._loaded = from_bundle(self.bundle, self._where)
        self.name, self.rank = self._loaded.name, self._loaded.rank
        self.element_type = self._loaded.element_type
        self.schedule = self._loaded.schedule

    def __repr__(self) -> str:
        kind = f"{self.rank} axes of {self.element_type.name}"
        return f"<{type(self).__name__} {self.name}: {kind}, {self.schedule} on {self.target}>"

    def __reduce__(self) -> tuple[type, tuple]:
        return type(self), self._arguments

    @property
    def device(self) -> Device | None:
        """What calls run on, None for the CPU; raises TwofourError where it is not there."""
        return None if self._loaded is None else self._loaded.device

    def save(self, path: str | os.PathLike) -> None:
        """Write the bundle, which `twofour.runtime.load` runs without the compiler.

        Raises TwofourError where the target is the CPU or the file cannot be written.
        """
        if self.bundle is None:
            raise TwofourError("expected a GPU target such as sm_90 to save a bundle, got 'cpu'")
        self.bundle.save(path)


class Stencil(_Compiled):
    """A compiled linear stencil, called on arrays that are the domain.

    `step(u, steps=100)` returns a new array of the kind, place, shape and dtype of `u`, an array of
    NumPy, CuPy or another library that speaks DLPack.
    """

    def __init__(
        self,
        kernel: Kernel,
        options: CompileOptions,
        boundary: Sequence[AxisBoundary],
        threads: int | None,
        device: Device | str | None = None,
    ):
        super().__init__(options, threads, device)
        self._kernel, self._boundary = kernel, boundary
        self._arguments = kernel, options, boundary, threads, device
        if self.target != "cpu":
            self._bundle(kernel, boundary)
            return
        compiled = compile_cpu(kernel, options)
        self.name, self.rank = kernel.name, kernel.rank
        self.element_type = element_type(compiled.element)
        self.schedule = compiled.schedule
        if compiled.left:
            reason = compiled.left[0].reason
            raise TwofourError(f"expected weights in the range of {compiled.element}: {reason}")
        self._stepper = CpuExecutable(compiled).linear_stepper(boundary, self.threads)

    def __call__(self, u, steps: int = 1, *, out=None, progress: Report | None = None):
        """Advance `u` by `steps` steps; `progress(done, total)` is told of them as they are made.

        The result goes to `out` where that is given, an array of its shape and element type, which
        may be `u`. Raises TwofourError for an array that does not fit.
        """
        if self._loaded is not None:
            return self._loaded(u, steps, out=out, progress=progress)
        return advance_array(self._stepper, u, steps, progress, out=out)

    def updated_points(self, shape: Sequence[int]) -> int:
        """The number of points that one step updates in an array of this shape.

        Raises TwofourError for a shape of another rank.
        """
        extents = _extents(shape, self.rank)
        updated = 1
        halo = halo_of(self._kernel.offsets)
        for extent, entry, below, above in zip(extents, self._boundary, *halo, strict=True):
            rim = below + above if entry.mode == "fixed" else 0
            updated *= max(0, extent - rim)
        return updated

    def explain(self) -> dict:
        """Every choice made, as `twofour explain --json` prints it."""
        return explain(self._kernel, self._options)


class FieldProgram(_Compiled):
    """A compiled file, called on its input fields (halo included), in order.

    `inputs` and `outputs` describe its fields; `has_time_loop` says whether the file has a loop
    over time, so that one call makes several steps.
    """

    def __init__(
        self,
        path: str,
        options: CompileOptions,
        boundary: Boundary,
        threads: int | None,
        device: Device | str | None = None,
    ):
        super().__init__(options, threads, device)
        self._path = path
        self._arguments = path, options, boundary, threads, device
        if self.target == "cpu":
            self._prepare(compile_cpu(path, options), boundary)
            return
        self._bundle(path, boundary)
        self.inputs, self.outputs = self._loaded.inputs, self._loaded.outputs
        program = self.bundle.program
        self.has_time_loop = isinstance(program, FieldsProgram) and program.time_loop

    def __reduce__(self) -> tuple[type, tuple]:
        if self._path == "-":
            raise TwofourError("expected a program from a file to pickle, got standard input")
        return super().__reduce__()

    def _prepare(self, compiled: CompiledCpu, boundary: Boundary) -> None:
        """Make the machine code, and what steps with it."""
        path, threads = self._path, self.threads
        program = compiled.program
        check_runnable(program, path)
        self.name = program.name
        self.rank = program.fields[0].box.rank
        self.element_type = field_element_type(compiled.element)
        self.schedule = compiled.schedule
        self.has_time_loop = program.time_loop is not None
        executable = CpuExecutable(compiled)
        self.threads = threads if executable.is_threaded else 1
        parsed = parse_boundary(boundary, max(field.box.rank for field in program.fields))
        self._fields = executable.field_stepper(parsed, threads)
        self._scalars = [a.element for a in program.arguments if not a.is_field]
        self.inputs = [field for field in self._fields.fields if field.loaded]
        self.outputs = [field for field in self._fields.fields if field.stored]
        self._linear = None
        if executable.is_linear and self.inputs[0].shape == self.outputs[0].shape:
            interior = self.inputs[0].interior
            if interior is not None and len(interior[0]) == len(parsed):
                self._linear = executable.linear_stepper(parsed, threads, interior)
        if self._linear is None:
            self._fields.get_ready()
        if compiled.fused is not None and self._linear is None:
            raise TwofourError(
                "expected input and output fields of one type to fuse steps", SourceLocation(path)
            )

    def __call__(
        self,
        *inputs,
        steps: int = 1,
        scalars: Sequence[float | int | str] = (),
        out=None,
        progress: Report | None = None,
        resume: bool = False,
    ):
        """The stored fields after `steps` calls: one array, or a tuple where there are several.

        With `resume` the input fields of the call that would come next, such as two time levels;
        an input that stays as it is may be given back itself.
        Results go to `out` where that is given: an array for each, or the array for the only one.
        These may be inputs: fields that a program updates in place are then updated right there.
        `scalars` are the arguments that are numbers, in order: numbers, or texts of them.
        `progress(done, total)` is told of the calls as they are made. Raises TwofourError for
        arrays and numbers that do not fit the program's arguments.
        """
        if self._loaded is not None:
            return self._loaded(
                *inputs, steps=steps, scalars=scalars, out=out, progress=progress, resume=resume
            )
        numbers = read_scalars(scalars, self._scalars)
        if self._linear is None:
            return advance_fields(self._fields, inputs, steps, numbers, progress, resume, out)
        return advance_field(self._linear, inputs, steps, progress, self.inputs[0].shape, out)

    @property
    def updated_points(self) -> int:
        """The number of points that one call updates, in all its fields."""
        boxes = [field.interior for field in self.outputs if field.interior is not None]
        return sum(
            math.prod(up - lo for lo, up in zip(lower, upper, strict=True))
            for lower, upper in boxes
        )

    def explain(self) -> dict:
        """Every choice made, as `twofour explain --json` prints it."""
        return explain(self._path, self._options)
