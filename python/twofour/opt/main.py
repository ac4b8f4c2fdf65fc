# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour-opt`: run passes over MLIR files, with the spelling of mlir-opt."""

import sys

from twofour.command_line import on_command_line, out_of_memory
from twofour.errors import TwofourError
from twofour.opt.options import OptOptions, parse_arguments


def main(arguments: list[str] | None = None) -> int:
    """Run the tool; returns the exit status (0, or 1 after an error was printed)."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        return run(parse_arguments(words))
    except TwofourError as error:
        print(on_command_line(error, words), file=sys.stderr)
        return 1
    except MemoryError as failure:
        print(on_command_line(out_of_memory(failure), words), file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1


def run(options: OptOptions) -> int:
    """Process the input as `options` say."""
    # Imported late: --help and errors of the command line need no bindings.
    from twofour.opt.driver import list_passes, process

    if options.list_passes:
        print(list_passes())
        return 0
    return process(options)


if __name__ == "__main__":
    sys.exit(main())
