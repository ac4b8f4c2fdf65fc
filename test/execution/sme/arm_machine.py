# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building C programs for Arm and running them under qemu, with every instruction counted."""

import functools
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
SYMBOLS, DISASSEMBLER = "aarch64-linux-gnu-nm", "aarch64-linux-gnu-objdump"
TIMEOUT = 120
C_TYPES = {"f64": "double", "f32": "float"}
DTYPES = {"f64": np.float64, "f32": np.float32}
OUT_PADDING, UNTOUCHED = 3, -77


def missing_tools() -> list[str]:
    """What is not installed of what the tests run."""
    tools = (COMPILER, EMULATOR, SYMBOLS, DISASSEMBLER)
    return [tool for tool in tools if shutil.which(tool) is None]


@dataclass(frozen=True)
class Sweep:
    """A function `name(in, out, extents, in_strides, out_strides, begin, end)` of a header."""

    name: str
    element: str
    before: tuple[int, ...]
    after: tuple[int, ...]


class Program:
    """An executable that runs one sweep, on input and output that end or begin at a guard page.

    A sweep that `streams` finds vectors of another length outside of streaming mode, which it must
    not notice.
    """

    def __init__(
        self,
        folder: Path,
        sweep: Sweep,
        header: Path,
        parts: list[Path],
        *flags: str,
        streams: bool = True,
    ):
        self.folder, self.sweep, self.streams = folder, sweep, streams
        self.path = folder / f"{sweep.name}.exe"
        braces = ["{" + ",".join(map(str, reach)) + "}" for reach in (sweep.before, sweep.after)]
        definitions = {
            "SWEEP": sweep.name,
            "TYPE": C_TYPES[sweep.element],
            "RANK": len(sweep.before),
            "BEFORE": braces[0],
            "AFTER": braces[1],
        }
        run_tool(
            [
                COMPILER, "-static", "-O2", *flags, "-include", header, HERE / "main.c", *parts,
                *(f"-D{name}={value}" for name, value in definitions.items()), "-o", self.path,
            ]
        )  # fmt: skip

    def run(
        self,
        values: np.ndarray,
        vector_bits: int,
        *,
        rows: tuple[int, int] | None = None,
        guard: str = "end",
        plugin: tuple[str, ...] = (),
    ) -> np.ndarray:
        """The output of a sweep over `values`, halo included, at this length of vectors.

        Rows outside of `rows` come back as UNTOUCHED. Raises AssertionError for a write beside
        the rows.
        """
        halo = [b + a for b, a in zip(self.sweep.before, self.sweep.after, strict=True)]
        extents = [n - h for n, h in zip(values.shape, halo, strict=True)]
        dtype = DTYPES[self.sweep.element]
        head = np.array([*extents, *(rows or (0, extents[0]))], np.int64)
        done = run_tool(
            [EMULATOR, *cpu_flags(vector_bits, self.streams), *plugin, self.path, guard],
            input=head.tobytes() + np.ascontiguousarray(values, dtype).tobytes(),
        )
        out = np.frombuffer(done, dtype).reshape(*extents[:-1], extents[-1] + OUT_PADDING)
        assert (out[..., extents[-1] :] == UNTOUCHED).all(), "written beside the rows"
        return out[..., : extents[-1]]

    def count(self, values: np.ndarray, vector_bits: int, function: str) -> tuple:
        """The output, and how often each instruction of the functions that match was executed.

        The second result is a Counter of mnemonics.
        """
        begin, end = function_range(self.path, function)
        output = self.folder / "counts.txt"
        arguments = f"from={begin:#x},to={end:#x},output={output}"
        plugin = ("-plugin", f"{plugin_path(self.folder)},{arguments}")
        result = self.run(values, vector_bits, plugin=plugin)
        names, counts = mnemonics(self.path, begin, end), Counter()
        for line in output.read_text().splitlines():
            address, executed = line.split()
            counts[names[int(address, 16)]] += int(executed)
        return result, counts


def cpu_flags(vector_bits: int, streams: bool = True) -> list[str]:
    """A machine with vectors of this length, when `streams` in streaming mode only."""
    streaming, other = vector_bits // 8, 32 if vector_bits == 128 else 16
    other = other if streams else streaming
    return ["-cpu", f"max,sme-default-vector-length={streaming},sve-default-vector-length={other}"]


def run_tool(words: list, **options) -> bytes:
    """What a command prints; raises AssertionError with its errors where it fails."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, timeout=TIMEOUT, check=False, **options
    )
    assert done.returncode == 0, f"{words[0]}: {done.returncode}\n{done.stderr.decode()}"
    return done.stdout


def function_range(program: Path, pattern: str) -> tuple[int, int]:
    """The addresses from the first to the last function that matches, which must be neighbours."""
    lines = run_tool([SYMBOLS, "-S", program]).decode().splitlines()
    symbols = [line.split() for line in lines if re.search(rf" [tTW] {pattern}$", line)]
    assert symbols, f"expected functions {pattern} in {program}"
    ranges = sorted((int(a, 16), int(a, 16) + int(size, 16)) for a, size, *_ in symbols)
    assert all(b[0] - a[1] < 64 for a, b in zip(ranges, ranges[1:])), ranges  # noqa: B905
    return ranges[0][0], ranges[-1][1]


def mnemonics(program: Path, begin: int, end: int) -> dict[int, str]:
    """The mnemonic of every instruction in a range, by address."""
    text = run_tool(
        [DISASSEMBLER, "-d", f"--start-address={begin}", f"--stop-address={end}", program]
    ).decode()
    found = re.findall(r"^\s*([0-9a-f]+):\t[0-9a-f]{8} \t(\S+)", text, re.MULTILINE)
    return {int(address, 16): name for address, name in found}


@functools.cache
def plugin_path(folder: Path) -> Path:
    """The counting plugin, for the version of the plugin interface that this qemu has."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "expected a C compiler of this machine, gcc or cc"
    library = folder / "count_instructions.so"
    for version in range(1, 8):
        run_tool(
            [
                compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden",
                f"-DPLUGIN_VERSION={version}", HERE / "count_instructions.c", "-o", library,
            ]
        )  # fmt: skip
        probe = f"{library},from=1,to=2,output={library}.txt"
        # Plugins are loaded before the program, which is missing here.
        done = subprocess.run(
            [EMULATOR, "-plugin", probe, folder / "no-program"],
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
        if b"plugin" not in done.stderr:
            return library
    raise AssertionError(f"expected a qemu that loads plugins: {done.stderr.decode()}")
