# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels around single instructions: every thread loads operands, executes, stores results."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from twofour import sim

DTYPES = {"b8": np.uint8, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64}
HEADER = ".version 8.7\n.target {target}\n.address_size 64\n"


@dataclass(frozen=True)
class Snippet:
    """Instructions that make registers %o0, %o1 ... of %i0, %i1 ...

    They may use the predicates %p0 to %p7 and the registers %h, %t and %w 0 to 7 of 16, 32 and 64
    bits; %id0 is the number of the thread in the grid, %id2 that in its block. 8-bit operands lie
    in 16-bit registers. `target` is the oldest chip that has the instructions, `shared` the size of
    the static array `memory` in bytes. `globals` are declarations of the module; `$` in them and in
    the body stands for the name of the kernel.
    """

    body: str
    inputs: tuple[str, ...] = ("b32", "b32")
    outputs: tuple[str, ...] = ("b32",)
    target: str = "sm_80"
    shared: int = 0
    globals: str = ""

    def entry(self, name: str) -> str:
        """The kernel of that name, after its global variables."""
        pointers = [f"{name}_{i}" for i in range(len(self.inputs) + len(self.outputs))]
        lines = [self.globals, f".visible .entry {name}("]
        lines.append(",\n".join(f"  .param .u64 {pointer}" for pointer in pointers))
        lines += [")", "{", "  .reg .pred %p<8>;", "  .reg .b16 %h<8>;", "  .reg .b32 %t<8>;"]
        lines += ["  .reg .b64 %w<8>;", "  .reg .b32 %id<3>;", "  .reg .b64 %at<3>;"]
        if self.shared:
            lines.append(f"  .shared .align 16 .b8 memory[{self.shared}];")
        registers = [f"%i{i}" for i in range(len(self.inputs))]
        registers += [f"%o{i}" for i in range(len(self.outputs))]
        kinds = self.inputs + self.outputs
        for register, kind in zip(registers, kinds, strict=True):
            lines.append(f"  .reg .{'b16' if kind == 'b8' else kind} {register};")
        lines += ["  mov.u32 %id0, %ctaid.x;", "  mov.u32 %id1, %ntid.x;"]
        lines += ["  mov.u32 %id2, %tid.x;", "  mad.lo.u32 %id0, %id0, %id1, %id2;"]
        for i, (register, kind) in enumerate(zip(registers, kinds, strict=True)):
            if i == len(self.inputs):
                lines.append("  " + self.body.strip().replace("\n", "\n  "))
            lines += [
                f"  ld.param.u64 %at0, [{pointers[i]}];",
                f"  mul.wide.u32 %at1, %id0, {np.dtype(DTYPES[kind]).itemsize};",
                "  add.s64 %at2, %at0, %at1;",
            ]
            if i < len(self.inputs):
                lines.append(f"  ld.global.{kind} {register}, [%at2];")
            else:
                lines.append(f"  st.global.{kind} [%at2], {register};")
        return "\n".join([*lines, "  ret;", "}"]).replace("$", name)

    def __call__(self, *operands: np.ndarray, block: int = 0) -> list[np.ndarray]:
        """Results of as many threads as the operands have elements, in blocks of one warp or more.

        The operands are arrays [threads] of unsigned integers; threads must be a multiple of 32.
        """
        (threads,) = {len(operand) for operand in operands}
        block = block or (32 if threads % 64 else 64)
        assert threads % block == 0 and block % 32 == 0
        text = HEADER.format(target="sm_90") + self.entry("snippet")
        gpu = sim.Gpu("sm_90")
        arrays = []
        for operand, kind in zip(operands, self.inputs, strict=True):
            assert operand.dtype == DTYPES[kind]
            arrays.append(gpu.memory.array(np.ascontiguousarray(operand)))
        arrays += [gpu.memory.empty((threads,), DTYPES[kind]) for kind in self.outputs]
        kernel = sim.parse(text, name="snippet.ptx").kernels["snippet"]
        addresses = [array.__array_interface__["data"][0] for array in arrays]
        gpu.launch(kernel, (threads // block, 1, 1), (block, 1, 1), addresses)
        return [np.array(array) for array in arrays[len(self.inputs) :]]


def check_assembles(snippets: Sequence[Snippet], folder: Path) -> None:
    """Let ptxas judge whether the snippets are PTX, each for every target that should have it."""
    for target in {"sm_80", "sm_90", *(snippet.target for snippet in snippets)}:
        entries = [
            snippet.entry(f"snippet_{i}")
            for i, snippet in enumerate(snippets)
            if _has(target, snippet.target)
        ]
        text = "\n".join([HEADER.format(target=target), *entries])
        check_text_assembles(text, target, folder)


def _has(target: str, needed: str) -> bool:
    """Whether a chip has what another one has: of `a` ones it is not passed on."""
    if target == needed or needed.endswith("a"):
        return target == needed
    number, least = (int(re.sub(r"\D", "", chip)) for chip in (target, needed))
    return number >= least


def check_text_assembles(text: str, target: str, folder: Path) -> None:
    """Let ptxas judge whether the text is PTX for the target."""
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("ptxas is not installed")
    path = folder / f"{target}.ptx"
    path.write_text(text)
    command = [ptxas, "-O0", f"-arch={target}", path, "-o", folder / "out.cubin"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
