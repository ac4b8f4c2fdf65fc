# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C header of an object file: functions on pointers, extents and strides."""

from collections.abc import Sequence
from dataclasses import dataclass

from twofour.identifiers import identifier

_TYPES = {"f64": "double", "f32": "float"}


@dataclass(frozen=True)
class Interface:
    """What a C program calls: kernel `kernel` of program `name`, on fields of `element`.

    `reach_lo` and `reach_hi` say how far the source is read before and after the target's points,
    one number an axis; a sweep advances `steps` time steps.
    """

    name: str
    kernel: str
    element: str
    reach_lo: Sequence[int]
    reach_hi: Sequence[int]
    steps: int = 1


def header_text(interface: Interface) -> str:
    """The header; C99 and C++, for GCC and Clang."""
    name, rank = identifier(interface.name), len(interface.reach_lo)
    outer = rank - 1
    grown = [lo + hi for lo, hi in zip(interface.reach_lo, interface.reach_hi, strict=True)]
    return _TEXT.format(
        name=name,
        guard=f"TWOFOUR_{name}_H",
        kernel=interface.kernel,
        type=_TYPES[interface.element],
        rank=rank,
        outer=outer,
        steps=f" A sweep advances {interface.steps} steps." if interface.steps > 1 else "",
        before=_words(interface.reach_lo),
        after=_words(interface.reach_hi),
        extents=", ".join(f"extents[{a}]" for a in range(rank)),
        grown=", ".join(f"extents[{a}] + {g}" for a, g in enumerate(grown)),
        in_strides=", ".join(f"in_strides[{a}]" for a in range(outer)),
        out_strides=", ".join(f"out_strides[{a}]" for a in range(outer)),
        back=" + ".join(
            [
                *(f"{lo} * in_strides[{a}]" for a, lo in enumerate(interface.reach_lo[:-1])),
                str(interface.reach_lo[-1]),
            ]
        ),
        save=_SAVE,
    )


def _words(numbers: Sequence[int]) -> str:
    return " x ".join(str(max(number, 0)) for number in numbers)


# The run-time function of "Procedure Call Standard for the Arm 64-bit Architecture", SME support
# routines, which compilers' libraries have had since GCC 14 and LLVM 16. As words, for assemblers
# that do not know SME; once for all headers in one file, or in what link-time optimisation joins.
_SAVE = """\
#ifndef TWOFOUR_ARM_TPIDR2_SAVE
#define TWOFOUR_ARM_TPIDR2_SAVE
__asm__(
    ".ifndef __arm_tpidr2_save\\n"
    ".pushsection .text.__arm_tpidr2_save,\\"axG\\",%progbits,__arm_tpidr2_save,comdat\\n"
    ".balign 4\\n.weak __arm_tpidr2_save\\n.type __arm_tpidr2_save, %function\\n"
    "__arm_tpidr2_save:\\n"
    ".inst 0xd53bd0ae\\n" /* mrs x14, TPIDR2_EL0 */
    "cbz x14, 1f\\n"
    "ldrh w16, [x14, #10]\\nldr w17, [x14, #12]\\norr w16, w16, w17\\ncbnz w16, 2f\\n"
    "ldr x16, [x14]\\ncbz x16, 1f\\nldrh w17, [x14, #8]\\ncbz w17, 1f\\nmov w15, wzr\\n"
    "0: .inst 0xe1206200\\n" /* str za[w15, 0], [x16] */
    ".inst 0x04305830\\n"    /* addsvl x16, x16, #1 */
    "add x15, x15, #1\\ncmp x17, x15\\nb.ne 0b\\n"
    "1: ret\\n"
    "2: brk #1\\n"
    ".size __arm_tpidr2_save, . - __arm_tpidr2_save\\n.popsection\\n"
    ".endif\\n");
#endif"""

_TEXT = """\
/* Written by twofour: {name} for Arm machines with SME, elements of {type}.{steps} */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

typedef struct {{
  {type} *allocated, *aligned;
  int64_t offset;
  int64_t sizes[{rank}], strides[{rank}];
}} {name}_view;

void _mlir_ciface_{kernel}({name}_view *in, {name}_view *out, int64_t begin, int64_t end);

/* The points of `out` whose index on axis 0 is begin to end - 1: threads may share a sweep.
 *
 * Both pointers are to the first point of a region of `extents`, and must not overlap. `in` is also
 * read {before} points before and {after} after that region. Strides are distances in elements
 * between neighbours on all axes but the last, on which neighbours are adjacent. */
static inline void {name}_rows(const {type} *in, {type} *out, const int64_t extents[{rank}],
                               const int64_t in_strides[{outer}],
                               const int64_t out_strides[{outer}], int64_t begin, int64_t end) {{
  {type} *first = ({type} *)in - ({back});
  {name}_view source = {{first, first, 0, {{{grown}}}, {{{in_strides}, 1}}}};
  {name}_view target = {{out, out, 0, {{{extents}}}, {{{out_strides}, 1}}}};
  _mlir_ciface_{kernel}(&source, &target, begin, end);
}}

/* All points of `out`. */
static inline void {name}_sweep(const {type} *in, {type} *out, const int64_t extents[{rank}],
                                const int64_t in_strides[{outer}],
                                const int64_t out_strides[{outer}]) {{
  {name}_rows(in, out, extents, in_strides, out_strides, 0, extents[0]);
}}

#ifdef __cplusplus
}}
#endif

/* For compilers whose run-time library does not have it. */
{save}

#endif
"""
