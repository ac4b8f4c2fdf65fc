# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From MLIR's vector, scf and memref dialects to machine code in this process."""

import ctypes
from collections.abc import Iterable
from hashlib import sha256
from itertools import count

from twofour.codegen.cpu.kernel_abi import INPUTS_ATTRIBUTE
from twofour.diagnostics import located_in
from twofour.mlir import execution_engine, ir
from twofour.mlir_support import error_at, nested_ops
from twofour.pipeline import PassElement, PipelineOptions, run_pipeline
from twofour.runtime.page_offset import CACHE_LINE
from twofour.runtime.recent import Recent
from twofour.targets.cpu.bf16_ops import ON_FLOATS, widen_ops
from twofour.targets.cpu.libm import FUNCTIONS, call_libm
from twofour.targets.cpu.linking import C_INTERFACE, hide_functions, rename
from twofour.targets.cpu.rounding import add_rounding
from twofour.targets.cpu.row_pointers import point_at_rows
from twofour.targets.cpu.vector_functions import call_vector_library
from twofour.targets.translation import check_translated

# The order matters: vector ops of rank 1 go straight to LLVM, memrefs are finalised last.
LLVM_PIPELINE = (
    "convert-scf-to-cf",
    "expand-strided-metadata",
    "lower-affine",
    "convert-vector-to-llvm",
    "convert-math-to-llvm",
    "convert-index-to-llvm",
    "convert-arith-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
)

_CONVERSIONS = ("arith.fptosi", "arith.fptoui", "arith.sitofp", "arith.uitofp")
# LLVM has code of its own for wider ones.
_CALLED_WIDTHS = range(65, 129)


def lower_to_llvm(module: ir.Module, filename: str = "-") -> None:
    """Lower a module to the LLVM dialect, in place: kernels step through rows, stacks aligned."""
    for function in nested_ops(module, "func.func"):
        if INPUTS_ATTRIBUTE in function.attributes:
            point_at_rows(function)
    with located_in(filename):
        # Looking through a module takes long enough to do it once.
        found = nested_ops(module, *{*_CONVERSIONS, *ON_FLOATS})
        _check_conversions(op for op in found if op.operation.name in _CONVERSIONS)
        found = widen_ops(op for op in found if op.operation.name in ON_FLOATS)
        found = call_vector_library(module, found)
        call_libm(module, [op for op in found if op.operation.name in FUNCTIONS])
    elements = [PassElement(text, None) for text in LLVM_PIPELINE]
    run_pipeline(module, elements, PipelineOptions(filename=filename, verify=False))
    with located_in(filename):
        _check_lowered(module)
    _align_stacks(module)


def _check_conversions(ops: Iterable) -> None:
    """Raise TwofourError for conversions that are functions of a library which is not there."""
    for op in ops:
        for kind in (op.operands[0].type, op.results[0].type):
            if isinstance(kind, ir.IntegerType) and kind.width in _CALLED_WIDTHS:
                expected = "expected an integer of at most 64 bits beside a float"
                raise error_at(op, f"{expected}, got {kind}")


def _check_lowered(module: ir.Module) -> None:
    """Raise TwofourError at an op that LLVM cannot translate, or a function that is not there."""
    libraries = ctypes.CDLL(None)
    for op in module.body.operations:
        if op.operation.name == "llvm.func" and not op.regions[0].blocks:
            name = op.attributes["sym_name"].value
            if not hasattr(libraries, name):
                raise error_at(op, f"expected a body, got a declaration of @{name} alone")
    check_translated(module, "the CPU target has")


def _align_stacks(module: ir.Module) -> None:
    """Let kernels keep vectors on the stack in whole cache lines.

    LLVM aligns a stack for what it knows of when it begins to choose registers. What it takes out
    of them later would lie across two lines, or not, as the functions before happened to leave it.
    """
    with module.context:
        aligned = ir.Attribute.parse(f'[["alignstack", "{CACHE_LINE}"]]')
    for op in module.body.operations:
        if INPUTS_ATTRIBUTE in op.attributes:
            op.attributes["passthrough"] = aligned


def _rename_functions(module: ir.Module) -> dict[str, str]:
    """Give the functions of a module names that no library has; returns the new name of each."""
    functions = nested_ops(module, "func.func")
    old = [function.attributes["sym_name"].value for function in functions]
    fresh = (name for n in count() if (name := f"twofour_{n}") not in old)
    names = dict(zip(old, fresh, strict=False))
    for function in functions:
        rename(function, names[function.attributes["sym_name"].value], module)
    return names


class CompiledModule:
    """Machine code of a module of functions, which it lowers; it lives as long as this object.

    What LLVM made of the last few modules is used again where another comes to the same.
    """

    def __init__(self, module: ir.Module, filename: str = "-"):
        with module.context, ir.Location.unknown():
            self._symbols = _rename_functions(module)
            lower_to_llvm(module, filename)
        # The engine would add a wrapper of each as well.
        hide_functions(module)
        names = _add_address_functions(module)
        self._code = _code(module, names)

    def address(self, name: str) -> int:
        """The address of the C interface of a function; raises KeyError when there is none."""
        return self._code.addresses[self._symbols[name]]


class _Code:
    """Machine code, and the addresses of its functions."""

    def __init__(self, module: ir.Module, names: Iterable[str]):
        self._engine = execution_engine.ExecutionEngine(module, opt_level=3)
        self.addresses = {name: self._look_up(name) for name in names}

    def _look_up(self, name: str) -> int:
        # The engine only hands out wrappers that take packed arguments: here, where to put the
        # address.
        wrapper = self._engine.raw_lookup(f"{name}{_ADDRESS_SUFFIX}")
        address = ctypes.c_void_p()
        packed = (ctypes.c_void_p * 1)(ctypes.addressof(address))
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(wrapper)(ctypes.addressof(packed))
        return address.value


# Programs that are made anew, or for another boundary, often have the code of one before them.
RECENT: Recent[_Code] = Recent(16)


def _code(module: ir.Module, names: Iterable[str]) -> _Code:
    """The code of a module in LLVM's dialect."""
    text = module.operation.get_asm(assume_verified=True)
    add_rounding(module, text)
    if _has_variables(module):
        return _Code(module, names)
    return RECENT.get(sha256(text.encode()).digest(), lambda _: _Code(module, names))


def _has_variables(module: ir.Module) -> bool:
    """Whether functions keep values from one call to the next, which are each program's own."""
    return any(
        op.operation.name == "llvm.mlir.global" and "constant" not in op.attributes
        for op in module.body.operations
    )


_ADDRESS_SUFFIX = "_address"


def _add_address_functions(module: ir.Module) -> list[str]:
    """Add, for every function with a C interface, one that returns its address."""
    names = [
        name.removeprefix(C_INTERFACE)
        for op in module.body.operations
        if op.operation.name == "llvm.func"
        and (name := op.attributes["sym_name"].value).startswith(C_INTERFACE)
    ]
    with module.context, ir.Location.unknown():
        for name in names:
            getter = ir.Module.parse(
                f"llvm.func @{C_INTERFACE}{name}() "
                f"llvm.func @{name}{_ADDRESS_SUFFIX}() -> !llvm.ptr {{"
                f"  %0 = llvm.mlir.addressof @{C_INTERFACE}{name} : !llvm.ptr"
                "  llvm.return %0 : !llvm.ptr }"
            )
            with ir.InsertionPoint(module.body):
                list(getter.body.operations)[1].operation.clone()
    return names
