# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python3 tools/bench EXPERIMENT...`: `twofour bench` from a bare checkout.

The first call makes the virtual environment .venv.
"""

import os
import sys
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parents[1] / "_environment.sh"


def main(arguments: list[str]) -> None:
    """Become `twofour bench` with these arguments."""
    words = [str(ENVIRONMENT), "plot", "twofour", "bench", *arguments]
    os.execv(words[0], words)


if __name__ == "__main__":
    main(sys.argv[1:])
