# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Object files of CPU kernels, for programs that are linked with them."""

import llvmlite.binding as llvmlite

from twofour.targets.object_file import to_object


def to_native_object(llvm_ir: str) -> bytes:
    """Optimise LLVM IR for this machine's processor; position-independent code as an object file.

    Raises TwofourError for IR that llvmlite's LLVM does not read.
    """
    llvmlite.initialize_native_target()
    llvmlite.initialize_native_asmprinter()
    return to_object(
        llvm_ir,
        llvmlite.get_default_triple(),
        cpu=llvmlite.get_host_cpu_name(),
        features=llvmlite.get_host_cpu_features().flatten(),
    )
