# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The vector registers of the processor that a kernel is compiled on."""

import pytest

from twofour.targets.cpu import vector_unit as units

AVX_512 = "fpu avx2 fma avx512f avx512vl"


@pytest.fixture
def host_with(tmp_path, monkeypatch):
    """What a processor has that the system describes so."""

    def found(text):
        (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(units, "CPUINFO", str(tmp_path / "cpuinfo"))
        monkeypatch.setattr(units.platform, "machine", lambda: "x86_64")
        return units.vector_unit(units._host.__wrapped__())

    return found


@pytest.mark.parametrize(
    ("family", "flags", "machine"),
    [
        (25, AVX_512, "znver4"),
        (26, AVX_512, "avx512"),
        (6, AVX_512, "avx512"),
        (25, "fpu avx2 fma", "avx2"),
        (6, "fpu avx2", "sse"),
    ],
)
def test_processors(family, flags, machine, host_with):
    one = f"processor\t: 0\ncpu family\t: {family}\nflags\t\t: {flags}\n\n"
    other = "processor\t: 1\ncpu family\t: 1\nflags\t\t: fpu\n\n"
    assert host_with(one + other) == units.vector_unit(machine)


def test_systems_that_do_not_tell(host_with, monkeypatch):
    assert host_with("") == host_with("Features: none\n") == units.vector_unit("sse")
    monkeypatch.setattr(units, "CPUINFO", "/none")
    assert units._host.__wrapped__() == "sse"
    monkeypatch.setattr(units.platform, "machine", lambda: "arm64")
    assert units._host.__wrapped__() == "neon"
