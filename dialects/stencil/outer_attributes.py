# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coefficient lines, blocks and schedules of outer products as attributes, and back.

A bound c + s * n, for vectors of n elements, is written `[c, s]`. A product of a row segment is
`[line, i, u, plane, shift]`, one of a transposition `[line, i, u]`, with tile (i, u); products that
follow each other and share u (and plane and shift) share an input vector.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from twofour.layout.coefficient_lines import Line
from twofour.layout.outer_schedule import (
    Affine,
    Block,
    ColumnSegment,
    ColumnVector,
    Product,
    RowSegment,
    RowVector,
    Sweep,
    Transposition,
)
from twofour.mlir import ir
from twofour.mlir_support import expect, index_array, index_rows, int_rows, int_tuple


def _i64(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _dictionaries(attribute: ir.Attribute, names: Sequence[str], what: str) -> list[ir.DictAttr]:
    """The entries of an array of dictionaries with exactly these names."""
    expect(
        isinstance(attribute, ir.ArrayAttr)
        and all(isinstance(entry, ir.DictAttr) for entry in attribute),
        f"expected {what} as dictionaries with {', '.join(names)}",
    )
    for entry in attribute:
        got = sorted(item.name for item in entry)
        expect(got == sorted(names), f"expected {what} with {', '.join(names)}, got {got}")
    return list(attribute)


def _integer(entry: ir.DictAttr, name: str) -> int:
    value = entry[name]
    expect(isinstance(value, ir.IntegerAttr), f"expected an integer {name}, got {value}")
    return value.value


def _integers(entry: ir.DictAttr, name: str, length: int) -> tuple[int, ...]:
    values = int_tuple(entry[name], name)
    expect(len(values) == length, f"expected {length} integers in {name}, got {list(values)}")
    return values


def lines_attribute(lines: Iterable[Line]) -> ir.ArrayAttr:
    """`[{direction = [1, 0], start = [-1, 0], weights = array<f64: ...>}, ...]`."""
    return ir.ArrayAttr.get(
        [
            ir.DictAttr.get(
                {
                    "direction": index_array(line.direction),
                    "start": index_array(line.start),
                    "weights": ir.DenseF64ArrayAttr.get(list(line.weights)),
                }
            )
            for line in lines
        ]
    )


def lines_of(attribute: ir.Attribute, rank: int) -> tuple[Line, ...]:
    """The lines of an op of this rank; raises VerificationFailure."""
    lines = []
    for entry in _dictionaries(attribute, ("direction", "start", "weights"), "lines"):
        weights = entry["weights"]
        expect(
            isinstance(weights, ir.DenseF64ArrayAttr) and len(weights) > 0,
            f"expected the weights of a line as 'array<f64: ...>', got {weights}",
        )
        values = tuple(weights)
        expect(
            all(math.isfinite(value) for value in values), f"expected finite weights, got {weights}"
        )
        lines.append(
            Line(_integers(entry, "direction", rank), _integers(entry, "start", rank), values)
        )
    expect(len(lines) > 0, "expected at least one line, got none")
    return tuple(lines)


_BLOCK = ("row_axis", "skew", "unroll", "lines")


def _block_entries(block: Block) -> dict[str, ir.Attribute]:
    return {
        "row_axis": _i64(block.row_axis),
        "skew": _i64(block.skew),
        "unroll": index_array(block.unroll),
        "lines": index_array(block.lines),
    }


def _block_of(entry: ir.DictAttr) -> Block:
    return Block(
        _integer(entry, "row_axis"),
        _integer(entry, "skew"),
        _integers(entry, "unroll", 2),
        int_tuple(entry["lines"], "lines of a block"),
    )


def blocks_attribute(blocks: Iterable[Block]) -> ir.ArrayAttr:
    """`[{lines = [0, 1], row_axis = 0 : i64, skew = 0 : i64, unroll = [1, 8]}, ...]`."""
    return ir.ArrayAttr.get([ir.DictAttr.get(_block_entries(block)) for block in blocks])


def blocks_of(attribute: ir.Attribute) -> tuple[Block, ...]:
    """The blocks of an op; raises VerificationFailure."""
    return tuple(_block_of(entry) for entry in _dictionaries(attribute, _BLOCK, "blocks"))


def _bound(bound: Affine) -> ir.ArrayAttr:
    return index_array((bound.constant, bound.scale))


def _bound_of(entry: ir.DictAttr, name: str) -> Affine:
    return Affine(*_integers(entry, name, 2))


def _row_segment(segment: RowSegment) -> ir.DictAttr:
    rows = [
        (product.line, *product.tile, vector.plane, vector.shift)
        for vector in segment.vectors
        for product in vector.products
    ]
    return ir.DictAttr.get(
        {
            "start": _bound(segment.start),
            "stop": _bound(segment.stop),
            "products": index_rows(rows),
        }
    )


def _row_segment_of(entry: ir.DictAttr) -> RowSegment:
    rows = int_rows(entry["products"], 5, "products").tolist()
    vectors = [
        RowVector(plane, u, shift, tuple(Product(k, (i, u)) for k, i, *_ in group))
        for (u, plane, shift), group in groupby(rows, key=lambda row: tuple(row[2:]))
    ]
    return RowSegment(_bound_of(entry, "start"), _bound_of(entry, "stop"), tuple(vectors))


def _column_segment(segment: ColumnSegment) -> ir.DictAttr:
    rows = [(p.line, *p.tile) for vector in segment.vectors for p in vector.products]
    return ir.DictAttr.get(
        {
            "start": _bound(segment.start),
            "stop": _bound(segment.stop),
            "phase": _i64(segment.phase),
            "products": index_rows(rows),
        }
    )


def _column_segment_of(entry: ir.DictAttr) -> ColumnSegment:
    rows = int_rows(entry["products"], 3, "products").tolist()
    vectors = [
        ColumnVector(u, tuple(Product(k, (i, u)) for k, i, _ in group))
        for u, group in groupby(rows, key=lambda row: row[2])
    ]
    return ColumnSegment(
        _bound_of(entry, "start"),
        _bound_of(entry, "stop"),
        _integer(entry, "phase"),
        tuple(vectors),
    )


def _transposition(transposition: Transposition) -> ir.DictAttr:
    segments = [_column_segment(segment) for segment in transposition.segments]
    return ir.DictAttr.get(
        {
            "plane": _i64(transposition.plane),
            "row": _i64(transposition.row),
            "column": _i64(transposition.column),
            "reach": _i64(transposition.reach),
            "segments": ir.ArrayAttr.get(segments),
        }
    )


def _transposition_of(entry: ir.DictAttr) -> Transposition:
    names = ("start", "stop", "phase", "products")
    segments = _dictionaries(entry["segments"], names, "segments of a transposition")
    return Transposition(
        *(_integer(entry, name) for name in ("plane", "row", "column", "reach")),
        tuple(_column_segment_of(segment) for segment in segments),
    )


def sweeps_attribute(sweeps: Iterable[Sweep]) -> ir.ArrayAttr:
    """Each sweep as its block, with `rows` (segments) and `transpositions`."""
    return ir.ArrayAttr.get(
        [
            ir.DictAttr.get(
                _block_entries(sweep.block)
                | {
                    "rows": ir.ArrayAttr.get([_row_segment(s) for s in sweep.rows]),
                    "transpositions": ir.ArrayAttr.get(
                        [_transposition(t) for t in sweep.transpositions]
                    ),
                }
            )
            for sweep in sweeps
        ]
    )


def sweeps_of(attribute: ir.Attribute) -> tuple[Sweep, ...]:
    """The sweeps of an op; raises VerificationFailure."""
    sweeps = []
    for entry in _dictionaries(attribute, (*_BLOCK, "rows", "transpositions"), "sweeps"):
        rows = _dictionaries(entry["rows"], ("start", "stop", "products"), "row segments")
        names = ("plane", "row", "column", "reach", "segments")
        transpositions = _dictionaries(entry["transpositions"], names, "transpositions")
        sweeps.append(
            Sweep(
                _block_of(entry),
                tuple(_row_segment_of(segment) for segment in rows),
                tuple(_transposition_of(t) for t in transpositions),
            )
        )
    return tuple(sweeps)
