# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour tune --commit`: the fastest candidate goes into a database."""

import os
from pathlib import Path

from twofour import __version__
from twofour.errors import SourceLocation, TwofourError
from twofour.tune.plan import TuningPlan, read_plan
from twofour.tune.result import MEASURED, NAME, Result, read_result
from twofour.tuned.database import Tuned, store
from twofour.tuned.documents import LEAST


def finished_result(folder: str | os.PathLike) -> tuple[TuningPlan, Result]:
    """The plan and the complete result in a folder.

    Raises TwofourError where one of them is missing, is not complete, is not the other's, or holds
    times that cannot be.
    """
    plan, digest = read_plan(folder)
    place = SourceLocation(str(Path(folder) / NAME))
    result = read_result(folder)
    if result is None:
        raise TwofourError("expected a result, got no file: --measure writes it", place)
    if result.plan != digest or len(result.samples) != len(plan.candidates):
        raise TwofourError("expected the result of the plan beside it, got another's", place)
    if not result.is_complete():
        raise TwofourError("expected a complete result: --measure goes on with it", place)
    # A database that holds such a time could not be read.
    found = [seconds for seconds in result.seconds_per_point(plan) if seconds is not None]
    if found and min(found) < LEAST:
        raise TwofourError(
            f"expected at least {LEAST:g} seconds for a point, got {min(found):.3g}", place
        )
    return plan, result


def commit(plan: TuningPlan, result: Result, database: str) -> Tuned:
    """Store the fastest candidate in the file `database`, and return its entry.

    Raises TwofourError for a result that was not measured or has no candidate that is right, and
    where the file is no database or cannot be written.
    """
    if result.basis != MEASURED:
        raise TwofourError(f"expected a measured result to store, got a {result.basis} one")
    number = result.fastest(plan)
    if number is None:
        raise TwofourError(f"expected a candidate with right results on {result.device}, got none")
    entry = Tuned(
        name=plan.name,
        key=plan.key,
        asked=plan.asked,
        device=result.device,
        choice=plan.candidates[number].choice,
        seconds_per_point=result.seconds_per_point(plan)[number],
        date=result.date,
        version=__version__,
    )
    store(database, entry)
    return entry
