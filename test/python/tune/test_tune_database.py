# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choices and the database of them: what is stored, what is found, what is refused."""

import json
import threading
from dataclasses import replace

import pytest

from tune_cases import CHOICES, key
from twofour.errors import TwofourError
from twofour.tuned import database
from twofour.tuned.choice import Choice
from twofour.tuned.database import Tuned, find, read_entries, shipped, store, write_entries
from twofour.tuned.fingerprint import fingerprint

ENTRY = Tuned("star", key(), "auto", "NVIDIA H200", CHOICES[0], 1e-12, "2026-11-20", "0.1.0")


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = str(tmp_path / "tuned.json")
    monkeypatch.setenv(database.VARIABLE, path)
    return path


@pytest.mark.parametrize(
    "choice, shown",
    [
        (Choice(), "auto"),
        (Choice("simt"), "simt"),
        (Choice("sparse", (4, 4), (16, 64), 2, 8), "sparse tile=4x4 block=16x64 stages=2 march=8"),
        (Choice("stream", stages=5, levels=False), "stream stages=5 levels=false"),
        (Choice("simt", march=9, rolling=True), "simt march=9 rolling=true"),
    ],
)
def test_choices_are_json(choice, shown):
    assert Choice.from_json(json.loads(json.dumps(choice.as_json()))) == choice
    assert str(choice) == shown


@pytest.mark.parametrize(
    "value, message",
    [
        (["stream"], "expected a choice as an object"),
        ({"schedule": "fast"}, "expected a schedule out of .*, got 'fast'"),
        ({"schedule": "sparse", "tiles": [4]}, "expected members of a choice, got 'tiles'"),
        ({"tile": [4, 0]}, r"expected positive extents as tile of a choice, got \[4, 0\]"),
        ({"stages": True}, "expected a positive number as stages of a choice, got True"),
        ({"levels": 1}, "expected true or false as levels of a choice, got 1"),
        ({"schedule": "simt", "march": 4}, "expected no layout but that of rolling 'simt'"),
        ({"schedule": "dense", "levels": True}, "expected schedule 'stream' or 'simt' for levels"),
        ({"schedule": "stream", "rolling": True}, "expected schedule 'simt' for rolling"),
    ],
)
def test_what_is_no_choice(value, message):
    with pytest.raises(TwofourError, match=message):
        Choice.from_json(value)


def test_fingerprints_are_of_offsets_and_weights_exactly():
    offsets, weights = [(0, 1), (0, 0)], [0.1, 0.2]
    own = fingerprint(offsets, weights)
    assert own == fingerprint(offsets[::-1], weights[::-1])
    others = [
        fingerprint(offsets, [0.1 + 2**-56, 0.2]),
        fingerprint(offsets, [0.2, 0.1]),
        fingerprint([(0, 1), (0, -1)], weights),
        fingerprint([(1, 0), (0, 0)], weights),
    ]
    assert len({own, *others}) == 5


def test_what_was_stored_is_found(file):
    store(file, ENTRY)
    first = open(file, "rb").read()
    found = find(ENTRY.key, "auto")
    assert found == replace(ENTRY, file=file)
    store(file, ENTRY)
    assert open(file, "rb").read() == first
    # The newer one for the same place stays.
    store(file, replace(ENTRY, choice=CHOICES[2], date="2026-12-01"))
    assert [entry.choice for entry in read_entries(file)] == [CHOICES[2]]


def test_what_several_store_at_once_is_kept(file, monkeypatch):
    """Another one begins to store after the entries were read."""
    stored, written = [], threading.Event()

    def read(path):
        entries = read_entries(path)
        if not stored:
            stored.append(threading.Thread(target=store, args=(file, replace(ENTRY, device="B"))))
            stored[0].start()
            written.wait(0.2)
        return entries

    store(file, ENTRY)
    monkeypatch.setattr(database, "read_entries", read)
    store(file, replace(ENTRY, device="A"))
    stored[0].join()
    assert {entry.device for entry in read_entries(file)} == {ENTRY.device, "A", "B"}


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": "0" * 32},
        {"element": "f16"},
        {"arithmetic": "tf32"},
        {"steps": 2},
        {"target": "sm_80"},
    ],
)
def test_other_keys_are_not_found(file, change):
    store(file, ENTRY)
    assert find(ENTRY.key._replace(**change), "auto") is None


@pytest.mark.parametrize(
    "asked, choice, schedule, is_found",
    [
        ("auto", CHOICES[0], "auto", True),
        ("auto", CHOICES[0], "stream", True),
        ("auto", CHOICES[0], "sparse", False),
        ("sparse", CHOICES[1], "sparse", True),
        ("sparse", CHOICES[1], "auto", False),
    ],
)
def test_schedules_that_count(file, asked, choice, schedule, is_found):
    store(file, replace(ENTRY, asked=asked, choice=choice))
    assert (find(ENTRY.key, schedule) is not None) == is_found


def test_which_of_several_entries_counts(file, tmp_path, monkeypatch):
    devices = ["NVIDIA GH200", "NVIDIA H100-SXM", "NVIDIA H200", "NVIDIA RTX 4090"]
    for device in devices:
        store(file, replace(ENTRY, device=device))
    assert find(ENTRY.key, "auto", prefer="H200").device == "NVIDIA H200"
    assert find(ENTRY.key, "auto", prefer="H100").device == "NVIDIA H100-SXM"
    assert find(ENTRY.key, "auto", prefer="RTX4090").device == "NVIDIA RTX 4090"
    assert find(ENTRY.key, "auto", prefer="A100").device == "NVIDIA GH200"
    asked = replace(ENTRY, asked="stream", choice=Choice("stream", stages=9))
    store(file, replace(asked, device="NVIDIA H100-SXM"))
    assert find(ENTRY.key, "stream", prefer="H100").choice.stages == 9
    # An own file comes before those of the package, an option before the variable.
    other = str(tmp_path / "other.json")
    store(other, replace(ENTRY, choice=CHOICES[2]))
    assert find(ENTRY.key, "auto", other).choice == CHOICES[2]
    monkeypatch.setattr(database, "shipped", lambda: (replace(ENTRY, choice=CHOICES[1]),))
    assert find(ENTRY.key, "auto", other).choice == CHOICES[2]
    write_entries(other, [])
    assert find(ENTRY.key, "auto", other).choice == CHOICES[1]


def test_what_is_shipped_was_measured_on_the_chip_that_stands_for_its_target():
    entries = shipped()
    # Other bases than measurements are refused when a database is read.
    assert {(entry.device, entry.key.target) for entry in entries} == {("NVIDIA H200", "sm_90")}
    assert len({entry.key for entry in entries}) == len(entries)


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"format": 1,\n "entries": [}', "expected a database of measured choices in JSON"),
        ("", "in JSON: expecting value"),
        ("\xff", "'utf-8' codec"),
        ("[" * 100_000, "recursion"),
        ("[]", "measured choices: the file holds no object"),
        ('{"format": 7, "entries": []}', "it has format 7 instead of 1"),
        ('{"entries": []}', "got one without 'format'"),
        ('{"format": 1, "entries": {}}', "its entries are no list"),
        ('{"format": 1, "entries": [4]}', "it has 4 in the place of an entry"),
        ('{"format": 1, "entries": [], "x": NaN}', "it holds NaN"),
    ],
)
def test_files_that_are_no_database(file, text, message):
    with open(file, "wb") as stream:
        stream.write(text.encode("latin-1"))
    with pytest.raises(TwofourError, match=rf"tuned.json:\d+:\d+: .*{message}"):
        find(ENTRY.key, "auto")


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("basis", "simulated", "it has an entry that was not measured but 'simulated'"),
        ("choice", {"stages": 4}, "it has a choice without a schedule"),
        ("choice", {"schedule": "x"}, "expected a schedule out of"),
        ("seconds_per_point", 0, "it has 0 in the place of a positive number"),
        ("steps", "1", "it has '1' in the place of a positive integer"),
        ("device", None, "it has None in the place of a text"),
        ("element", "f8", "it has the unknown element type 'f8'"),
        ("date", ..., "got one without 'date'"),
    ],
)
def test_entries_that_are_none(file, name, value, message):
    entry = ENTRY.as_json() | {name: value}
    entry = {k: v for k, v in entry.items() if v is not ...}
    with open(file, "w") as stream:
        json.dump({"format": 1, "entries": [entry]}, stream)
    with pytest.raises(TwofourError, match=f"tuned.json:1:1: error: expected a .*{message}"):
        find(ENTRY.key, "auto")


def test_the_place_of_a_syntax_error(file):
    with open(file, "w") as stream:
        stream.write('{"format": 1,\n "entries": [}')
    with pytest.raises(TwofourError, match="tuned.json:2:14: error: expected a database"):
        find(ENTRY.key, "auto")


def test_a_file_that_is_not_there(file):
    with pytest.raises(TwofourError, match="tuned.json:1:1: error: cannot read the file: no such"):
        find(ENTRY.key, "auto")
