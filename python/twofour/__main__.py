# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m twofour`: the command `twofour`."""

import sys

from twofour.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
