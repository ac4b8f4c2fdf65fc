# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m twofour.tune --measure DIR`: measure where there is no compiler."""

import sys

from twofour.command_line import Parser, run_tool
from twofour.runtime import Progress
from twofour.tune.arguments import add_measuring
from twofour.tune.measure import measure
from twofour.tune.result import report


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status (0, or 1 after one error line)."""
    return run_tool(_run, arguments)


def _run(words: list[str]) -> int:
    parser = Parser("python -m twofour.tune", description="Measure layouts on a GPU.")
    parser.add_argument(
        "--measure", required=True, metavar="DIR", help="what twofour tune --prepare wrote"
    )
    add_measuring(parser)
    options = parser.parse_args(words)
    with Progress("measuring", "samples") as progress:
        found = measure(options.measure, options.device, rounds=options.rounds, progress=progress)
    print(report(*found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
