# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A report on disk: results.json, README.md and the plots."""

import json
import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from twofour import __version__
from twofour.bench import plots
from twofour.bench.markdown import page
from twofour.bench.section import Section
from twofour.files import check_output, make_folder, write_files

FORMAT = 1
RESULTS = "results.json"
# What may change the figures of a report.
_PACKAGES = ("numpy", "networkx", "llvmlite", "torch-mlir", "matplotlib")


@dataclass(frozen=True)
class Report:
    """Sections, and what they were made with.

    `title` and `basis` (sentences) say where figures come from; `date` is YYYY-MM-DD, `command`
    what makes the report again, `chip` the GPU or processor, `versions` those of programs by their
    names. With `caption` all of that is written below every plot, too.
    """

    title: str
    basis: str
    date: str
    command: str
    chip: str
    versions: dict[str, str]
    sections: tuple[Section, ...]
    caption: bool = False

    @property
    def origin(self) -> str:
        """Sentences that say on what, when and by what it was made."""
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return f"Chip: {self.chip}. Date: {self.date}. Versions: {versions}."

    def markdown(self) -> str:
        """The page."""
        about = [self.basis, f"{self.origin} Command:", f"    {self.command}"]
        return page(self.title, about, self.sections)

    def as_dict(self) -> dict:
        """The report as plain values for JSON."""
        return {
            "format": FORMAT,
            "title": self.title,
            "basis": self.basis,
            "date": self.date,
            "command": self.command,
            "chip": self.chip,
            "versions": self.versions,
            "sections": [section.as_dict() for section in self.sections],
        }


def versions() -> dict[str, str]:
    """Versions of the project and of what it computes with, as far as they are installed."""
    found = {"twofour": __version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def check_folder(folder: str) -> None:
    """Make the folder of a report; raises TwofourError where nothing can be written there."""
    make_folder(folder)
    check_output(os.path.join(folder, RESULTS))


def write_report(report: Report, folder: str) -> list[str]:
    """Write results.json, README.md and, where matplotlib is installed, every plot.

    Returns the names of the files. Raises TwofourError where they cannot be written.
    """
    check_folder(folder)
    contents = {
        RESULTS: json.dumps(report.as_dict(), indent=1) + "\n",
        "README.md": report.markdown(),
    }
    files = {name: text.encode() for name, text in contents.items()}
    if plots.can_draw():
        for section in report.sections:
            for plot in section.plots:
                pictures = plots.draw(plot, report.origin if report.caption else "")
                files |= {f"{plot.name}.{form}": data for form, data in pictures.items()}
    write_files(
        [
            (os.path.join(folder, name), lambda file, data=data: file.write(data))
            for name, data in files.items()
        ]
    )
    return list(files)
