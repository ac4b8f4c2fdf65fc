# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who is timed in a group, and why others are not."""

from dataclasses import dataclass, field

from twofour.bench.measured.contest import Contestant
from twofour.bench.measured.plan import FieldGroup, Group


@dataclass
class Entrants:
    """The contestants of a group whose results are right, and why others are left out."""

    right: list[Contestant] = field(default_factory=list)
    left_out: list[dict] = field(default_factory=list)

    def admit(self, contestant: Contestant, error: float = 0.0, bound: float = 0.0) -> None:
        if error <= bound:
            self.right.append(contestant)
        else:
            self.leave_out(contestant.name, f"wrong by {error:.3g}, more than {bound:.3g}")

    def leave_out(self, name: str, reason: str) -> None:
        self.left_out.append({"name": name, "reason": reason})

    def line(self, group: Group | FieldGroup, sets: int, timed: list[dict]) -> dict:
        return {"group": group.key, "sets": sets, "timed": timed, "left_out": self.left_out}


def one_line(failure: BaseException) -> str:
    """What failed, in a line."""
    return " ".join(str(failure).split()) or type(failure).__name__
