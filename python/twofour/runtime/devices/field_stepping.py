# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping of programs over several fields on a device."""

from collections.abc import Sequence

from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.devices.stepping import aligned_rows
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.fields.stepping import FieldStepper
from twofour.runtime.fields.writes import (
    covered_fields,
    overwritten,
    read_halos,
    rims_of,
    unwritten_calls,
    written_interiors,
)
from twofour.runtime.halos import Halos
from twofour.runtime.plan import Plan

LINE = 128  # bytes that a warp accesses at once
# Runs of so many steps lay fields out on lines: results take another copy for that.
MANY_STEPS = 8


class DeviceFieldStepper(FieldStepper):
    """Advances fields by the launches of `plan`, in the memory of its device.

    Inputs that no call of a run writes to are read where they are. Of a field that is only stored,
    and in its whole interior, the halo alone is copied at first. In runs of many steps the
    interiors of fields that are updated in place begin their rows at multiples of a line, which the
    rows of arrays with a halo do not: a warp that writes 32 neighbouring elements of four bytes
    touches five sectors for four, two of them in part. Results have no gaps between rows.
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        rotation: Sequence[int],
        plan: Plan,
        boundary: Sequence[AxisBoundary],
        halos: Halos,
        *,
        records: bool,
    ):
        super().__init__(
            fields,
            rotation,
            plan.prepare,
            boundary,
            plan.memory,
            records=records,
            halos=halos,
            written=written_interiors(plan.steps, fields),
            read=read_halos(plan.steps, fields),
            covered=covered_fields(plan.steps, fields),
        )
        self._device = plan.memory
        refilled = {position for refill in self.halos.refills.items for position in refill.filled}
        self._unwritten_calls = unwritten_calls(plan.steps, refilled, rotation)
        self._rims = rims_of(overwritten(plan.steps, self.fields), halos)

    def _input_buffer(self, position: int, values, steps: int):
        is_read_only = 0 < steps <= self._unwritten_calls.get(position, steps)
        if is_read_only and self._device.holds(values):
            return values
        field = next(field for field in self.fields if field.position == position)
        if steps < MANY_STEPS or not field.stored:
            return self._copied(position, values)
        storage, first = field.element.storage, field.interior[0][-1]
        granule = LINE // storage.itemsize
        buffer = aligned_rows(self._device, field.shape, first, storage, granule)
        buffer[...] = values
        return buffer

    def _result_buffer(self, field: FieldSpec, heir, steps: int):
        if not steps or field.position not in self._rims:
            return self._copied(field.position, heir)
        buffer = self._device.zeros(field.shape, field.element.storage)
        self._rims[field.position].bind(heir, buffer)()
        return buffer

    def _result(self, buffer):
        # Rows of a long run are longer than those of callers.
        return self._device.result(self._device.array_module.ascontiguousarray(buffer))
