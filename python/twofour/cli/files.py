# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output files of the command line: checked before the work begins, and written all or none."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from twofour.errors import SourceLocation, TwofourError


def check_output(path: str) -> None:
    """Raise TwofourError, located at the file, where it could not be written."""
    if not path:
        raise TwofourError("expected the name of a file to write, got ''")
    target = Path(os.path.realpath(path))
    with _located_at(path):
        if target.is_dir():
            raise IsADirectoryError("it is a directory")
        if not target.parent.is_dir():
            raise FileNotFoundError(f"no directory '{Path(path).parent}'")
        # `stat` tells names that no file can have, too.
        if _exists(target) and not os.access(target, os.W_OK):
            raise PermissionError("permission denied")
        if not _is_special(target):
            # Permissions do not tell everything: some file systems take no new files.
            with tempfile.TemporaryFile(dir=target.parent):
                pass


def write_files(files: Sequence[tuple[str, Callable[[BinaryIO], object]]]) -> None:
    """Let every function write its file; where one fails, no file appears or changes.

    Files are written beside their targets and renamed at the end; devices and pipes are written to.
    Raises TwofourError, located at the file.
    """
    scratch: list[tuple[str, Path]] = []
    try:
        for path, write in files:
            target = Path(os.path.realpath(path))
            with _located_at(path):
                if _is_special(target):
                    with target.open("wb") as file:
                        write(file)
                    continue
                with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
                    scratch.append((file.name, target))
                    write(file)
                os.chmod(file.name, 0o666 & ~_umask())
        for name, target in scratch:
            with _located_at(str(target)):
                os.replace(name, target)
    finally:
        for name, _ in scratch:
            with suppress(FileNotFoundError):
                os.unlink(name)


@contextmanager
def _located_at(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as failure:
        reason = (getattr(failure, "strerror", None) or str(failure)).lower()
        raise TwofourError(f"cannot write the file: {reason}", SourceLocation(path)) from None


def _exists(target: Path) -> bool:
    try:
        target.stat()
    except FileNotFoundError:
        return False
    return True


def _is_special(target: Path) -> bool:
    """Whether a path names something besides a plain file: a device or a pipe."""
    return _exists(target) and not target.is_file()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
