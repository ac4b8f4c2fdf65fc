# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime and bundles need NumPy and the standard library only; passes need no runtime."""

import subprocess
import sys

import numpy as np
import pytest

from ptx_cases import linear_bundle
from runtime_reference import reference
from twofour.runtime import parse_boundary
from without_compiler import COMPILER, run

STAR = {(0, 0): 0.5, (0, 1): 0.25, (-2, 0): 0.25}


def test_the_guard_works():
    assert "ModuleNotFoundError: No module named" in run("import twofour.api").stderr


@pytest.mark.parametrize(
    "module", ["twofour.runtime", "twofour.runtime.devices.cuda", "twofour.sim"]
)
def test_the_runtime_does_not_import_the_compiler(module):
    done = run(f"import {module}; print(*{{name.partition('.')[0] for name in sys.modules}})")
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert {"twofour", "numpy"} <= imported
    assert not imported & {*COMPILER, "cupy"}


def test_opt_does_not_import_the_runtime():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, twofour.opt.driver; print(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    imported = done.stdout.split()
    assert "twofour.context" in imported
    assert not [name for name in imported if name.startswith("twofour.runtime")]


def test_a_bundle_runs_without_the_compiler(tmp_path):
    linear_bundle(STAR).save(tmp_path / "star.tfb")
    u = np.random.default_rng(0).integers(-8, 9, (9, 13)).astype(np.float64)
    np.save(tmp_path / "u.npy", u)
    done = run(
        "import numpy as np, twofour.runtime\n"
        "folder = sys.argv[1]\n"
        "step = twofour.runtime.load(folder + '/star.tfb', device='sim')\n"
        "u = step(np.load(folder + '/u.npy'), steps=3, boundary='periodic')\n"
        "np.save(folder + '/v.npy', u)\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    expected = reference(u, STAR, parse_boundary("periodic", 2), 3)
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), expected)


def test_a_bundle_that_is_damaged_is_one_error(tmp_path):
    linear_bundle(STAR).save(tmp_path / "star.tfb")
    data = (tmp_path / "star.tfb").read_bytes()
    (tmp_path / "star.tfb").write_bytes(data[:-7])
    done = run("import twofour.runtime; twofour.runtime.load(sys.argv[1])", tmp_path / "star.tfb")
    assert done.stderr.splitlines()[-1] == (
        f"twofour.errors.TwofourError: {tmp_path}/star.tfb:1:1: error: expected a bundle of "
        f"{len(data)} bytes, got {len(data) - 7}"
    )
