# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From kernels over scalable vectors and matrix tiles to LLVM IR, by upstream's ArmSME passes."""

from twofour.mlir import ir, llvm
from twofour.mlir_support import nested_ops
from twofour.pipeline import PassElement, PipelineOptions, run_pipeline
from twofour.targets.cpu.linking import C_INTERFACE, hide_functions
from twofour.targets.translation import check_translated

# Function passes are nested. The second convert-vector-to-scf and convert-scf-to-cf lower what
# convert-arm-sme-to-llvm makes of tiles that had to go to memory.
LLVM_PIPELINE = (
    "arm-sme-vector-legalization",
    "canonicalize",
    "cse",
    "convert-arith-to-arm-sme",
    "convert-vector-to-arm-sme",
    "func.func(arm-sme-outer-product-fusion)",
    "convert-arm-sme-to-scf",
    "convert-vector-to-scf{full-unroll=true}",
    "func.func(enable-arm-streaming{streaming-mode=streaming-locally za-mode=new-za "
    "if-required-by-ops=true})",
    "convert-scf-to-cf",
    "func.func(convert-arm-sme-to-llvm)",
    "convert-vector-to-scf",
    "convert-scf-to-cf",
    "canonicalize",
    "cse",
    "convert-vector-to-llvm{enable-arm-sve=true}",
    "expand-strided-metadata",
    "lower-affine",
    "convert-index-to-llvm",
    "convert-arith-to-llvm",
    "finalize-memref-to-llvm",
    "convert-cf-to-llvm",
    "convert-func-to-llvm",
    "reconcile-unrealized-casts",
)


def to_llvm_ir(module: ir.Module, filename: str) -> str:
    """The LLVM IR of a module's functions; the module is lowered in place.

    Raises TwofourError, located at the op, for an op that has no translation.
    """
    elements = [PassElement(text, None) for text in LLVM_PIPELINE]
    run_pipeline(module, elements, PipelineOptions(filename=filename, verify=False))
    check_translated(module, "the SME target has", ("arm_sme.intr.", "arm_sve.intr."))
    with ir.Location.unknown():
        _read_whole_columns(module)
    for op in module.body.operations:
        if op.operation.name == "llvm.func":
            # Without it LLVM may call __arm_tpidr2_save without saving the return address.
            op.attributes["frame_pointer"] = ir.Attribute.parse("#llvm.framePointerKind<all>")
    hide_functions(module, but=C_INTERFACE)
    return llvm.translate_module_to_llvmir(module.operation)


def _read_whole_columns(module: ir.Module) -> None:
    """Tell LLVM that no element of a vector read from a tile comes from elsewhere.

    Upstream's lowering asks for zeros where the mask is not set, which costs a move, but sets all
    of it.
    """
    for op in nested_ops(module, "arm_sme.intr.read.vert"):
        with ir.InsertionPoint(op):
            op.operands[0] = llvm.mlir_poison(op.operands[0].type)
