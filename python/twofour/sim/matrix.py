# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mma, mma.sp, ldmatrix, stmatrix and movmatrix: whole warps at a time."""

from collections.abc import Sequence

import numpy as np

from twofour.sim import tensor
from twofour.sim.counting import Counting
from twofour.sim.decode import Binder, Modifiers, PerLane, Step, Value, decodes, integer_of, put
from twofour.sim.machine import Active
from twofour.sim.ptx import Instruction

_KINDS = ("f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s32", "e4m3", "e5m2")


def _collective(binder: Binder, instruction: Instruction) -> Step:
    """A step that checks that whole warps are here, and orders them."""
    machine = binder.machine

    def check(active: Active) -> None:
        machine.order_warps(active, instruction)
        if active.partial_warps.size:
            warp = int(active.partial_warps[0])
            here = active.by_warp[warp]
            machine.fault(
                instruction,
                "divergent warp",
                f"expected all 32 threads of the warp at {instruction.opcode}, "
                f"got {np.count_nonzero(here)}",
                warp * 32 + int(np.flatnonzero(here)[0]),
            )

    return check


def _gathered(
    sources: Sequence[Value], active: Active, dtype: type[np.unsignedinteger]
) -> np.ndarray:
    """Fragments [warps, 32, registers] of the active warps."""
    rows = slice(None) if active.lanes is None else active.warp_rows
    first = next((s for s in sources if isinstance(s, np.ndarray)), active.here)
    result = np.empty((first.size, len(sources)), dtype)
    for i, source in enumerate(sources):
        result[:, i] = source
    return result.reshape(-1, 32, len(sources))[rows]


def _scatter(targets: Sequence[np.ndarray], values: np.ndarray, active: Active) -> None:
    for i, target in enumerate(targets):
        put(target, values[:, :, i].reshape(-1), active)


def _registers(shape: str, kind: str, rows: bool, sparse: bool) -> int:
    """Registers of a fragment of A (rows) or B."""
    m, k = int(shape[1 : shape.index("n")]), int(shape[shape.index("k") + 1 :])
    elements = (m if rows else 8) * (k // 2 if sparse and rows else k)
    return elements * tensor.BITS[kind] // (64 if kind == "f64" else 32) // 32


@decodes("mma", "mma")
def multiply(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    sparse = modifiers.take("sp", "sp::ordered_metadata")
    modifiers.need("sync")
    modifiers.need("aligned")
    shape = next((m for m in modifiers.left if m[0] == "m" and "n8k" in m), None)
    if shape is None:
        binder.error(instruction, f"expected a shape in {instruction.opcode}")
    modifiers.left.remove(shape)
    modifiers.need("row")
    modifiers.need("col")
    saturate = modifiers.flag("satfinite")
    kinds = modifiers.left
    if len(kinds) != 4 or not set(kinds) <= set(_KINDS):
        binder.error(instruction, f"expected four types in {instruction.opcode}")
    d_kind, a_kind, b_kind, c_kind = kinds
    shapes = tensor.SPARSE_SHAPES if sparse else tensor.DENSE_SHAPES
    if shape not in shapes.get(a_kind, ()) or saturate and d_kind != "s32":
        binder.error(instruction, f"unsupported instruction {instruction.opcode}")
    binder.count_operands(instruction, 6 if sparse else 4)
    wide = a_kind == "f64"
    storage, dtype = ("b64", np.uint64) if wide else ("b32", np.uint32)
    d_operand, a_operand, b_operand, c_operand = instruction.operands[:4]
    results = [binder.destination(instruction, e, storage) for e in binder.elements(d_operand)]
    a = binder.fragment(
        instruction, a_operand, storage, _registers(shape, a_kind, True, bool(sparse))
    )
    b = binder.fragment(instruction, b_operand, storage, _registers(shape, b_kind, False, False))
    rows = int(shape[1 : shape.index("n")])
    c = binder.fragment(instruction, c_operand, storage, _accumulators(rows, c_kind))
    if len(results) != _accumulators(rows, d_kind):
        binder.error(instruction, f"expected {_accumulators(rows, d_kind)} results")
    check = _collective(binder, instruction)
    if not sparse:

        def run(active: Active) -> None:
            check(active)
            parts = (_gathered(sources, active, dtype) for sources in (a, b, c))
            d = tensor.mma(shape, a_kind, b_kind, c_kind, d_kind, *parts, saturate)
            _scatter(results, d, active)

        return run
    metadata = binder.source(instruction, instruction.operands[4], "b32")
    selector = integer_of(instruction.operands[5])
    limit = tensor.SPARSE_SHAPES[a_kind][shape]
    if selector is None or not 0 <= selector < limit:
        binder.error(
            instruction, f"expected a constant selector below {limit} for {shape} of {a_kind}"
        )
    ordered = sparse.endswith("ordered_metadata")
    types = (shape, a_kind, b_kind, c_kind, d_kind)

    def run_sparse(active: Active) -> None:
        check(active)
        parts = [_gathered(sources, active, dtype) for sources in (a, b, c)]
        words = _gathered([metadata], active, np.uint32)[:, :, 0]
        try:
            d = tensor.mma_sp(*types, *parts, words, selector, ordered, saturate)
        except tensor.MetadataError as error:
            warps = np.arange(binder.machine.warps) if active.lanes is None else active.warp_rows
            lane = int(warps[error.warp]) * 32 + error.lane
            binder.machine.fault(instruction, "undefined operation", error.message, lane)
        _scatter(results, d, active)

    return run_sparse


def _accumulators(rows: int, kind: str) -> int:
    return rows // 8 * (1 if kind == "f16" else 2)


def _matrix_modifiers(
    binder: Binder, instruction: Instruction, modifiers: Modifiers
) -> tuple[int, bool, bool]:
    modifiers.need("sync")
    modifiers.need("aligned")
    modifiers.need("m8n8")
    count = int(modifiers.need("x1", "x2", "x4")[1:])
    trans = modifiers.flag("trans")
    shared = modifiers.take("shared", "shared::cta")
    modifiers.need("b16")
    modifiers.done()
    binder.count_operands(instruction, 2)
    return count, trans, bool(shared)


def _row_lanes(binder: Binder, active: Active, count: int) -> np.ndarray:
    """Lanes that address the rows of the matrices: the first 8 * count of every warp."""
    warps = np.arange(binder.machine.warps) if active.lanes is None else active.warp_rows
    return (warps[:, None] * 32 + np.arange(8 * count)).reshape(-1)


def _offsets(addresses: PerLane, active: Active, count: int, generic: bool) -> np.ndarray:
    values = addresses(active).reshape(-1, 32)[:, : 8 * count].reshape(-1)
    # Generic addresses of shared memory; what is not one stays out of bounds.
    return values - (1 << 56) if generic else np.ascontiguousarray(values)


@decodes("matrix", "ldmatrix")
def load_matrices(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    count, trans, shared = _matrix_modifiers(binder, instruction, modifiers)
    elements = binder.elements(instruction.operands[0])
    if len(elements) != count:
        binder.error(instruction, f"expected {count} destinations, got {len(elements)}")
    targets = [binder.destination(instruction, e, "b32") for e in elements]
    addresses = binder.address(instruction, instruction.operands[1])
    check = _collective(binder, instruction)
    counting = Counting(binder, instruction, False)

    def run(active: Active) -> None:
        check(active)
        lanes = _row_lanes(binder, active, count)
        offsets = _offsets(addresses, active, count, not shared)
        rows = binder.shared.load(instruction, offsets, lanes, 8, 2)
        counting.of_matrices(offsets.reshape(-1, 8), len(lanes) // (8 * count))
        rows = rows.view(np.uint16).reshape(-1, 8 * count, 8)
        _scatter(targets, tensor.ldmatrix(rows, count, trans), active)

    return run


@decodes("matrix", "stmatrix")
def store_matrices(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    count, trans, shared = _matrix_modifiers(binder, instruction, modifiers)
    sources = binder.fragment(instruction, instruction.operands[1], "b32", count)
    addresses = binder.address(instruction, instruction.operands[0])
    check = _collective(binder, instruction)
    counting = Counting(binder, instruction, True)

    def run(active: Active) -> None:
        check(active)
        lanes = _row_lanes(binder, active, count)
        offsets = _offsets(addresses, active, count, not shared)
        rows = tensor.stmatrix(_gathered(sources, active, np.uint32), count, trans)
        rows = np.ascontiguousarray(rows).view(np.uint64).reshape(-1, 2)
        binder.shared.store(instruction, offsets, lanes, rows, 8, 2)
        counting.of_matrices(offsets.reshape(-1, 8), len(lanes) // (8 * count))

    return run


@decodes("matrix", "movmatrix")
def move_matrix(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    for name in ("sync", "aligned", "m8n8", "trans", "b16"):
        modifiers.need(name)
    modifiers.done()
    binder.count_operands(instruction, 2)
    target = binder.destination(instruction, instruction.operands[0], "b32")
    value = binder.source(instruction, instruction.operands[1], "b32")
    check = _collective(binder, instruction)

    def run(active: Active) -> None:
        check(active)
        registers = _gathered([value], active, np.uint32)[:, :, 0]
        put(target, tensor.movmatrix(registers).reshape(-1), active)

    return run
