# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The caches of a machine, from files as Linux has them."""

import pytest

from twofour.runtime import processor
from twofour.runtime.processor import MOST_OF_A_CORE, NEAR_LAST, OVER_MESH, USUAL_CACHES

NAMES = ("level", "type", "size", "shared_cpu_list")
INTEL = "processor: 0\nvendor_id: GenuineIntel\nflags: fpu avx512f\n\n"
AMD = "processor: 0\nvendor_id: AuthenticAMD\nflags: fpu avx512f\n\n"


@pytest.fixture
def caches_of(tmp_path, monkeypatch):
    """What is read from so many caches, each (level, type, size, shared_cpu_list)."""
    monkeypatch.setattr(processor, "CPUINFO", str(tmp_path / "cpuinfo"))
    monkeypatch.setattr(processor, "CACHE_FOLDERS", str(tmp_path / "index*"))

    def found(cpuinfo, *caches):
        (tmp_path / "cpuinfo").write_text(cpuinfo)
        for number, values in enumerate(caches):
            folder = tmp_path / f"index{number}"
            folder.mkdir(exist_ok=True)
            for name, value in zip(NAMES, values, strict=True):
                (folder / name).write_text(f"{value}\n")
        processor.cpuinfo.cache_clear()
        return processor.caches.__wrapped__()

    yield found
    processor.cpuinfo.cache_clear()


FIRST = (1, "Data", "48K", "0"), (1, "Instruction", "40960K", "0")


@pytest.mark.parametrize(
    "size, sharing, last", [("32768K", "0-7", 32 << 20), ("8192K", "3", 8 << 20)]
)
def test_sizes(size, sharing, last, caches_of):
    found = caches_of(AMD, *FIRST, (2, "Unified", "1024K", "0"), (3, "Unified", size, sharing))
    assert found == processor.Caches(1 << 20, last, NEAR_LAST, last)
    # What others leave of it is found there, of twice as much nothing.
    assert (found.missed(0.3 * last), found.missed(2 * last)) == (0, 1)


@pytest.mark.parametrize("sharing, processors", [("0-1", 2), ("0", 1), ("0,2,4-6", 5), ("", 1)])
def test_a_virtual_machine_has_a_part_of_the_last_cache(sharing, processors, caches_of):
    found = caches_of(
        INTEL, *FIRST, (2, "Unified", "2048K", "0"), (3, "Unified", "491520K", sharing)
    )
    last = processors * MOST_OF_A_CORE
    assert found == processor.Caches(2 << 20, last, OVER_MESH, 3 * last)
    # Of more than is believed of it a part is found there.
    shares = [found.missed(part * last) for part in (0.4, 1, 2, 3)]
    assert shares[0] == 0 < shares[1] < shares[2] < shares[3] == 1


def test_systems_that_do_not_tell(caches_of):
    assert caches_of("") == USUAL_CACHES
    assert caches_of("", (3, "Unified", "much", "0")) == USUAL_CACHES
