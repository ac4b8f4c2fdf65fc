# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From kernels in the gpu dialect to NVVM and to LLVM IR."""

from twofour.codegen.gpu.kernel_abi import MAP_ALIGNMENT, MAP_ATTRIBUTE, MAP_BYTES
from twofour.diagnostics import located_in
from twofour.layout.block_layout import BOX_BYTES
from twofour.mlir import ir, llvm
from twofour.mlir_support import nested_ops
from twofour.pipeline import PassElement, PipelineOptions, run_pipeline
from twofour.targets.llvm_text import adapt
from twofour.targets.translation import check_translated

# Inside the gpu.module; the conversion to NVVM takes arith, vector, cf and memref ops with it.
NVVM_PIPELINE = (
    "gpu.module("
    "convert-nvgpu-to-nvvm,"
    "convert-scf-to-cf,"
    "expand-strided-metadata,"
    "lower-affine,"
    "convert-gpu-to-nvvm{index-bitwidth=64},"
    "convert-math-to-llvm,"
    "reconcile-unrealized-casts,"
    "canonicalize,cse)"
)
LLVM_PIPELINE = ("convert-nvvm-to-llvm", "reconcile-unrealized-casts")


def to_nvvm(module: ir.Module, filename: str) -> None:
    """Lower the kernels of a module to the NVVM and LLVM dialects, in place."""
    _run(module, (NVVM_PIPELINE,), filename)
    with module.context:
        for kernels in nested_ops(module, "gpu.module"):
            _pass_tensor_maps(kernels)
            _declare_shared_memory(kernels)


def to_llvm_ir(module: ir.Module, filename: str) -> str:
    """The kernels of a module after `to_nvvm`, as LLVM IR for llvmlite; changes the module.

    Raises TwofourError at an op that has no translation.
    """
    _run(module, LLVM_PIPELINE, filename)
    with module.context, ir.Location.unknown(), located_in(filename):
        alone = ir.Module.create()
        for kernels in nested_ops(module, "gpu.module"):
            for op in kernels.regions[0].blocks[0].operations:
                alone.body.append(op.operation.clone())
        check_translated(alone, "the GPU targets have", ("nvvm.",))
        return adapt(llvm.translate_module_to_llvmir(alone.operation))


def _pass_tensor_maps(kernels) -> None:
    """Globals that stand for tensor maps become parameters of their kernel, after all others."""
    block = kernels.regions[0].blocks[0]
    maps = [op for op in block.operations if MAP_ATTRIBUTE in op.attributes]
    functions = {
        op.attributes["sym_name"].value: op
        for op in block.operations
        if op.operation.name == "llvm.func"
    }
    pointer = ir.Type.parse("!llvm.ptr")
    by_value = ir.Attribute.parse(
        f"{{llvm.byval = !llvm.array<{MAP_BYTES} x i8>, llvm.align = {MAP_ALIGNMENT} : i64, "
        "nvvm.grid_constant}"
    )
    for made in maps:
        function = functions[made.attributes[MAP_ATTRIBUTE].value]
        entry = function.regions[0].blocks[0]
        known = list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []
        known += [ir.DictAttr.get({})] * (len(entry.arguments) - len(known))
        argument = entry.add_argument(pointer, ir.Location.unknown())
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*known, by_value])
        kinds = ", ".join(str(a.type) for a in entry.arguments)
        kind = ir.Type.parse(f"!llvm.func<void ({kinds})>")
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        name = made.attributes["sym_name"].value
        for address in nested_ops(function, "llvm.mlir.addressof"):
            if address.attributes["global_name"].value == name:
                address.results[0].replace_all_uses_with(argument)
                address.operation.erase()
        made.operation.erase()


def _declare_shared_memory(kernels) -> None:
    """Dynamic shared memory is declared only; as a definition it would be of size 0.

    It begins where boxes of tensors may.
    """
    for op in kernels.regions[0].blocks[0].operations:
        if op.operation.name == "llvm.mlir.global" and "array<0 x i8>" in str(
            op.attributes["global_type"]
        ):
            op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
            op.attributes["alignment"] = ir.IntegerAttr.get(_i64(), BOX_BYTES)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _run(module: ir.Module, texts: tuple[str, ...], filename: str) -> None:
    elements = [PassElement(text, None) for text in texts]
    run_pipeline(module, elements, PipelineOptions(filename=filename, verify=False))
