# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configuration of the lit suite: `lit test` runs every .mlir file below this directory.

A test begins with `// RUN: twofour-opt %s --some-pass | filecheck %s`. The tools are those beside
the interpreter that runs lit, so the project must be installed there.
"""

import os
import shutil
import sys

import lit.formats

config.name = "twofour"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.excludes = ["Inputs", "execution", "python", "sim"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(os.path.dirname(config.test_source_root), "build", "lit")

tools = os.path.dirname(sys.executable)
for tool in ("twofour-opt", "filecheck"):
    if shutil.which(tool, path=tools) is None:
        lit_config.fatal(f"expected {tool} beside {sys.executable}; install .[test] there")

# lit gives tests an environment of its own; what it leaves out of the caller's has to be named.
config.environment["PATH"] = os.pathsep.join((tools, config.environment["PATH"]))
config.environment["PYTHONUTF8"] = "1"
for name in ("HOME", "TMPDIR", "TWOFOUR_NUM_THREADS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# lit pastes paths into commands as they are, and the checkout's may hold a space.
if " " in config.test_source_root:
    config.substitutions += [(name, f'"{name}"') for name in ("%s", "%S", "%t")]
