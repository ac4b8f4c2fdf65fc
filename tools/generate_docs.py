# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write the reference pages and the generated sections of the guide.

python tools/generate_docs.py            # write docs/reference/*.md, fill the marked sections
python tools/generate_docs.py --check    # write nothing; exit status 1 names stale files
"""

import argparse
import sys
from pathlib import Path

from guide_sections import fill_sections
from reference_pages import PAGES

ROOT = Path(__file__).resolve().parent.parent
GUIDES = ("docs/README.md", "docs/guide", "dialects/stencil/README.md", "dialects/nm/README.md")


def hand_written() -> list[Path]:
    """The pages whose marked sections are filled."""
    found = [ROOT / entry for entry in GUIDES]
    return [page for entry in found for page in (sorted(entry.glob("*.md")) or [entry])]


def generated_files() -> dict[Path, str]:
    """What every generated file and every page with generated sections should hold."""
    files = {ROOT / "docs" / "reference" / name: page() for name, page in PAGES.items()}
    for page in hand_written():
        files[page] = fill_sections(page.read_text(encoding="utf-8"))
    return files


def stale_files() -> list[Path]:
    """The files that differ from what they should hold, from the top of the repository."""
    return [
        path.relative_to(ROOT)
        for path, text in generated_files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or check them; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; name stale files")
    if parser.parse_args(arguments).check:
        stale = stale_files()
        for path in stale:
            print(f"{path}:1:1: error: expected what tools/generate_docs.py writes, got other text",
                  file=sys.stderr)  # fmt: skip
        return 1 if stale else 0
    for path, text in generated_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
