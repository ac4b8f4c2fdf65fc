# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all tests share."""

import gc


def pytest_collection_finish():
    # Thousands of collected tests would be looked through each time that the collector runs.
    gc.collect()
    gc.freeze()
