# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour explain`: compile without running, and report every choice."""

import argparse
import json

from twofour.api import find_source
from twofour.explain import as_text, explain
from twofour.options import CompileOptions


def explain_command(options: argparse.Namespace) -> None:
    """Print the report; raises TwofourError for a program that cannot be compiled."""
    report = explain(
        find_source(options.source),
        CompileOptions(
            target=options.target,
            schedule=options.schedule,
            dtype=options.dtype,
            fuse_steps=options.fuse_steps,
            function=options.function,
        ),
        options.chip,
    )
    print(json.dumps(report, indent=2) if options.json else as_text(report))
