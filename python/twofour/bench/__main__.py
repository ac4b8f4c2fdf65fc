# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m twofour.bench`: measures on a machine that has NumPy and CuPy only."""

import sys

from twofour.bench.measured.session import measure_folder
from twofour.command_line import Parser, run_tool


def main(arguments: list[str] | None = None) -> int:
    """Measure a folder; returns the exit status (0, or 1 after one error line)."""
    return run_tool(_run, arguments)


def _run(words: list[str]) -> int:
    parser = Parser("python -m twofour.bench", description="Measure kernels on a GPU.")
    parser.add_argument(
        "--measure",
        metavar="DIR",
        required=True,
        help="what `twofour bench --prepare` wrote; a second call goes on where the first ended",
    )
    parser.add_argument("--device", metavar="NAME", help="cuda (default) or cuda:N")
    options = parser.parse_args(words)
    measure_folder(options.measure, options.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
