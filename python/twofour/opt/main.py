# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour-opt`: run passes over MLIR files, with the spelling of mlir-opt."""

import sys

from twofour.command_line import run_tool
from twofour.opt.options import parse_arguments


def main(arguments: list[str] | None = None) -> int:
    """Run the tool; returns the exit status (0, or 1 after an error was printed)."""
    return run_tool(_run, arguments)


def _run(words: list[str]) -> int:
    options = parse_arguments(words)
    # Imported late: --help and errors of the command line need no bindings.
    from twofour.opt.driver import list_passes, process

    if options.list_passes:
        print(list_passes())
        return 0
    return process(options)


if __name__ == "__main__":
    sys.exit(main())
