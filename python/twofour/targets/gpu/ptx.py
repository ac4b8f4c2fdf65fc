# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX from LLVM IR by llvmlite, and machine code by ptxas where it is installed."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache, lru_cache

import llvmlite.binding as llvmlite

from twofour.codegen.gpu import cuda_toolkit, libdevice
from twofour.errors import TwofourError
from twofour.files import WRITE, read_file, system_errors, temporary_folder
from twofour.targets.llvm_module import optimise, read_module

TRIPLE = "nvptx64-nvidia-cuda"
# The first PTX version with every instruction that is generated; sm_100 needs a later one.
PTX_FEATURES = {"sm_100": "+ptx86"}
DEFAULT_FEATURES = "+ptx85"
# Modules whose code is kept: programs that are made anew, or for another boundary, often have it.
RECENT = 16


@dataclass(frozen=True)
class Resources:
    """What ptxas says of one kernel: registers a thread, bytes spilled and of local memory."""

    registers: int
    spill_bytes: int
    local_bytes: int


@cache
def _initialize() -> None:
    llvmlite.initialize_all_targets()
    llvmlite.initialize_all_asmprinters()
    # Pointers to shared memory take one register.
    llvmlite.set_option("twofour", "--nvptx-short-ptr")


def to_ptx(llvm_ir: str, chip: str) -> str:
    """Optimise a module of kernels and print PTX for a chip such as sm_90.

    Raises TwofourError for IR that llvmlite's LLVM does not read, and where it calls CUDA's
    libdevice and there is none.
    """
    library = None
    if libdevice.is_needed(llvm_ir):
        library = cuda_toolkit.find_libdevice()
        if library is None:
            raise TwofourError("expected CUDA's libdevice (CUDA_HOME), got none")
    return _optimised(llvm_ir, chip, library)


@lru_cache(maxsize=RECENT)
def _optimised(llvm_ir: str, chip: str, library: str | None) -> str:
    _initialize()
    module = read_module(f'target triple = "{TRIPLE}"\n{llvm_ir}')
    machine = llvmlite.Target.from_triple(TRIPLE).create_target_machine(
        cpu=chip, features=PTX_FEATURES.get(chip, DEFAULT_FEATURES), opt=3
    )
    if library is not None:
        libdevice.link(module, library)
    optimise(module, machine)
    return machine.emit_assembly(module)


@dataclass(frozen=True)
class MachineCode:
    """What ptxas made of a module: the cubin, the resources of each kernel, and its warnings."""

    cubin: bytes
    resources: dict[str, Resources]
    warnings: tuple[str, ...]


# What a ptxas says that is too old for the PTX version or the chip.
_TOO_OLD = re.compile(r"Unsupported \.version|is not defined for option 'gpu-name'")


def assemble(ptx: str, chip: str) -> MachineCode | None:
    """Machine code of a module for a chip such as sm_90; None without a ptxas that knows it.

    Raises TwofourError where ptxas refuses the module.
    """
    ptxas = cuda_toolkit.find_ptxas()
    return None if ptxas is None else _assembled(ptx, chip, ptxas)


@lru_cache(maxsize=RECENT)
def _assembled(ptx: str, chip: str, ptxas: str) -> MachineCode | None:
    with temporary_folder() as folder:
        source, target = folder / "kernels.ptx", folder / "kernels.cubin"
        with system_errors(WRITE, source):
            source.write_text(ptx, "utf-8")
        command = [ptxas, f"-arch={chip}", "-v", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        report = done.stdout + done.stderr
        if done.returncode:
            if _TOO_OLD.search(report):
                return None
            raise TwofourError(f"ptxas: {' '.join(report.split())}")
        lines = report.splitlines()
        warnings = tuple(x for x in lines if "warning" in x or "dvisory" in x)
        return MachineCode(read_file(target), read_report(report), warnings)


def read_report(report: str) -> dict[str, Resources]:
    """The resources of every kernel in what `ptxas -v` prints."""
    found = {}
    for part in re.split(r"Compiling entry function '", report)[1:]:
        name = part.partition("'")[0]
        registers = re.search(r"Used (\d+) registers", part)
        stack = re.search(r"(\d+) bytes stack frame", part)
        spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", part)
        found[name] = Resources(
            int(registers[1]) if registers else 0,
            sum(map(int, spills)),
            int(stack[1]) if stack else 0,
        )
    return found
