# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour explain`: compile without running, and report every choice."""

import argparse
import json

from twofour.api import compile_source
from twofour.explain import as_text, explain
from twofour.kernels import Kernel


def explain_command(options: argparse.Namespace) -> None:
    """Print the report; raises TwofourError for a program that cannot be compiled."""
    source, compiled = compile_source(
        options.source,
        target=options.target,
        dtype=options.dtype,
        schedule=options.schedule,
        fuse_steps=options.fuse_steps,
        function=options.function,
    )
    name = source.name if isinstance(source, Kernel) else source
    report = explain(compiled, name)
    print(json.dumps(report, indent=2) if options.json else as_text(report))
