# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The vector registers of the processor that a kernel is compiled on."""

import pytest

from twofour.codegen.cpu import vector_unit as units
from twofour.runtime import processor

AVX_512 = "fpu avx2 fma avx512f avx512vl"


@pytest.fixture
def host_with(tmp_path, monkeypatch):
    """What a processor has that the system describes so."""

    def found(text):
        (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(processor, "CPUINFO", str(tmp_path / "cpuinfo"))
        monkeypatch.setattr(units.platform, "machine", lambda: "x86_64")
        processor.cpuinfo.cache_clear()
        return units.vector_unit("host")

    yield found
    processor.cpuinfo.cache_clear()


@pytest.mark.parametrize(
    ("vendor", "family", "flags", "machine"),
    [
        ("AuthenticAMD", 25, AVX_512, "znver4"),
        ("AuthenticAMD", 26, AVX_512, "avx512"),
        ("GenuineIntel", 6, AVX_512, "sapphirerapids"),
        ("AuthenticAMD", 25, "fpu avx2 fma", "avx2"),
        ("GenuineIntel", 6, "fpu avx2 fma", "avx2"),
        ("GenuineIntel", 6, "fpu avx2", "sse"),
    ],
)
def test_processors(vendor, family, flags, machine, host_with):
    numbers = f"vendor_id\t: {vendor}\ncpu family\t: {family}\nflags\t\t: {flags}\n\n"
    other = "processor\t: 1\ncpu family\t: 1\nflags\t\t: fpu\n\n"
    found = host_with("processor\t: 0\n" + numbers + other)
    assert found == units.vector_unit(machine)


def test_systems_that_do_not_tell(host_with, monkeypatch):
    assert host_with("") == host_with("Features: none\n") == units.vector_unit("sse")
    monkeypatch.setattr(processor, "CPUINFO", "/none")
    processor.cpuinfo.cache_clear()
    assert units.vector_unit("host") == units.vector_unit("sse")
    monkeypatch.setattr(units.platform, "machine", lambda: "arm64")
    assert units.vector_unit("host") == units.vector_unit("neon")
