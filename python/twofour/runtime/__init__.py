# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What running kernels takes: element types, boundaries, native calls, devices, time stepping.

Imports NumPy and the standard library only, so that a machine without the compiler can run
kernels; CuPy when a CUDA device is opened, and the simulator when one is simulated.
"""

from twofour.runtime.boundary import (
    MODES,
    AxisBoundary,
    HaloRefresh,
    check_constants,
    check_fixed,
    parse_boundary,
    refresh_halo,
    source_index,
)
from twofour.runtime.bundle import Bundle
from twofour.runtime.calls import advance_array, advance_field, advance_fields
from twofour.runtime.crew import Crew, crew_code
from twofour.runtime.devices.device import Device
from twofour.runtime.devices.opening import check_device, open_device
from twofour.runtime.devices.stepping import DeviceLinearStepper
from twofour.runtime.dtypes import (
    ELEMENT_TYPES,
    ElementType,
    bf16_to_float32,
    check_array,
    element_type,
    element_type_of,
    field_element_type,
    float32_to_bf16,
    from_storage,
    storage_view,
    to_storage,
)
from twofour.runtime.fields.host import HostFieldStepper, NativeFieldStepper
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.fields.stepping import FieldStepper
from twofour.runtime.loops import Bound, Carried, Launch, Loop, Step, View
from twofour.runtime.manifest import KernelSpec, field_entry, step_entry
from twofour.runtime.native import BoundKernel, NativeFunction, NativeKernel
from twofour.runtime.plan import Plan
from twofour.runtime.programs import LoadedFieldProgram, LoadedStencil, from_bundle, load
from twofour.runtime.progress import Progress
from twofour.runtime.rounds.step_tables import STRETCH_WORDS, Command, Phase, StepCode, step_code
from twofour.runtime.stepping import LinearStepper, check_steps
from twofour.runtime.sweeps import LinearKernel
from twofour.runtime.threads import resolve_threads
from twofour.runtime.tiles.program import LEG_WORDS, TileCode, tile_code
from twofour.runtime.tiles.stepping import TiledKernel, TiledStepper
from twofour.runtime.tiles.workspace import ARRAY_WORDS

__all__ = [
    "ARRAY_WORDS",
    "ELEMENT_TYPES",
    "LEG_WORDS",
    "MODES",
    "STRETCH_WORDS",
    "AxisBoundary",
    "Bound",
    "BoundKernel",
    "Bundle",
    "Carried",
    "Command",
    "Crew",
    "Device",
    "DeviceLinearStepper",
    "ElementType",
    "FieldSpec",
    "FieldStepper",
    "HaloRefresh",
    "HostFieldStepper",
    "KernelSpec",
    "Launch",
    "LinearKernel",
    "LinearStepper",
    "LoadedFieldProgram",
    "LoadedStencil",
    "Loop",
    "NativeFieldStepper",
    "NativeFunction",
    "NativeKernel",
    "Phase",
    "Plan",
    "Progress",
    "Step",
    "StepCode",
    "TileCode",
    "TiledKernel",
    "TiledStepper",
    "View",
    "advance_array",
    "advance_field",
    "advance_fields",
    "check_device",
    "bf16_to_float32",
    "check_array",
    "check_fixed",
    "check_steps",
    "crew_code",
    "element_type",
    "element_type_of",
    "field_element_type",
    "field_entry",
    "float32_to_bf16",
    "from_bundle",
    "from_storage",
    "load",
    "open_device",
    "check_constants",
    "parse_boundary",
    "refresh_halo",
    "resolve_threads",
    "source_index",
    "step_code",
    "step_entry",
    "storage_view",
    "tile_code",
    "to_storage",
]
