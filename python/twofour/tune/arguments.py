# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much is prepared and measured where nobody says, and the options that say it."""

import argparse

# Layouts that are prepared, and samples taken of each.
COUNT, ROUNDS = 8, 9


def add_measuring(parser: argparse.ArgumentParser) -> None:
    """How `tune --measure` measures."""
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="cuda (default), cuda:N, or sim, which counts instead of timing",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        metavar="N",
        help=f"samples of each layout (default {ROUNDS})",
    )
