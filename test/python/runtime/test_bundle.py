# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bundles: the same bytes again, and one clear error for everything that is no intact bundle."""

import copy
import hashlib
import os
import struct

import numpy as np
import pytest

from ptx_cases import kernel_entry, linear_bundle, manifest
from twofour.errors import TwofourError
from twofour.files import BUNDLE_MAGIC
from twofour.runtime import Bundle
from twofour.runtime.loops import Bound, Carried, View
from twofour.runtime.manifest import FORMAT, step_entry

HEADER = 12 + 32
STAR = {(0, 0): 0.5, (0, 1): 0.25, (-2, 0): 0.25}


@pytest.fixture
def bundle():
    return linear_bundle(STAR, fused=2, cubin=b"\x7fELF cubin")


def fields_manifest():
    field = {
        "element": "f64",
        "shape": [9, 7],
        "loaded": True,
        "stored": False,
        "interior": [[1, 1], [8, 6]],
    }
    view = {"buffer": 0, "slices": [[1, 8], [1, 6]]}
    program = {
        "kind": "fields",
        "name": "test",
        "fields": [
            {**field, "position": 0},
            {**field, "position": 2, "loaded": False, "stored": True},
        ],
        "rotation": [2, 1, 0, 3],
        "scalars": ["f64", "i32"],
        "steps": [
            {"kind": "launch", "kernel": "k", "inputs": [{"buffer": 0, "slices": None}],
             "scalars": [1], "outputs": [{**view, "buffer": 4}]},
            {"kind": "loop", "index": 5, "lower": 0, "upper": {"argument": 3}, "step": 1,
             "carried": [{"value": 6, "initial": {"buffer": 0, "slices": None},
                          "following": {"buffer": 7, "slices": None}},
                         {"value": 7, "initial": {"buffer": 2, "slices": None},
                          "following": {"buffer": 6, "slices": None}}],
             "body": [
                 {"kind": "launch", "kernel": "n", "inputs": [{"buffer": 6, "slices": None}],
                  "scalars": [5], "outputs": [{**view, "buffer": 7}]}]},
        ],
        "workspaces": [[[9, 7], "f64"]],
        "time_loop": True,
        "boundary_kernels": ["r"],
    }  # fmt: skip
    kernels = {
        "k": kernel_entry(2, 8, scalars=["f64"]),
        "n": kernel_entry(2, 8, scalars=["index"]),
        "r": kernel_entry(2, 8, scalars=["i32", "index", "index", "i64"] * 2),
    }
    return manifest("f64", ["fixed", "fixed"], kernels, program)


def refused(data, message):
    with pytest.raises(TwofourError) as caught:
        Bundle.from_bytes(data, "x.tfb")
    assert str(caught.value).startswith("x.tfb:1:1: error: expected a bundle"), caught.value
    assert message in str(caught.value)


@pytest.mark.parametrize("cubin", [None, b"\0\1\2"])
def test_a_bundle_comes_back_from_its_bytes(cubin, tmp_path):
    bundle = linear_bundle(STAR, "f16", cubin=cubin)
    again = Bundle.from_bytes(bundle.to_bytes())
    assert again == bundle and again.to_bytes() == bundle.to_bytes()
    bundle.save(tmp_path / "x.tfb")
    assert Bundle.load(tmp_path / "x.tfb") == bundle
    assert os.listdir(tmp_path) == ["x.tfb"]


def test_bytes_do_not_depend_on_the_order_of_members(bundle):
    turned = dict(reversed(bundle.manifest.items()))
    assert Bundle(turned, bundle.ptx, bundle.cubin).to_bytes() == bundle.to_bytes()


def test_what_the_manifest_says(bundle):
    assert bundle.program.fused_steps == 2 and bundle.program.rank == 2
    assert bundle.program.reach_lo == (2, 0) and bundle.program.reach_hi == (0, 1)
    assert bundle.kernels["edges"].alignment == 8 and bundle.kernels["fused"].tile == (1, 32)
    program = Bundle(fields_manifest(), "").program
    launch, loop = program.steps
    assert launch.outputs == (View(4, (slice(1, 8), slice(1, 6))),)
    assert launch.inputs == (View(0, ()),)
    assert (loop.index, loop.lower, loop.upper, loop.step) == (5, 0, Bound(3), 1)
    assert loop.carried[1] == Carried(7, View(2, ()), View(6, ()))
    assert loop.body[0].scalars == (5,)
    assert [step_entry(step) for step in program.steps] == fields_manifest()["program"]["steps"]
    assert program.fields[1].interior == ((1, 1), (8, 6)) and program.workspaces[0][0] == (9, 7)


def test_every_truncation_is_refused(bundle):
    data = bundle.to_bytes()
    for length in range(len(data)):
        refused(data[:length], "got")
    refused(data + b"\0", f"expected a bundle of {len(data)} bytes, got {len(data) + 1}")


def test_every_altered_byte_is_refused(bundle):
    data = bundle.to_bytes()
    for position in range(len(data)):
        for bit in (0x01, 0x80):
            altered = bytearray(data)
            altered[position] ^= bit
            refused(altered, "got")


def test_what_is_wrong_with_a_file_is_said(bundle, tmp_path):
    data = bundle.to_bytes()
    refused(b"", "got an empty file")
    refused(b"\x7fELF\2\1\1\0", "got one that begins with b'\\x7fELF")
    refused(data.replace(b"\r\n", b"\n"), "got one that begins with")
    newer = BUNDLE_MAGIC + struct.pack("<I", FORMAT + 1) + data[12:]
    refused(newer, f"expected a bundle of format {FORMAT}, got format {FORMAT + 1}")
    refused(data[:-1] + b"x", "its bytes were altered")
    with pytest.raises(TwofourError, match="cannot read the file: no such file") as caught:
        Bundle.load(tmp_path / "none.tfb")
    assert caught.value.location.file == str(tmp_path / "none.tfb")
    with pytest.raises(TwofourError, match="cannot read the file: is a directory"):
        Bundle.load(tmp_path)
    with pytest.raises(TwofourError, match="expected the path of a bundle, got 3"):
        Bundle.load(3)
    with pytest.raises(TwofourError, match="expected the path of a bundle, got None"):
        bundle.save(None)


def test_a_bundle_that_cannot_be_written_leaves_the_old_one(bundle, tmp_path, monkeypatch):
    (tmp_path / "x.tfb").write_bytes(b"old")

    def full(*names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TwofourError, match="cannot write the file: no space left on device"):
        bundle.save(tmp_path / "x.tfb")
    assert os.listdir(tmp_path) == ["x.tfb"] and (tmp_path / "x.tfb").read_bytes() == b"old"


@pytest.mark.parametrize(
    "text, message",
    [
        (b"{", "expected a manifest in JSON"),
        (b"\xff", "expected a manifest in JSON"),
        (b"[" * 100000, "expected a manifest in JSON"),
        (b"[]", "manifest: expected an object at its top, got []"),
        (b"{}", "manifest: expected a member format, got none"),
    ],
)
def test_manifests_that_are_none(text, message):
    body = struct.pack("<3Q", len(text), 0, 0) + text
    data = BUNDLE_MAGIC + struct.pack("<I", FORMAT) + hashlib.sha256(body).digest() + body
    with pytest.raises(TwofourError) as caught:
        Bundle.from_bytes(data, "x.tfb")
    assert str(caught.value).startswith("x.tfb:1:1: error: ")
    assert message in str(caught.value)


def leaves(value, path=()):
    """Paths of everything in a manifest but its top."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from leaves(inner, (*path, key))


@pytest.mark.parametrize("which", ["linear", "fields"])
def test_every_member_is_needed_and_of_its_type(bundle, which):
    good = bundle.manifest if which == "linear" else fields_manifest()
    Bundle(good, "")
    for path in leaves(good):
        for wrong in (object, {"x": 1}, -(2**40), "?", 1.5, [None]):
            broken = copy.deepcopy(good)
            parent = broken
            for key in path[:-1]:
                parent = parent[key]
            if wrong is object:
                if isinstance(parent, list) or path[:-1] == ("kernels",):
                    continue
                del parent[path[-1]]
            elif path[-1] in ("lower", "upper") and "steps" in path and isinstance(wrong, int):
                continue
            elif type(wrong) is type(parent[path[-1]]) and isinstance(wrong, str):
                if path[0] in ("generator", "source", "pipeline") or path[-1] == "name":
                    continue
                parent[path[-1]] = wrong
            else:
                parent[path[-1]] = wrong
            with pytest.raises(TwofourError, match="manifest: expected"):
                Bundle(broken, "")


@pytest.mark.parametrize(
    "path, value, message",
    [
        (("program", "single"), "other", "expected one of single, fused, edges at program.single"),
        (
            ("program", "fused_steps"),
            4097,
            "expected an integer from 1 to 4096 at program.fused_st",
        ),
        (("program", "fused_steps"), 1, "expected several fused steps with a fused kernel"),
        (("program", "edges"), None, "expected a kernel for the edges of fused sweeps at program"),
        (("program", "reach_lo"), [1], r"expected a list of 2 at program.reach_lo, got \[1\]"),
        (("kernels", "single", "inputs"), 2, "expected a kernel of rank 2 with one input"),
        (("kernels", "single", "tile"), [1], "expected a list of 2 at kernels.single.tile"),
        (("kernels", "single", "alignment"), 48, "expected one of 1, 2, 4, 8"),
        (("kernels", "single", "threads"), 2048, "expected an integer from 1 to 1024"),
        (("kernels", "single", "threads"), True, "expected an integer from 1 to 1024"),
        (("program", "boundary_kernels"), ["r"], "expected one of single, fused, edges at program"),
        (("program", "boundary_kernels"), ["edges"], "one output and the numbers of its axes"),
        (("boundary",), ["periodc", "fixed"], "did you mean 'periodic'?.* at boundary"),
        (("target",), "sm90", "expected a chip such as sm_90 at target, got 'sm90'"),
    ],
)
def test_parts_of_a_linear_program_fit_together(bundle, path, value, message):
    broken = copy.deepcopy(bundle.manifest)
    parent = broken
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    with pytest.raises(TwofourError, match=message):
        Bundle(broken, "")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda p: p["steps"][0].update(scalars=[0]), "expected numbers of"),
        (lambda p: p["steps"][0].update(scalars=[]), "expected numbers of"),
        (lambda p: p["steps"][0].update(inputs=[]), "expected 1 views"),
        (lambda p: p["steps"][0]["inputs"][0].update(buffer=1), "expected a buffer of"),
        (lambda p: p["steps"][0]["inputs"][0].update(buffer=6), "expected a buffer of"),
        (lambda p: p["steps"][0]["outputs"][0].update(slices=[[1, 10], [1, 6]]), "a box within"),
        (lambda p: p["steps"][0]["outputs"][0].update(slices=[[1, 8]]), "a box within"),
        (lambda p: p["steps"][1].update(index=6), "values that nothing else brings forth"),
        (lambda p: p["steps"][1].update(index=4), "values that nothing else brings forth"),
        (lambda p: p["steps"][1].update(index=3), "values that nothing else brings forth"),
        (lambda p: p["steps"][1].update(lower={"argument": 1}), "an argument that is an integer"),
        (lambda p: p["steps"][1].update(upper={"argument": 0}), "an argument that is an integer"),
        (lambda p: p["steps"][1].update(step=0), "an integer from 1"),
        (lambda p: p["steps"][1]["body"][0].update(scalars=[3]), "expected numbers of"),
        (lambda p: p["steps"][0].update(kernel="n", scalars=[5]), "expected numbers of"),
        (
            lambda p: p["steps"][1]["carried"][0]["initial"].update(buffer=7),
            r"expected a buffer of \[0, 2, 4\] at program.steps\[1\].carried",
        ),
        (
            lambda p: p["steps"][1]["carried"][0]["following"].update(slices=[[0, 8], [0, 7]]),
            "expected a view of the type of the initial one",
        ),
        (
            lambda p: p["steps"].append({**p["steps"][0], "kernel": "n", "scalars": [5]}),
            r"expected numbers of \['index'\] at program.steps\[2\].scalars",
        ),
        (lambda p: p["steps"].append(p["steps"][1]), "values that nothing else brings forth"),
        (lambda p: p["fields"][0].update(interior=[[1, 1], [8, 8]]), "a box within"),
        (lambda p: p["fields"][0].update(shape=[9, 8]), "arguments of one type to change places"),
        (lambda p: p["fields"][0].update(position=2), "distinct positions"),
        (lambda p: p.update(rotation=[0, 0, 1, 2]), "a permutation of 4 arguments"),
        (lambda p: p.update(fields=[]), "a stored field"),
    ],
)
def test_parts_of_a_program_of_fields_fit_together(change, message):
    broken = fields_manifest()
    change(broken["program"])
    with pytest.raises(TwofourError, match=message):
        Bundle(broken, "")


def test_loops_in_each_other_are_limited():
    broken = fields_manifest()
    for value in range(100, 140):
        steps = broken["program"]["steps"]
        broken["program"]["steps"] = [{**steps[-1], "index": value, "carried": [], "body": steps}]
    with pytest.raises(TwofourError, match="manifest: expected at most 32 loops in each other"):
        Bundle(broken, "")


def test_a_time_loop_has_fixed_boundaries():
    good = fields_manifest()
    with pytest.raises(TwofourError, match="expected boundary 'fixed' for a program with a time"):
        Bundle({**good, "boundary": ["fixed", "zero"]}, "")


def test_numpy_numbers_do_not_get_into_manifests(bundle):
    broken = copy.deepcopy(bundle.manifest)
    broken["kernels"]["single"]["threads"] = np.int64(32)
    with pytest.raises(TwofourError, match="at kernels.single.threads"):
        Bundle(broken, "")
