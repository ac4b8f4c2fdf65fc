# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python3 tools/bench EXPERIMENT...`: `twofour bench` from a bare checkout.

The first call makes the virtual environment .venv; `cpu` brings the packages that it compares with.
"""

import os
import sys
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parents[1] / "_environment.sh"


def main(arguments: list[str]) -> None:
    """Become `twofour bench` with these arguments."""
    extras = "bench,plot" if arguments[:1] == ["cpu"] else "plot"
    words = [str(ENVIRONMENT), extras, "twofour", "bench", *arguments]
    os.execv(words[0], words)


if __name__ == "__main__":
    main(sys.argv[1:])
