# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour`: run, explain and list stencils."""

import sys

from twofour.cli.options import parse_arguments
from twofour.command_line import on_command_line, out_of_memory
from twofour.errors import TwofourError


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status (0, or 1 after one error line)."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = parse_arguments(words)
        options.command(options)
    except TwofourError as error:
        print(on_command_line(error, words), file=sys.stderr)
        return 1
    except MemoryError as failure:
        print(on_command_line(out_of_memory(failure), words), file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of a pipe went away; nothing is left to say.
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
