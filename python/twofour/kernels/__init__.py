# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 79 built-in kernels, with their sources, and stencils given as weights.

`stencils79.json` holds constant-coefficient stencils from nine domains; every entry names where its
weights come from.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

Offset = tuple[int, ...]

# The benchmarks of SparStencil's table 2, and the kernels that they are.
TABLE_2 = {
    "Heat-1D": "heat1d_ftcs",
    "1D5P": "paper_1d5p",
    "Heat-2D": "heat2d_ftcs",
    "Box-2D9P": "lbm_d2q9_diffusion",
    "Star-2D13P": "paper_star2d13p",
    "Box-2D49P": "paper_box2d49p",
    "Heat-3D": "heat3d_ftcs",
    "Box-3D27P": "paper_box3d27p",
}


@dataclass(frozen=True)
class Kernel:
    """A linear stencil: out[x] = sum of weights[i] * in[x + offsets[i]], slowest axis first.

    `weights` are float64. `kind` is `update` (may be iterated), `two_level_update`, `operator` or
    `filter`; `formula` and `source` say what it is and where it comes from.
    """

    name: str
    offsets: tuple[Offset, ...]
    weights: tuple[float, ...]
    domain: str = ""
    shape: str = ""
    kind: str = ""
    formula: str = ""
    source: str = ""

    @property
    def rank(self) -> int:
        return len(self.offsets[0])

    @property
    def radius(self) -> int:
        return max(abs(c) for offset in self.offsets for c in offset)


@cache
def built_in_kernels() -> dict[str, Kernel]:
    """The built-in kernels by name, in the order of the file."""
    text = resources.files(__name__).joinpath("stencils79.json").read_text(encoding="utf-8")
    return {
        entry["name"]: Kernel(
            name=entry["name"],
            offsets=tuple(tuple(offset) for offset in entry["offsets"]),
            weights=tuple(entry["weights"]),
            domain=entry["domain"],
            shape=entry["shape"],
            kind=entry["kind"],
            formula=entry["formula"],
            source=entry["source"],
        )
        for entry in json.loads(text)
    }
