# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files in and out: outputs are checked before the work begins, written when it has ended."""

import io
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from twofour.errors import SourceLocation, TwofourError

# The name of standard input and of standard output.
STANDARD_STREAM = "-"
# What the system may refuse.
WRITE = "write the file"
# Bytes that are read of a device: some never end.
MOST_OF_A_DEVICE = 1 << 26
# What bundles begin with, so that others need not know how these go on.
BUNDLE_MAGIC = b"\x89TFB\r\n\x1a\n"


def read_bytes(path: str) -> bytes:
    """The bytes of a file, or of standard input for `-`.

    Raises TwofourError, located at the file, when it cannot be read.
    """
    if not path:
        raise TwofourError("expected the name of a file to read, got ''")
    if path == STANDARD_STREAM and sys.stdin is None:
        raise TwofourError("cannot read the file: it is closed", SourceLocation(path))
    if path != STANDARD_STREAM:
        return read_file(path)
    with system_errors("read the file", path):
        return sys.stdin.buffer.read()


def read_file(path: str | os.PathLike) -> bytes:
    """The bytes of a file; raises TwofourError, located at it, when it cannot be read."""
    with system_errors("read the file", path), open(path, "rb") as file:
        if not stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
            return file.read()
        data = file.read(MOST_OF_A_DEVICE + 1)
        if len(data) > MOST_OF_A_DEVICE:
            raise ValueError(f"it is a device, and gave more than {MOST_OF_A_DEVICE} bytes")
        return data


def make_folder(path: str | os.PathLike) -> None:
    """Make a folder, and those above it, where there is none.

    Raises TwofourError, located at the folder, where that cannot be.
    """
    check_folder_name(path)
    with system_errors("make the folder", path):
        os.makedirs(path, exist_ok=True)


def check_folder_name(path: str | os.PathLike) -> None:
    """Raise TwofourError for an empty name, which would stand for the folder that one is in."""
    if not os.fsdecode(path):
        raise TwofourError("expected the name of a folder, got ''")


@contextmanager
def system_errors(task: str, path: str | os.PathLike) -> Iterator[None]:
    """Raise TwofourError, located at the path, where the system refuses a task."""
    try:
        yield
    except (OSError, ValueError) as failure:
        reason = (getattr(failure, "strerror", None) or str(failure)).lower()
        raise TwofourError(f"cannot {task}: {reason}", SourceLocation(os.fsdecode(path))) from None


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for the files of tools, which goes with the context.

    Raises TwofourError where there is no place for one.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
        except OSError as failure:
            raise _no_temporary_files(failure) from None
        yield Path(folder)


def temporary_file() -> BinaryIO:
    """A nameless file, which goes when it is closed; raises as `temporary_folder` does."""
    try:
        return tempfile.TemporaryFile()
    except OSError as failure:
        raise _no_temporary_files(failure) from None


def _no_temporary_files(failure: OSError) -> TwofourError:
    # It may name folders, which keep their letters.
    reason = failure.strerror or str(failure)
    return TwofourError(f"cannot make temporary files: {reason[:1].lower()}{reason[1:]}")


def output_name(path: str) -> str:
    """The name of an output; `-` for one that stands for standard output."""
    return STANDARD_STREAM if _descriptor(path) == 1 else path


def check_output(path: str) -> None:
    """Raise TwofourError, located at the file, where it could not be written."""
    if not path:
        raise TwofourError("expected the name of a file to write, got ''")
    with system_errors(WRITE, path):
        target = _target(path)
        if target.is_dir():
            raise IsADirectoryError("it is a directory")
        if not target.parent.is_dir():
            # That of the name itself, or where a link leads to.
            given = Path(path).parent
            raise FileNotFoundError(f"no directory '{target.parent if given.is_dir() else given}'")
        # `stat` tells names that no file can have, too.
        if _exists(target) and not os.access(target, os.W_OK):
            raise PermissionError("permission denied")
        if not _is_special(target):
            # Permissions do not tell everything: some file systems take no new files.
            with tempfile.TemporaryFile(dir=target.parent):
                pass


def write_files(files: Sequence[tuple[str, Callable[[BinaryIO], object]]]) -> None:
    """Let every function write its file; where one fails, no file appears or changes.

    Plain files are written beside their targets and renamed when all are complete; they keep the
    permissions of the files that they replace. Devices and pipes get their bytes before the first
    of them is renamed. What was written or renamed before a device, a pipe or a rename fails stays.
    Raises TwofourError, located at the file.
    """
    scratch: list[tuple[str, str, Path]] = []
    streams: list[tuple[str, bytes]] = []
    try:
        for path, write in files:
            with system_errors(WRITE, path):
                target = _target(path)
                if _is_special(target):
                    # NumPy writes to files that can seek only.
                    buffer = io.BytesIO()
                    write(buffer)
                    streams.append((path, buffer.getvalue()))
                    continue
                with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
                    scratch.append((path, file.name, target))
                    write(file)
                if _exists(target):
                    shutil.copymode(target, file.name)
                else:
                    os.chmod(file.name, 0o666 & ~_umask())
        for path, data in streams:
            with system_errors(WRITE, path), _opened(path) as stream:
                stream.write(data)
        for path, name, target in scratch:
            with system_errors(WRITE, path):
                os.replace(name, target)
    finally:
        for _, name, _ in scratch:
            with suppress(FileNotFoundError):
                os.unlink(name)


def real_path(path: str) -> str:
    """Where a name leads to; raises TwofourError, located at it, where the system does not tell."""
    with system_errors(WRITE, path):
        return os.path.realpath(path)


def _target(path: str) -> Path:
    """Where links lead to, for plain files; `/dev/stdout` leads to a name that cannot be opened."""
    if path.endswith(os.sep):
        raise IsADirectoryError("it is a directory")
    return Path(path) if _is_special(Path(path)) else Path(os.path.realpath(path))


def _opened(path: str) -> BinaryIO:
    """A device, a pipe or an open file, to write to."""
    number = _descriptor(path)
    return open(path, "wb") if number is None else os.fdopen(os.dup(number), "wb")


def _descriptor(path: str) -> int | None:
    """The open file that a name stands for; opened by it, a plain one would begin anew."""
    match = re.fullmatch(r"/dev/(?:std(in|out|err)|fd/(\d+))|/proc/self/fd/(\d+)", path)
    if match is None:
        return None
    stream, *numbers = match.groups()
    return ("in", "out", "err").index(stream) if stream else int(numbers[0] or numbers[1])


def _exists(target: Path) -> bool:
    try:
        target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_special(target: Path) -> bool:
    """Whether a path names something besides a plain file: a device, a pipe or an open file."""
    return _exists(target) and (not target.is_file() or _descriptor(str(target)) is not None)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
