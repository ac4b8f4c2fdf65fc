# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program over several fields that is timed, as MLIR and as the loops of C for it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldExample:
    """A program: its arguments, which of them are loaded and stored, and what it computes.

    Its interior is a square or cube of an edge `n`, with `halo` cells around it that are never
    refreshed. After a call argument i takes over the array of argument rotation[i]. `body` is MLIR
    between the function's braces, where `!f` is a field, `!t` a temp and `{box}` the interior.
    `loops` are the statements of one point in C, a list for each loop over all points, where `a[i]`
    is the row-major array of argument i, `x` the place of a point, `p` the elements of a row, and
    `q` those of a plane.
    """

    name: str
    label: str
    loaded: tuple[int, ...]
    stored: tuple[int, ...]
    rotation: tuple[int, ...]
    body: str
    loops: tuple[tuple[str, ...], ...]
    rank: int = 2
    halo: int = 1

    def mlir(self, n: int) -> str:
        """The program on n points an edge."""
        bounds = "x".join([f"[-{self.halo},{n + self.halo}]"] * self.rank)
        field = f"!stencil.field<{bounds}xf64>"
        temp = f"!stencil.temp<{'?x' * self.rank}f64>"
        arguments = ", ".join(f"%f{i} : {field}" for i in range(len(self.rotation)))
        places = ", ".join(map(str, self.rotation))
        box = f"<{[0] * self.rank}, {[n] * self.rank}>"
        body = self.body.replace("{box}", box).replace("!f", field).replace("!t", temp)
        head = f"func.func @{self.name}({arguments})"
        return (
            f"{head} attributes {{stencil.rotation = array<i64: {places}>}} {{\n{body}return\n}}\n"
        )
