# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bundles: a compiled program in one file that runs without the compiler.

Layout, all numbers little-endian:

    magic               8 bytes, with a high bit and both line ends, which text transfers destroy
    format version      u32
    SHA-256             32 bytes, over everything that follows
    lengths             3 x u64: manifest, PTX, cubin (0: there is none)
    manifest            JSON with sorted keys, ASCII (see twofour.runtime.manifest_schema)
    PTX                 UTF-8
    cubin               what ptxas made of the PTX, for the very chip of the manifest

The same bundle always has the same bytes.
"""

import hashlib
import json
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from twofour.errors import SourceLocation, TwofourError
from twofour.files import BUNDLE_MAGIC, read_file, write_files
from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.manifest import (
    FORMAT,
    FieldsProgram,
    KernelSpec,
    LinearProgram,
    read_kernels,
    read_program,
)
from twofour.runtime.manifest_schema import check_manifest

_HEADER = struct.Struct("<8sI32s")
_LENGTHS = struct.Struct("<3Q")


@dataclass(frozen=True)
class Bundle:
    """A manifest, the PTX it describes, and a cubin of that PTX where ptxas was there.

    Raises TwofourError for a manifest that does not fit its schema.
    """

    manifest: dict
    ptx: str
    cubin: bytes | None = None

    def __post_init__(self):
        check_manifest(self.manifest)

    @cached_property
    def kernels(self) -> dict[str, KernelSpec]:
        """The kernels by the names of their PTX entries."""
        return read_kernels(self.manifest)

    @cached_property
    def program(self) -> LinearProgram | FieldsProgram:
        """The program over these kernels."""
        return read_program(self.manifest)

    @property
    def target(self) -> str:
        """The chip compiled for, such as sm_90."""
        return self.manifest["target"]

    def with_boundary(self, boundary: Sequence[AxisBoundary]) -> "Bundle":
        """The same bundle for runs with another boundary, one entry an axis."""
        manifest = {**self.manifest, "boundary": [str(entry) for entry in boundary]}
        return Bundle(manifest, self.ptx, self.cubin)

    def to_bytes(self) -> bytes:
        """The bytes of the file."""
        text = json.dumps(self.manifest, sort_keys=True, separators=(",", ":"), allow_nan=False)
        parts = [text.encode("ascii"), self.ptx.encode("utf-8"), self.cubin or b""]
        body = _LENGTHS.pack(*map(len, parts)) + b"".join(parts)
        return _HEADER.pack(BUNDLE_MAGIC, FORMAT, hashlib.sha256(body).digest()) + body

    @property
    def sha256(self) -> str:
        """The SHA-256 of these bytes, in hexadecimal digits."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def save(self, path: str | os.PathLike) -> None:
        """Write the file, whole or not at all; raises TwofourError where that is not possible."""
        write_files([(_path_name(path), lambda file: file.write(self.to_bytes()))])

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "<bundle>") -> "Bundle":
        """The bundle that `to_bytes` gave; `name` is the file's, for messages.

        Raises TwofourError for anything else: other files, newer formats, damage anywhere.
        """
        try:
            return cls(*_parts(bytes(data)))
        except TwofourError as error:
            raise TwofourError(error.message, SourceLocation(name)) from None

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Bundle":
        """Read a file that `save` wrote; raises TwofourError for any other."""
        name = _path_name(path)
        return cls.from_bytes(read_file(name), name)


def _path_name(path: object) -> str:
    if not isinstance(path, str | bytes | os.PathLike):
        raise TwofourError(f"expected the path of a bundle, got {path!r}")
    return os.fsdecode(path)


def _parts(data: bytes) -> tuple[dict, str, bytes | None]:
    if not data.startswith(BUNDLE_MAGIC):
        got = "an empty file" if not data else f"one that begins with {data[:8]!r}"
        raise TwofourError(f"expected a bundle, got {got}")
    start = _HEADER.size + _LENGTHS.size
    if len(data) < _HEADER.size:
        raise TwofourError(f"expected a bundle of at least {start} bytes, got {len(data)}")
    _, version, digest = _HEADER.unpack_from(data)
    if version != FORMAT:
        raise TwofourError(f"expected a bundle of format {FORMAT}, got format {version}")
    if len(data) < start:
        raise TwofourError(f"expected a bundle of at least {start} bytes, got {len(data)}")
    lengths = _LENGTHS.unpack_from(data, _HEADER.size)
    if len(data) != start + sum(lengths):
        raise TwofourError(f"expected a bundle of {start + sum(lengths)} bytes, got {len(data)}")
    found = hashlib.sha256(memoryview(data)[_HEADER.size :]).digest()
    if found != digest:
        raise TwofourError(
            f"expected a bundle with SHA-256 {digest.hex()[:16]}..., got {found.hex()[:16]}...: "
            "its bytes were altered"
        )
    ends = [start + sum(lengths[: i + 1]) for i in range(3)]
    text, ptx, cubin = (data[a:b] for a, b in zip((start, *ends), ends, strict=False))
    try:
        manifest, code = json.loads(text), ptx.decode("utf-8")
    except (ValueError, RecursionError) as failure:
        reason = str(failure).splitlines()[0] if str(failure) else "it is nested too deeply"
        raise TwofourError(f"expected a manifest in JSON and PTX in UTF-8, got: {reason}") from None
    return manifest, code, cubin or None
