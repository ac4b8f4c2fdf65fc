# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What to compile for Arm SME."""

from dataclasses import dataclass

from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.suggestions import suggest

COVERS = ("auto", "parallel", "orthogonal", "hybrid", "diagonal")


@dataclass(frozen=True)
class SmeOptions:
    """What to compile for Arm SME.

    `cover` says along which axes coefficient lines run (see pass stencil-select-cover); `dtype`,
    `fuse_steps` and `function` are those of CompileOptions. Raises TwofourError for anything that
    is not known.
    """

    cover: str = "auto"
    dtype: str | None = None
    fuse_steps: int = 1
    function: str | None = None

    def __post_init__(self):
        if self.cover not in COVERS:
            raise TwofourError(f"unknown schedule '{self.cover}'{suggest(self.cover, COVERS)}")
        if not isinstance(self.fuse_steps, int):
            raise TwofourError(
                f"expected a number for --fuse-steps with target 'sme', got '{self.fuse_steps}'"
            )
        self.analysis()

    def analysis(self) -> CompileOptions:
        """The options of the passes that all targets share."""
        return CompileOptions(dtype=self.dtype, fuse_steps=self.fuse_steps, function=self.function)
