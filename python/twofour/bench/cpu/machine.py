# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What figures were measured on."""

import glob
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from twofour.bench.cpu.c_library import gcc_version
from twofour.bench.cpu.pinning import usable_cpus
from twofour.bench.report import versions
from twofour.codegen.cpu.vector_unit import vector_unit
from twofour.runtime.processor import CACHE_FOLDERS, cpuinfo

# Packages that are compared, by their names on PyPI.
PEERS = ("numba", "devito", "jax", "jaxlib", "scipy")


def describe_machine() -> str:
    """The processor, its caches and vector registers, and how many this process may use."""
    unit = vector_unit("host")
    processors = len(usable_cpus())
    return "; ".join(
        [
            _model(),
            f"{processors} processor{'s' if processors > 1 else ''}",
            _caches() or "caches of unknown size",
            f"{unit.registers} vector registers of {unit.bytes} bytes",
            f"{platform.system()} {platform.machine()}",
        ]
    )


def all_versions() -> dict[str, str]:
    """Versions of the project, of what it computes with, and of all that it is compared with."""
    found = versions()
    gcc = gcc_version()
    if gcc:
        found["gcc"] = gcc
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _model() -> str:
    """The processor's name, with the numbers that tell its core where the name does not."""
    entries = cpuinfo()
    name = entries.get("model name") or platform.processor() or "unknown processor"
    numbers = [f"{key} {entries[key]}" for key in ("cpu family", "model") if key in entries]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _caches() -> str:
    """The caches for data that one processor reaches."""
    found = []
    for folder in sorted(glob.glob(CACHE_FOLDERS)):
        try:
            kind, level, size = (
                Path(folder, name).read_text("utf-8").strip() for name in ("type", "level", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            found.append(f"L{level}{'d' if kind == 'Data' else ''} {_size(size)}")
    return ", ".join(found)


def _size(text: str) -> str:
    """A size such as 32768K in the largest unit that keeps it whole."""
    if not text.endswith("K") or not text[:-1].isdigit():
        return text
    kibibytes = int(text[:-1])
    return f"{kibibytes} KiB" if kibibytes % 1024 else f"{kibibytes // 1024} MiB"
