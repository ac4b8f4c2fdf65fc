# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses of 16 bytes, as words of 32 bits or, where those are larger, of one element."""

from twofour.codegen.gpu.matrix_ops import i32
from twofour.layout.march import ACCESS
from twofour.mlir import ir, nvvm, vector


def words_of(element: ir.Type, itemsize: int) -> list[ir.Type]:
    """The types of the words of an access to elements of so many bytes."""
    word = i32() if itemsize == 2 else element
    return [word] * (ACCESS // max(4, itemsize))


def load_words(
    address: ir.Value, beyond: int, types: list[ir.Type], hint: str = ""
) -> list[ir.Value]:
    """The words that lie `beyond` bytes from an address of 64 bits, with a hint such as L2::256B.

    It is one access also where some of the words are not needed: LLVM would make several of it, for
    the others.
    """
    words = ", ".join(f"{{$w{number}}}" for number in range(len(types)))
    bits = 8 * ACCESS // len(types)
    load = f"ld.global{hint and '.' + hint}.v{len(types)}.b{bits} {{{words}}}, [{{$r0}}+{beyond}];"
    return list(nvvm.inline_ptx(types, [address], [], load))


def unpack_words(words: list[ir.Value], element: ir.Type) -> list[ir.Value]:
    """The elements of words."""
    if words[0].type == element:
        return words
    packed = vector.from_elements(ir.VectorType.get([len(words)], words[0].type), words)
    return elements(vector.bitcast(ir.VectorType.get([2 * len(words)], element), packed))


def elements(values: ir.Value) -> list[ir.Value]:
    """The elements of a vector."""
    (count,) = values.type.shape
    return [vector.extract(values, [], ir.DenseI64ArrayAttr.get([n])) for n in range(count)]
