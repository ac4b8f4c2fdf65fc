# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour-opt`: run passes over MLIR files, with the spelling of mlir-opt."""

import sys

from twofour.command_line import run_tool


def main(arguments: list[str] | None = None) -> int:
    """Run the tool; returns the exit status (0, or 1 after an error was printed)."""
    return run_tool(_run, arguments)


def _run(words: list[str]) -> int:
    # Imported late, so that Ctrl-C meanwhile ends the command as it does later.
    from twofour.opt.options import parse_arguments

    options = parse_arguments(words)
    # And later still: --help and errors of the command line need no bindings.
    from twofour.opt.driver import list_passes, process

    if options.list_passes:
        print(list_passes())
        return 0
    return process(options)


if __name__ == "__main__":
    sys.exit(main())
