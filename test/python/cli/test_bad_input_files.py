# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that cannot be read or written, and arrays in files that do not fit."""

import errno
import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bad_input import GENERIC, PRETTY, contents, refused, refused_by_process
from twofour.cli.main import main as twofour
from twofour.errors import TwofourError
from twofour.files import BUNDLE_MAGIC, read_file, write_files
from twofour.opt.main import main as twofour_opt

KERNEL = "heat2d_ftcs"
SMALL = ["run", KERNEL, "--shape", "8,8"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "x.mlir").write_text(GENERIC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "data, at, message",
    [
        (b"", "y.mlir:1:1", "expected one function, got none"),
        (
            BUNDLE_MAGIC + b"...",
            "y.mlir:1:1",
            "expected a program, got a bundle, which twofour.runtime",
        ),
        (b"// nothing\n", "y.mlir:1:1", "expected one function, got none"),
        (b"module {\n  func.func @f(", "y.mlir:2:", "expected"),
        (b"func.func @f() {\n  \xff }", "y.mlir:2:3", "expected UTF-8 text, got byte 0xff"),
        (b"func.func @f() {\0}", "y.mlir:1:1", "expected text, got a binary file"),
        (b"\x7fELF\x02\x01\x01" + bytes(64), "y.mlir:1:1", "expected text, got a binary file"),
        (bytes(range(256)) * 8, "y.mlir:2:118", "expected UTF-8 text, got byte 0x80"),
        (b"hello world\n", "y.mlir:1:1", "custom op 'hello' is unknown"),
        (b'"unclosed\n', "y.mlir:1:10", "expected '\"' in string literal"),
    ],
)
def test_what_is_no_program(capfd, folder, data, at, message):
    (folder / "y.mlir").write_bytes(data)
    refused(capfd, twofour, ["run", "y.mlir"], message, at)


@pytest.mark.parametrize("tool, words", [(twofour, ["run"]), (twofour_opt, [])])
@pytest.mark.parametrize(
    "path, message",
    [
        ("nope.mlir", "cannot read the file: no such file or directory"),
        (".", "cannot read the file: is a directory"),
        ("x.mlir/y.mlir", "cannot read the file: not a directory"),
        ("y" * 300 + ".mlir", "cannot read the file: file name too long"),
    ],
)
def test_files_that_cannot_be_read(capfd, tool, words, path, message):
    refused(capfd, tool, [*words, path], message, f"{path}:1:1")


def test_no_name_of_a_file(capfd):
    refused(capfd, twofour_opt, [""], "expected the name of a file to read, got ''")


def test_a_file_whose_name_is_not_utf_8(capfd, folder):
    path = os.fsdecode(os.fsencode(folder) + b"/\xff.mlir")
    Path(path).write_text(PRETTY)
    assert twofour(["run", path]) == 0
    assert twofour_opt([path, "--mlir-print-debuginfo"]) == 0
    assert "\\udcff.mlir" in capfd.readouterr().out


def test_an_unreadable_file(capfd, folder):
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    (folder / "x.mlir").chmod(0)
    refused(capfd, twofour, ["run", "x.mlir"], "permission denied", "x.mlir:1:1")


def npy(array: np.ndarray, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickled)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, u=np.zeros(3))
    return file.getvalue()


def header(text: str) -> bytes:
    """A .npy file with this header and no data."""
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode("latin1") + b"\n"


GOOD = np.zeros((8, 8), np.float32)
# NumPy before 2.3 makes what it read an array at once, and takes a negative extent for an unknown
# one.
IS_OLD = tuple(map(int, np.__version__.split(".")[:2])) < (2, 3)
CUT = "cannot reshape array of size 5" if IS_OLD else "Failed to read all data"
NEGATIVE = "expected an array with at least one" if IS_OLD else "expected a .npy file"


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "data, message",
    [
        (npy(GOOD)[:150], f"expected a .npy file, got: {CUT}"),
        (npy(GOOD)[:30], "expected a .npy file, got: EOF"),
        (b"", "expected a .npy file, got: No data left in file"),
        (b"not an array", "expected a .npy file"),
        (npy(np.array([{}, 1], object), pickled=True), "expected a .npy file of numbers"),
        (b"\x80\x04}.", "expected a .npy file"),
        (npz(), "expected a .npy file of one array, got an archive"),
        (b"PK\x03\x04 no archive", "expected a .npy file, got: File is not a zip file"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (8, 8"), "expected a .npy file"),
        (header("{'descr': 3, 'fortran_order': False, 'shape': (8, 8)}"), "expected a .npy file"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-8, 8)}"), NEGATIVE),
        (
            header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**12}, {10**5})}}"),
            "expected a .npy file",
        ),
        (b"\x93NUMPY\x02\x00\x10\x27\x00\x00" + b"(" * 10000, "expected a .npy file"),
        (b"\x93NUMPY\x09\x00", "expected a .npy file, got: we only support format version"),
        (npy(GOOD.astype(np.float64)), "expected f32 (float32), got float64"),
        (npy(GOOD.astype(np.int32)), "expected f32 (float32), got int32"),
        (npy(GOOD.astype(">f4")), "expected f32 (float32) in native byte order, got dtype '>f4'"),
        (npy(np.zeros((3, 3), [("a", "f4")])), "expected f32 (float32), got void32"),
        (npy(np.array([["a"]])), "expected f32 (float32), got str32"),
        (npy(GOOD[0]), "expected an array of rank 2, got rank 1 (shape (8,))"),
        (npy(np.float32(1)), "expected an array of rank 2, got rank 0"),
        # NumPy warns of this shape besides refusing it.
        (
            npy(GOOD).replace(b"(8, 8), }" + b" " * 21, b"(9223372036854775808, 18), }  "),
            "Maximum allowed dimension exceeded",
        ),
        (npy(GOOD[:0]), "expected an array with at least one element, got shape (0, 8)"),
    ],
)
def test_arrays_in_files(capfd, folder, data, message):
    (folder / "u.npy").write_bytes(data)
    words = ["run", KERNEL, "--input", "u.npy", "--output", "v.npy"]
    refused(capfd, twofour, words, message, "u.npy:1:1")


@pytest.mark.parametrize(
    "array, message",
    [
        (np.zeros(65), "expected an array of shape (66,), got shape (65,)"),
        (np.zeros((66, 1)), "expected an array of shape (66,), got shape (66, 1)"),
        (np.zeros(66, np.float32), "expected f64 (float64), got float32"),
    ],
)
def test_arrays_that_do_not_fit_a_program(capfd, folder, array, message):
    np.save(folder / "u.npy", array)
    refused(capfd, twofour, ["run", "x.mlir", "--input", "u.npy"], message, "u.npy:1:1")


def test_array_files_that_are_not_there(capfd):
    words = ["run", KERNEL, "--input"]
    refused(capfd, twofour, [*words, "u.npy"], "no such file or directory", "u.npy:1:1")
    refused(capfd, twofour, [*words, "."], "is a directory", ".:1:1")


UNWRITABLE = [
    ("missing/v", "no directory 'missing'"),
    ("x.mlir/v", "no directory 'x.mlir'"),
    ("v" * 300, "file name too long"),
    # No user, not even root, can make a file there.
    ("/proc/v", "no such file or directory"),
]


@pytest.mark.parametrize("path, message", UNWRITABLE)
def test_outputs_that_cannot_be_written(capfd, path, message):
    output = f"{path}.npy"
    refused(capfd, twofour, [*SMALL, "--output", output], message, f"{output}:1:1")


@pytest.mark.parametrize("path, message", UNWRITABLE)
def test_pictures_that_cannot_be_written(capfd, path, message):
    pytest.importorskip("matplotlib")
    words = [*SMALL, "--output", "v.npy", "--plot", f"{path}.png"]
    refused(capfd, twofour, words, message, f"{path}.png:1:1")


def test_outputs_that_are_no_files(capfd):
    refused(capfd, twofour, [*SMALL, "--output", "."], "it is a directory", ".:1:1")


@pytest.mark.parametrize("path", ["v.csv", "v.npz", "v.npy.gz", "x.1/v.txt"])
def test_outputs_of_other_formats(capfd, folder, path):
    (folder / "x.1").mkdir()
    message = "expected a file that ends with .npy"
    refused(capfd, twofour, [*SMALL, "--output", path], message, f"{path}:1:1")


@pytest.mark.parametrize("path", ["v", "x.1/v", "v.NPY"])
def test_names_of_arrays(folder, path):
    (folder / "x.1").mkdir()
    assert twofour([*SMALL, "--output", path]) == 0
    assert np.load(folder / path).ndim == 2


def test_an_output_that_is_read_only(capfd, folder):
    if os.geteuid() == 0:
        pytest.skip("root may write every file")
    (folder / "v.npy").write_bytes(b"precious")
    (folder / "v.npy").chmod(stat.S_IRUSR)
    refused(capfd, twofour, [*SMALL, "--output", "v.npy"], "permission denied", "v.npy:1:1")


def test_a_full_disk_leaves_other_outputs_alone(folder):
    """No file appears or changes where the last of several cannot be written."""

    def full(file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (folder / "a").write_bytes(b"old")
    before = contents(folder)
    files = [("a", lambda file: file.write(b"new")), ("b", lambda file: file.write(b"new"))]
    with pytest.raises(TwofourError, match="^c:1:1: error: cannot write the file: no space left"):
        write_files([*files, ("c", full)])
    assert contents(folder) == before
    write_files(files)
    assert contents(folder) == {**before, "a": b"new", "b": b"new"}


def test_pipes_are_written_to_and_stay(capfd, folder):
    os.mkfifo("pipe")
    # Opened for both directions, a pipe keeps no one waiting.
    pipe = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)
    assert twofour([*SMALL, "--output", "pipe"]) == 0
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert np.load(io.BytesIO(os.read(pipe, 4096))).shape == (8, 8)
    os.close(pipe)


def test_standard_output_as_a_pipe(folder):
    command = [str(Path(sys.executable).with_name("twofour")), *SMALL, "--output", "/dev/stdout"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    file = io.BytesIO(done.stdout)
    assert np.load(file).shape == (8, 8)
    assert file.read() == b""
    assert done.stderr.startswith(b"heat2d_ftcs: 36 points x 1 steps")


def test_a_folder_that_is_gone(folder):
    (folder / "gone").mkdir()
    script = "cd gone && rmdir ../gone && twofour compile heat2d_ftcs --target sm_90 -o x.tfb"
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(script, shell=True, capture_output=True, text=True, env=tools, timeout=60)
    message = "x.tfb:1:1: error: cannot write the file: no such file or directory\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_links_to_nowhere(capfd, folder):
    (folder / "v.npy").symlink_to("missing/w.npy")
    message = f"no directory '{folder / 'missing'}'"
    refused(capfd, twofour, [*SMALL, "--output", "v.npy"], message, "v.npy:1:1")


def test_files_may_be_longer_than_what_is_read_of_devices(folder, monkeypatch):
    monkeypatch.setattr("twofour.files.MOST_OF_A_DEVICE", 3)
    (folder / "long").write_bytes(b"longer")
    assert read_file("long") == b"longer"


@pytest.mark.parametrize("tool, words", [(twofour, ["run"]), (twofour_opt, [])])
def test_devices_that_never_end(capfd, tool, words):
    message = "it is a device, and gave more than 67108864 bytes"
    refused(capfd, tool, [*words, "/dev/zero"], message, "/dev/zero:1:1")


def test_a_failure_writes_nothing_to_pipes(folder):
    os.mkfifo("pipe")
    pipe = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)

    def fail(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(TwofourError, match="^c:1:1: error: cannot write the file"):
        write_files([("pipe", lambda file: file.write(b"new")), ("c", fail)])
    with pytest.raises(BlockingIOError):
        os.read(pipe, 16)
    os.close(pipe)


def test_permissions_of_outputs(folder):
    (folder / "old").write_bytes(b"old")
    (folder / "old").chmod(0o640)
    (folder / "link").symlink_to("old")
    before = os.umask(0o027)
    try:
        write_files([(name, lambda file: file.write(b"new")) for name in ("link", "new")])
        (folder / "old").chmod(0o604)
        write_files([("old", lambda file: file.write(b"newer"))])
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((folder / "old").stat().st_mode) == 0o604
    assert (folder / "link").is_symlink() and (folder / "link").read_bytes() == b"newer"


@pytest.mark.parametrize(
    "path, message",
    [
        ("missing/y.mlir", "no directory 'missing'"),
        (".", "is a directory"),
        ("x.mlir/y", "no directory 'x.mlir'"),
        ("/proc/y", "no such file or directory"),
    ],
)
def test_outputs_of_twofour_opt(capfd, path, message):
    refused(capfd, twofour_opt, ["x.mlir", "-o", path], message, f"{path}:1:1")


def test_pictures(capfd, monkeypatch):
    words = ["--output", "v.npy", "--plot"]
    one = ["run", "heat1d_ftcs", "--shape", "8"]
    refused(capfd, twofour, [*one, *words, "v.png"], "expected a 2-D field to plot", "v.png:1:1")
    refused(capfd, twofour, [*SMALL, *words, "v.pdf"], "file that ends with .png", "v.pdf:1:1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    refused(capfd, twofour, [*SMALL, *words, "v.png"], "expected matplotlib for --plot")


def test_a_child_process_leaves_nothing_behind(folder):
    refused_by_process(
        folder, ["twofour", *SMALL, "--output", "/proc/v.npy"], "no such file", "/proc/v.npy:1:1"
    )
    np.save(folder / "u.npy", np.zeros(65))
    words = ["twofour", "run", "x.mlir", "--input", "u.npy", "--output", "v.npy"]
    refused_by_process(folder, words, "expected an array of shape (66,)", "u.npy:1:1")
    refused_by_process(folder, ["twofour-opt", "u.npy"], "expected UTF-8 text", "u.npy:1:1")
