# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The halos of a program's fields: what is copied to them before calls, and after the last one."""

from collections.abc import Callable, Collection, Iterator, Sequence

from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.box import Box
from twofour.runtime.fields.refills import Refill, refills_of_calls
from twofour.runtime.fields.spec import FieldSpec, heir_of
from twofour.runtime.halos import Halos
from twofour.runtime.loops import Recurring


class FieldHalos:
    """How halos of these fields are refilled, and before which calls.

    After a call, argument i takes over the buffer of argument rotation[i]. The halo of every loaded
    field that calls update is refreshed, axis by axis, from its interior; `boundary` holds one
    entry an axis. On axes with boundary `fixed` a field that is only stored takes its halo from the
    field whose place its buffer takes, and so it does its interior unless it is one of the fields
    `covered`, all of whose interior each call stores to. `refills` tells of each call what is left
    to do.

    A call writes to the interiors of the fields `written` and nowhere else; where that is not known
    it is None, and everything is done before each call. It reads the halos of the fields `read`
    only, or of any where that is None.
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        rotation: Sequence[int],
        boundary: Sequence[AxisBoundary],
        halos: Halos,
        written: Collection[int] | None,
        read: Collection[int] | None,
        covered: Collection[int],
    ):
        self._fields, self._rotation, self._boundary = tuple(fields), tuple(rotation), boundary
        self._covered = covered
        self.refresh = {}
        for field in self._fields:
            if field.interior is not None and len(field.shape) == len(boundary):
                refresh = halos.refresh(field.shape, field.interior, boundary, field.element)
                if not refresh.empty:
                    self.refresh[field.position] = refresh
        self.inherited = {
            (heir, field.position): halos.copy(cells, self._stored(field), field.element)
            for field, heir, cells in self._heirs()
        }
        self.refills = self._refills(written, read)

    def bind(self, arguments: Sequence, refill: Refill) -> list[Callable[[], None]]:
        """What does a refill on these arguments."""
        return [
            *(self.refresh[position].bind(arguments[position]) for position in refill.refreshed),
            *(
                self.inherited[heir, to].bind(arguments[heir], arguments[to])
                for heir, to in refill.inherited
            ),
        ]

    @property
    def same_interiors(self) -> bool:
        """Whether fields that change places are updated in the same box."""
        interiors = {field.position: field.interior for field in self._fields}
        return all(
            interiors.get(place) == interiors.get(source)
            for place, source in enumerate(self._rotation)
        )

    def _heirs(self) -> Iterator[tuple[FieldSpec, int, Box]]:
        """The fields that take over a halo, from which one each, and the cells of that."""
        for field in self._fields:
            heir = heir_of(field, self._fields, self._rotation)
            if field.loaded or field.interior is None or heir is None:
                continue
            if not self._stay_alike(field, heir):
                cells = self._inherited_cells(field)
                if (cells.lower, cells.upper) != self._stored(field):
                    yield field, heir, cells

    def _stay_alike(self, field: FieldSpec, heir: int) -> bool:
        """Whether a field and its heir hold the same, beside what calls store, from the start.

        They do where they only change places, unless calls store more to the heir.
        """
        if not self._rotation[field.position] == heir == self._rotation.index(field.position):
            return False
        other = next(one for one in self._fields if one.position == heir)
        is_covered = field.position in self._covered
        return not other.stored or (is_covered and other.interior == field.interior)

    def _stored(self, field: FieldSpec) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The box of a field's interior that each call is known to store to."""
        lower, upper = map(tuple, field.interior)
        return lower, upper if field.position in self._covered else lower

    def _inherited_cells(self, field: FieldSpec) -> Box:
        """Cells outside on an axis that is refreshed need not be: they are so before it is read."""
        cells = Box.whole(field.shape)
        if self.same_interiors and len(field.shape) == len(self._boundary):
            for axis, ends in enumerate(zip(*field.interior, strict=True)):
                if self._boundary[axis].mode != "fixed":
                    cells = cells.with_axis(axis, *ends)
        return cells

    def _refills(
        self, written: Collection[int] | None, read: Collection[int] | None
    ) -> Recurring[Refill]:
        loaded = [field.position for field in self._fields if field.loaded]
        every = Refill(
            tuple(position for position in loaded if position in self.refresh),
            tuple(self.inherited),
        )
        are_covered = all(to in self._covered for _, to in self.inherited)
        if written is None or not (self.same_interiors and are_covered):
            return Recurring((every,))
        # A field that is only stored starts as a copy.
        alike = [pair for pair in every.inherited if pair[0] in loaded]
        return refills_of_calls(every, alike, written, self._rotation, read)
