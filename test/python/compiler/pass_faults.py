# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults of passes: each makes a function that takes the place of another."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from twofour.box import Box
from twofour.layout.patch import PatchOperator


def bounds_too_small(original):
    def box(self, temp):
        whole = original(self, temp)
        return Box(whole.lower, (*whole.upper[:-1], whole.upper[-1] - 1)) if whole else whole

    return box


def rules_without_sign(original):
    return {**original, "arith.subf": original["arith.addf"]}


def lost_term(original):
    def convolve(offsets, weights, steps):
        found = original(offsets, weights, steps)
        found.pop(max(found))
        return found

    return convolve


def access_at_the_point(original):
    return lambda temp, offset: original(temp, (0,) * len(offset))


def interior_of_one_step(original):
    return lambda box, offsets, steps: original(box, offsets, 1)


def halved_weights(original):
    return lambda self, weights: original(self, [weight / 2 for weight in weights])


def changed(original, change: Callable):
    """The function, with a change made to the matrix and the input offsets that it returns."""

    def mutated(*arguments):
        operator = original(*arguments)
        matrix, inputs = operator.matrix.copy(), operator.input_offsets.copy()
        change(matrix, inputs)
        return PatchOperator(matrix, operator.output_offsets, inputs, operator.tile)

    return mutated


def lost_constant(original):
    def linear_terms(op):
        offsets, weights, _ = original(op)
        return offsets, weights, 0.0

    return linear_terms


def swapped_offsets(original):
    def change(matrix, inputs):
        inputs[[0, 1]] = inputs[[1, 0]]

    return changed(original, change)


def wrong_column(original):
    def change(matrix, inputs):
        matrix[-1] = np.roll(matrix[-1], 1)

    return changed(original, change)


def columns_alone(original):
    """The columns are permuted and the offsets are not."""

    def apply_permutation(operator, permutation):
        permuted = original(operator, permutation)
        order = np.array(permutation.order)
        inputs = permuted.input_offsets.copy()
        places = np.flatnonzero(order >= 0)
        inputs[places] = operator.input_offsets[np.sort(order[places])]
        return PatchOperator(permuted.matrix, permuted.output_offsets, inputs, permuted.tile)

    return apply_permutation


def flipped_bit(original):
    def flipped(matrix):
        values, metadata = original(matrix)
        metadata[0, 0] ^= 1
        return values, metadata

    return flipped


def lost_value(original):
    def without(matrix):
        values, metadata = original(matrix)
        values[-1, np.flatnonzero(values[-1])[-1]] = 0
        return values, metadata

    return without


def reversed_matrix(original):
    def kernel(name, operator, *arguments, **options):
        matrix = np.ascontiguousarray(operator.matrix[:, ::-1])
        return original(name, replace(operator, matrix=matrix), *arguments, **options)

    return kernel


def rotated_inputs(original):
    def lay_out(*arguments, **options):
        layout = original(*arguments, **options)
        inputs = np.roll(layout.operator.input_offsets, 1, axis=0)
        return replace(layout, operator=replace(layout.operator, input_offsets=inputs))

    return lay_out


def reversed_weights(original):
    return lambda offsets, weights: original(offsets, weights[::-1])


def no_offset(original):
    return lambda constants, bases, shift: original(constants, bases, [0] * len(shift))


def no_halo(original):
    return lambda source, offsets, sizes: original(source, [0] * len(offsets), sizes)


def other_direction(original):
    def launch(shape):
        call = original(shape)
        return lambda kernel, views, domain: call(kernel, views[::-1], domain)

    return launch


def target_to_source(original):
    return lambda name, view, source, target: original(name, view, target, source)


def without_sign(original):
    return lambda offsets, weights: dict(sorted(zip(offsets, weights, strict=True)))


def lost_line(original):
    return lambda terms, option: original(terms, option)[:-1]


def line_in_no_block(original):
    def blocks(lines, unroll):
        first, *others = original(lines, unroll)
        return (replace(first, lines=first.lines[1:]), *others)

    return blocks


def first_row_late(original):
    def schedule(lines, chosen, **options):
        plan = original(lines, chosen, **options)
        sweep = plan.sweeps[0]
        start = replace(sweep.rows[0].start, constant=sweep.rows[0].start.constant + 1)
        rows = (replace(sweep.rows[0], start=start), *sweep.rows[1:])
        return replace(plan, sweeps=(replace(sweep, rows=rows), *plan.sweeps[1:]))

    return schedule


def unfolded(original):
    class Emitter(original):
        def _folded(self, from_lower, axis):
            return from_lower

    return Emitter


def rows_reversed(original):
    def window(line, p, count):
        return [(count - 1 - row, weight) for row, weight in original(line, p, count)]

    return window


def nothing_found(original):
    return lambda function: None


def as_before(original):
    return lambda plan, by: plan


def lost_product(original):
    def kernel(name, plan, *others):
        sweep = plan.sweeps[0]
        vector, *vectors = sweep.rows[0].vectors
        vector = replace(vector, products=vector.products[1:])
        rows = (replace(sweep.rows[0], vectors=(vector, *vectors)), *sweep.rows[1:])
        plan = replace(plan, sweeps=(replace(sweep, rows=rows), *plan.sweeps[1:]))
        return original(name, plan, *others)

    return kernel
