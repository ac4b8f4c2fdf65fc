# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans to measure without the compiler: bundles of plain kernels with made-up choices."""

from twofour.cost import Costs
from twofour.tune.plan import NAME, Planned, TuningPlan
from twofour.tuned.choice import Choice
from twofour.tuned.database import Key
from twofour.tuned.documents import write_document
from twofour.tuned.fingerprint import fingerprint

STAR = {(0, 0): 0.5, (0, 1): 0.25, (-2, 0): -0.25}
CHOICES = (Choice("stream", stages=3, march=64), Choice("sparse", tile=(4, 4)), Choice("simt"))
COSTS = Costs(
    # Far more than any bundle here executes.
    instructions=100.0,
    l1_wavefronts=1.0,
    l2_bytes=16.0,
    dram_bytes=16.0,
    store_bytes=8.0,
    bytes_in_flight=1024.0,
    resident_warps=32,
    blocks=1000,
    resident_blocks=4,
)


def key(weights=STAR, steps=1, target="sm_90"):
    name = fingerprint(list(weights), list(weights.values()))
    return Key(name, "f64", "f64", steps, target)


def prepared(folder, bundles, weights=STAR, steps=1, shape=(40, 70), target="sm_90"):
    """Write bundles of a stencil, and a plan for them; returns the plan."""
    candidates = []
    for number, bundle in enumerate(bundles):
        bundle.save(folder / f"{number}.tfb")
        choice = CHOICES[number]
        planned = (f"{number}.tfb", bundle.sha256, choice, COSTS, 1e-12 * (number + 1), (8, 64))
        candidates.append(Planned(*planned))
    plan = TuningPlan(
        name="star",
        key=key(weights, steps, target),
        asked="auto",
        gpu="H200",
        shape=shape,
        terms=tuple(weights.items()),
        constant=0.0,
        fused_terms=len(weights) ** steps,
        candidates=tuple(candidates),
        generator="twofour 0",
    )
    write_document(folder / NAME, plan.as_json())
    return plan
