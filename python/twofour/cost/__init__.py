# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of GPUs: how fast a launch will be, and what will limit it, from what it costs.

    from twofour import cost

    costs = cost.Costs(
        instructions=0.12, l1_wavefronts=0.05, l2_bytes=4.3, dram_bytes=4.1, store_bytes=2.0,
        mma={cost.Mma("f16", True, 16, 8, 32): 1 / 128}, bytes_in_flight=2048.0,
        resident_warps=16, blocks=13200, resident_blocks=4,
    )
    cost.predict(cost.find("H200"), costs, points=10240 * 10240).limited_by

Nothing here is measured: docs/guide/cost_model.md says what the model rests on.
"""

from twofour.cost.chips import GPUS, GpuModel, find
from twofour.cost.costs import Costs, Mma
from twofour.cost.model import BUSY_LIMIT, Prediction, predict

__all__ = ["BUSY_LIMIT", "GPUS", "Costs", "GpuModel", "Mma", "Prediction", "find", "predict"]
