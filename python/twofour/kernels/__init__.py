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
