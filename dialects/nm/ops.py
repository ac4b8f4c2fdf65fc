# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of the nm dialect: stencils as small constant matrices.

See SparStencil, sections 3.1 and 3.2.

A patch operator computes out[n*tile + o_m] = sum_k A[m,k] * in[n*tile + p_k] for every tile n. Each
op also carries the stencil that it must compute, and its verifier proves that (A, o, p) still
computes it, with every weight in one column of each row: a pass that breaks the layout cannot
produce valid IR.
"""

from typing import Any

import numpy as np

from twofour.dialects.stencil.linear_ops import check_linear_op, linear_attributes, linear_terms
from twofour.layout.compress import check_metadata, decompress
from twofour.layout.matching import lower_bound
from twofour.layout.patch import PatchOperator, check
from twofour.mlir import ext, ir
from twofour.mlir_support import (
    expect,
    float_matrix,
    float_rows,
    index_rows,
    int_rows,
    int_tuple,
    verifier,
)

# What nm-permute-2to4 found, on the ops that it and nm-compress build.
PERMUTATION_ATTRIBUTE = "permutation"
_PERMUTATION_FIELDS = {
    "strategy": ir.StringAttr,
    "fragment": ir.IntegerAttr,
    "padding_columns": ir.IntegerAttr,
    "k_lower_bound": ir.IntegerAttr,
    "proven": ir.BoolAttr,
}


class NM(ext.Dialect, name="nm"):
    """N:M sparse matrices and the patch operators that stencils become."""


def _offsets(op, rank: int) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    tile = int_tuple(op.tile, "tile")
    expect(
        len(tile) == rank and all(t > 0 for t in tile),
        f"expected a tile of {rank} positive extents, got {list(tile)}",
    )
    return (
        int_rows(op.output_offsets, rank, "output_offsets"),
        int_rows(op.input_offsets, rank, "input_offsets"),
        tile,
    )


def permutation_of(op) -> dict:
    """The report of nm-permute-2to4 on an op, as plain values; what the op shows without one."""
    if PERMUTATION_ATTRIBUTE in op.attributes:
        found = op.attributes[PERMUTATION_ATTRIBUTE]
        return {name: found[name].value for name in _PERMUTATION_FIELDS}
    matrix = op.operator().matrix
    fragment = 32 if matrix.shape[1] % 32 == 0 else 16
    bound = lower_bound(matrix, fragment)
    return {
        "strategy": "given",
        "fragment": fragment,
        "padding_columns": int((matrix == 0).all(axis=0).sum()),
        "k_lower_bound": bound,
        "proven": matrix.shape[1] == bound,
    }


def _check_permutation(found: dict, matrix: np.ndarray) -> None:
    """What a permutation says of A holds as far as A shows it."""
    columns, fragment = matrix.shape[1], found["fragment"]
    expect(
        fragment > 0 and fragment % 16 == 0 and columns % fragment == 0,
        f"expected a fragment of 16, 32, ... that divides {columns} columns, got {fragment}",
    )
    zeros, padding = int((matrix == 0).all(axis=0).sum()), found["padding_columns"]
    expect(
        0 <= padding <= zeros,
        f"expected padding_columns among {zeros} columns of zeros, got {padding}",
    )
    bound, proven = found["k_lower_bound"], found["proven"]
    expect(
        0 <= bound <= columns and proven == (bound == columns),
        f"expected a k_lower_bound of at most {columns}, which it is where it is proven, got "
        f"{bound} and proven = {str(proven).lower()}",
    )


def _check_patch(op, matrix: np.ndarray, columns: int) -> None:
    """The patch operator has a consistent shape and computes the stencil that the op names."""
    if PERMUTATION_ATTRIBUTE in op.attributes:
        found = op.attributes[PERMUTATION_ATTRIBUTE]
        expect(
            isinstance(found, ir.DictAttr)
            and all(n in found and isinstance(found[n], k) for n, k in _PERMUTATION_FIELDS.items()),
            f"expected a permutation with {', '.join(_PERMUTATION_FIELDS)}, got {found}",
        )
        _check_permutation({name: found[name].value for name in _PERMUTATION_FIELDS}, matrix)
    offsets, weights = check_linear_op(op)
    outputs, inputs, tile = _offsets(op, offsets.shape[1])
    expect(
        len(outputs) == len(matrix), f"expected {len(matrix)} output_offsets, got {len(outputs)}"
    )
    expect(len(inputs) == columns, f"expected {columns} input_offsets, got {len(inputs)}")
    failure = check(PatchOperator(matrix, outputs, inputs, tile), offsets, weights)
    expect(failure is None, failure or "")


def _create(name: str, like, operator: PatchOperator, matrix: dict, **kwargs) -> ir.OpView:
    """An op of this dialect for the linear op `like`; `matrix` holds the attributes that are A."""
    attributes = {
        "tile": ir.DenseI64ArrayAttr.get(list(operator.tile)),
        "output_offsets": index_rows(operator.output_offsets.tolist()),
        "input_offsets": index_rows(operator.input_offsets.tolist()),
        **matrix,
        **linear_attributes(*linear_terms(like)),
    }
    return ir.Operation.create(
        name,
        results=[like.results[0].type],
        operands=list(like.operands),
        attributes=attributes,
        **kwargs,
    ).opview


class PatchMatmulOp(NM.Operation, name="patch_matmul", traits=[ext.Pure]):
    """A linear stencil as a dense patch operator.

    `matrix` holds the rows of A (M x K), `output_offsets` the o_m, `input_offsets` the p_k (the
    paper's lookup table), slowest axis first. `offsets`, `weights`, `constant` and the addend are
    those of `stencil.weighted_sum`.
    """

    source: ext.Operand[Any]
    result: ext.Result[Any]
    tile: ir.DenseI64ArrayAttr
    matrix: ir.ArrayAttr
    output_offsets: ir.ArrayAttr
    input_offsets: ir.ArrayAttr
    offsets: ir.ArrayAttr
    weights: ir.DenseF64ArrayAttr
    addend: ext.Operand[Any] | None = None

    @classmethod
    def build(cls, like, operator: PatchOperator, **kwargs) -> "PatchMatmulOp":
        """The linear op `like` (operands, result type, stencil) by this operator."""
        matrix = {"matrix": float_matrix(operator.matrix.tolist())}
        return _create(cls.OPERATION_NAME, like, operator, matrix, **kwargs)

    def operator(self) -> PatchOperator:
        """(A, o, p, tile) of a verified op."""
        outputs, inputs, tile = _offsets(self, len(self.tile))
        return PatchOperator(float_rows(self.matrix, "matrix"), outputs, inputs, tile)

    @verifier
    def verify_region_invariants(op):
        matrix = float_rows(op.matrix, "matrix")
        _check_patch(op, matrix, matrix.shape[1])


def _metadata_rows(op) -> np.ndarray:
    """The metadata words, uint16 of shape (M, K/16)."""
    rows = list(op.metadata)
    expect(
        all(isinstance(row, ir.DenseI16ArrayAttr) for row in rows),
        "expected metadata as rows 'array<i16: ...>'",
    )
    lengths = sorted({len(row) for row in rows})
    expect(len(lengths) == 1, f"expected metadata with rows of one length, got lengths {lengths}")
    return np.array([list(row) for row in rows], dtype=np.int16).view(np.uint16)


class SparsePatchMatmulOp(NM.Operation, name="sparse_patch_matmul", traits=[ext.Pure]):
    """A linear stencil as a 2:4 patch operator, compressed as `mma.sp` reads it.

    `values` holds M x K/2 numbers, two for each group of four columns; `metadata` M x K/16 words of
    16 bits: nibble q of a word gives, low bits first, the two columns kept of its group q, in
    increasing order. The other attributes are those of `nm.patch_matmul`.
    """

    source: ext.Operand[Any]
    result: ext.Result[Any]
    tile: ir.DenseI64ArrayAttr
    values: ir.ArrayAttr
    metadata: ir.ArrayAttr
    output_offsets: ir.ArrayAttr
    input_offsets: ir.ArrayAttr
    offsets: ir.ArrayAttr
    weights: ir.DenseF64ArrayAttr
    addend: ext.Operand[Any] | None = None

    @classmethod
    def build(
        cls, like, operator: PatchOperator, values: np.ndarray, metadata: np.ndarray, **kwargs
    ) -> "SparsePatchMatmulOp":
        """The linear op `like` by compressed values (M, K/2) and metadata (M, K/16, uint16)."""
        words = metadata.view(np.int16).tolist()
        matrix = {
            "values": float_matrix(values.tolist()),
            "metadata": ir.ArrayAttr.get([ir.DenseI16ArrayAttr.get(row) for row in words]),
        }
        return _create(cls.OPERATION_NAME, like, operator, matrix, **kwargs)

    def operator(self) -> PatchOperator:
        """(A, o, p, tile) of a verified op, A decompressed from values and metadata."""
        outputs, inputs, tile = _offsets(self, len(self.tile))
        matrix = decompress(float_rows(self.values, "values"), _metadata_rows(self))
        return PatchOperator(matrix, outputs, inputs, tile)

    @verifier
    def verify_region_invariants(op):
        values, metadata = float_rows(op.values, "values"), _metadata_rows(op)
        expect(
            values.shape[1] % 8 == 0 and metadata.shape == (len(values), values.shape[1] // 8),
            f"expected one metadata word for 8 values, got {values.shape[0]} x {values.shape[1]} "
            f"values and {metadata.shape[0]} x {metadata.shape[1]} words",
        )
        failure = check_metadata(metadata)
        expect(failure is None, failure or "")
        _check_patch(op, decompress(values, metadata), 2 * values.shape[1])


PATCH_OPERATORS = (PatchMatmulOp.OPERATION_NAME, SparsePatchMatmulOp.OPERATION_NAME)
