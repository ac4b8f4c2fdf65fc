# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a thread of a plain kernel reads its inputs and writes its outputs."""

from collections.abc import Sequence
from dataclasses import dataclass

from twofour.codegen.gpu.code import Index, IndexCode
from twofour.codegen.gpu.flat_array import FlatArray, address_word
from twofour.codegen.gpu.vector_access import load_words, unpack_words, words_of
from twofour.layout.march import ACCESS
from twofour.mlir import arith, ir, memref, vector

Offset = tuple[int, ...]


@dataclass(frozen=True)
class Types:
    """The types of elements in memory, of `itemsize` bytes, and of sums."""

    storage: ir.Type
    sums: ir.Type
    itemsize: int

    def widen(self, value: ir.Value) -> ir.Value:
        """An element as it is added."""
        return value if self.storage == self.sums else arith.extf(self.sums, value)

    def narrow(self, total: ir.Value, lanes: int | None = None) -> ir.Value:
        """A sum, or a vector of so many, as it is stored."""
        if self.storage == self.sums:
            return total
        kind = self.storage if lanes is None else ir.VectorType.get([lanes], self.storage)
        return arith.truncf(kind, total)


class ElementAccess:
    """Reads and writes one by one; places count from a point of the array."""

    def __init__(self, code: IndexCode, types: Types, array: FlatArray, point: Sequence[Index]):
        self.code, self.types, self.array = code, types, array
        self.first = code.dot(point, array.strides)

    def read(self, place: Offset) -> ir.Value:
        """The element at a place, as it is added."""
        return self.types.widen(memref.load(self.array.flat, self._index(place)))

    def write(self, places: Sequence[Offset], sums: Sequence[ir.Value]) -> None:
        """Store sums at places."""
        for place, total in zip(places, sums, strict=True):
            memref.store(self.types.narrow(total), self.array.flat, self._index(place))

    def _index(self, place: Offset) -> list[ir.Value]:
        row = self.code.dot(place[:-1], self.array.strides[:-1])
        return [self.code.value(self.code.add(self.first, row, place[-1]))]


class VectorAccess(ElementAccess):
    """Reads whole vectors, once each when they are needed, and writes one.

    Vectors begin `lead` elements beyond the point, and multiples of a vector from there. Where one
    of its elements is read, all of a vector exists.
    """

    def __init__(
        self,
        code: IndexCode,
        types: Types,
        array: FlatArray,
        point: Sequence[Index],
        lead: int = 0,
    ):
        super().__init__(code, types, array, point)
        self.lead = lead
        self.address = array.address(code, self.first, types.itemsize)
        self._loaded: dict[Offset, list[ir.Value]] = {}

    def read(self, place: Offset) -> ir.Value:
        """The element at a place, as it is added."""
        number = (place[-1] - self.lead) % (ACCESS // self.types.itemsize)
        begin = (*place[:-1], place[-1] - number)
        if begin not in self._loaded:
            self._loaded[begin] = self._load(begin)
        return self.types.widen(self._loaded[begin][number])

    def write(self, places: Sequence[Offset], sums: Sequence[ir.Value]) -> None:
        """Store sums at neighbouring places, the first of which begins a vector."""
        numbers = vector.from_elements(ir.VectorType.get([len(sums)], self.types.sums), sums)
        value = self.types.narrow(numbers, len(sums))
        vector.store(value, self.array.flat, self._index(places[0]), alignment=ACCESS)

    def _load(self, begin: Offset) -> list[ir.Value]:
        code, size = self.code, self.types.itemsize
        row = code.mul(code.dot(begin[:-1], self.array.strides[:-1]), size)
        address = address_word(code, code.add(self.address, row))
        words = load_words(address, size * begin[-1], words_of(self.types.storage, size))
        return unpack_words(words, self.types.storage)
