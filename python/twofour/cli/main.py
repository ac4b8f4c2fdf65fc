# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour`: run, explain and list stencils."""

import sys

from twofour.command_line import run_tool


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status (0, or 1 after one error line)."""
    return run_tool(_run, arguments)


def _run(words: list[str]) -> int:
    # Imported late, so that Ctrl-C meanwhile ends the command as it does later.
    from twofour.cli.options import parse_arguments

    options = parse_arguments(words)
    options.command(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
