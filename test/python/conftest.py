# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures of the tests in Python."""

import pytest


@pytest.fixture
def unpinned():
    """Leaves this process on the processors that it was on."""
    # Imported late: some tests look at what an import brings along.
    from twofour.bench.cpu.pinning import affinity_restored

    with affinity_restored():
        yield
