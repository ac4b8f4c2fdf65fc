# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from bundles, called like those that were just compiled."""

import os
from collections.abc import Sequence
from dataclasses import replace
from threading import RLock

from twofour.runtime.boundary import AxisBoundary, check_fixed, parse_boundary
from twofour.runtime.bundle import Bundle
from twofour.runtime.calls import Report, advance_array, advance_field, advance_fields
from twofour.runtime.devices.device import Device, DeviceKernel
from twofour.runtime.devices.field_stepping import DeviceFieldStepper
from twofour.runtime.devices.halo_kernels import halo_kernels
from twofour.runtime.devices.opening import open_device
from twofour.runtime.devices.stepping import DeviceLinearStepper, linear_stepper
from twofour.runtime.dtypes import ElementType, field_element_type
from twofour.runtime.fields.scalars import read_scalars
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.loops import Loop, Step
from twofour.runtime.manifest import FieldsProgram, LinearProgram
from twofour.runtime.plan import Plan
from twofour.runtime.recent import Recent

# Boundaries whose steppers are kept: each holds two buffers of the last domain it was called on.
STEPPERS = 2

Boundary = str | Sequence[str | AxisBoundary] | None


# Threads that call a program at the same time share its device and its kernels.
_OPENING = RLock()


class LoadedProgram:
    """A bundle's program on a device, which is opened when it is first needed."""

    def __init__(self, bundle: Bundle, device: Device | str | None = None):
        self.bundle = bundle
        self.name, self.rank = bundle.program.name, bundle.program.rank
        self.element_type: ElementType = field_element_type(bundle.manifest["element"])
        self.schedule: str = bundle.manifest["schedule"]
        self.target = bundle.target
        self._arguments = bundle, device
        self._device = device
        self._kernels: dict[str, DeviceKernel] | None = None
        self._boundary = self._parsed(bundle.manifest["boundary"])
        self._steppers: Recent[DeviceLinearStepper | DeviceFieldStepper] = Recent(STEPPERS)

    def __reduce__(self) -> tuple[type, tuple]:
        return type(self), self._arguments

    @property
    def device(self) -> Device:
        """The device, opened; raises TwofourError where it is not there."""
        with _OPENING:
            self._device = open_device(self._device, self.target)
        return self._device

    def kernels(self) -> dict[str, DeviceKernel]:
        """The kernels, loaded; raises TwofourError where the device cannot run them."""
        with _OPENING:
            if self._kernels is None:
                self._kernels = self.device.load(self.bundle)
        return self._kernels

    def __repr__(self) -> str:
        kind = f"{self.rank} axes of {self.element_type.name}"
        return f"<{type(self).__name__} {self.name}: {kind}, {self.schedule} for {self.target}>"

    def _parsed(self, boundary: Boundary) -> tuple[AxisBoundary, ...]:
        program = self.bundle.program
        parsed = parse_boundary(boundary, program.boundary_rank)
        if isinstance(program, FieldsProgram) and program.time_loop:
            check_fixed(parsed)
        return parsed

    def save(self, path: str | os.PathLike) -> None:
        """Write the bundle; raises TwofourError where that is not possible."""
        self.bundle.save(path)

    def stepper(self, boundary: Boundary = None) -> DeviceLinearStepper | DeviceFieldStepper:
        """What advances arrays with this boundary; those of the last few boundaries are kept."""
        chosen = self._boundary if boundary is None else self._parsed(boundary)
        return self._steppers.get(chosen, self._stepper)

    def _stepper(
        self, boundary: tuple[AxisBoundary, ...]
    ) -> DeviceLinearStepper | DeviceFieldStepper:
        kernels, program = self.kernels(), self.bundle.program
        if isinstance(program, LinearProgram):
            return linear_stepper(program, kernels, self.device, self.element_type, boundary)
        return field_stepper(program, kernels, self.device, boundary)


class LoadedStencil(LoadedProgram):
    """A linear stencil, called on arrays that are the domain."""

    def __call__(
        self,
        u,
        steps: int = 1,
        *,
        boundary: Boundary = None,
        out=None,
        progress: Report | None = None,
    ):
        """Return `u` after `steps` steps: a new array of its kind, place, shape and dtype.

        `u` is an array of NumPy, CuPy or another library that speaks DLPack. The result goes to
        `out` where that is given, an array of its shape and element type, which may be `u`. Raises
        TwofourError for arrays that do not fit, and for what is missing to run it.
        """
        return advance_array(self.stepper(boundary), u, steps, progress, out=out)


class LoadedFieldProgram(LoadedProgram):
    """A program from a file, called on its input fields (halo included), in order.

    `inputs` and `outputs` describe its fields.
    """

    def __init__(self, bundle: Bundle, device: Device | str | None = None):
        super().__init__(bundle, device)
        program = bundle.program
        self.inputs: list[FieldSpec] = [f for f in program.fields if f.loaded]
        self.outputs: list[FieldSpec] = [f for f in program.fields if f.stored]

    def __call__(
        self,
        *inputs,
        steps: int = 1,
        scalars: Sequence[float | int | str] = (),
        boundary: Boundary = None,
        out=None,
        progress: Report | None = None,
        resume: bool = False,
    ):
        """Return the stored fields after `steps` calls: one array, or a tuple of several.

        With `resume` it is the input fields of the call that would come next, among which may be
        inputs themselves. `scalars` are the arguments that are numbers, in order. Results go to
        `out` where that is given: an array for each, or the array for the only one. Raises
        TwofourError as LoadedStencil does.
        """
        program = self.bundle.program
        numbers = read_scalars(scalars, program.scalars)
        if isinstance(program, FieldsProgram):
            stepper = self.stepper(boundary)
            return advance_fields(stepper, inputs, steps, numbers, progress, resume, out)
        shape = self.inputs[0].shape
        return advance_field(self.stepper(boundary), inputs, steps, progress, shape, out)


def field_stepper(
    program: FieldsProgram,
    kernels: dict[str, DeviceKernel],
    device: Device,
    boundary: Sequence[AxisBoundary],
) -> DeviceFieldStepper:
    """The stepper of a bundle's program over several fields."""
    plan = launch_plan(program, kernels, device)
    # Loops record their own launches.
    records = not any(isinstance(step, Loop) for step in plan.steps)
    halos = halo_kernels(program, kernels)
    return DeviceFieldStepper(
        program.fields, program.rotation, plan, boundary, halos, records=records
    )


def launch_plan(program: FieldsProgram, kernels: dict[str, DeviceKernel], device: Device) -> Plan:
    """What one call of a program does, on all its arguments."""
    workspaces = tuple(
        (shape, field_element_type(element).storage) for shape, element in program.workspaces
    )
    steps = tuple(_with_kernels(step, kernels) for step in program.steps)
    return Plan(steps, workspaces, device)


def _with_kernels(step: Step, kernels: dict[str, DeviceKernel]) -> Step:
    """A step whose launches have kernels instead of their names."""
    if isinstance(step, Loop):
        return replace(step, body=tuple(_with_kernels(inner, kernels) for inner in step.body))
    return replace(step, kernel=kernels[step.kernel])


def from_bundle(
    bundle: Bundle, device: Device | str | None = None
) -> LoadedStencil | LoadedFieldProgram:
    """The program of a bundle; its device is opened at the first call."""
    program = bundle.program
    kind = LoadedFieldProgram if program.fields is not None else LoadedStencil
    return kind(bundle, device)


def load(
    path: str | os.PathLike, device: Device | str | None = None
) -> LoadedStencil | LoadedFieldProgram:
    """The program of a bundle file, ready to be called.

    `device` is cuda, cuda:N, or sim, sim:sm_XX for the simulator; None is the first CUDA device.
    Raises TwofourError for a file that is no intact bundle, and for a device that is not there or
    cannot run it.
    """
    program = from_bundle(Bundle.load(path), device)
    program.kernels()
    return program
