# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a pass is, how its options are read, and where each pass lives.

A pass is a frozen dataclass derived from `ModulePass`: its fields are its options, its docstring is
its reference page. File `crush.py` holds pass `nm-crush`.
"""

import dataclasses
import importlib
import re
import types
import typing
from typing import ClassVar

from twofour.errors import TwofourError
from twofour.mlir import ir
from twofour.suggestions import suggest

_MODULES = {
    "stencil-infer-bounds": "stencil.transforms.infer_bounds:InferBoundsPass",
    "stencil-extract-weights": "stencil.transforms.extract_weights:ExtractWeightsPass",
    "stencil-fuse-steps": "stencil.transforms.fuse_steps:FuseStepsPass",
    "stencil-time-tile": "stencil.transforms.time_tile:TimeTilePass",
    "stencil-convert-element-type": (
        "stencil.transforms.convert_element_type:ConvertElementTypePass"
    ),
    "stencil-to-scatter": "stencil.transforms.to_scatter:ToScatterPass",
    "stencil-select-cover": "stencil.transforms.select_cover:SelectCoverPass",
    "stencil-block": "stencil.transforms.block:BlockPass",
    "stencil-schedule-outer": "stencil.transforms.schedule_outer:ScheduleOuterPass",
    "stencil-reorganize": "stencil.transforms.reorganize:ReorganizePass",
    "convert-nm-to-stencil": "nm.transforms.to_stencil:ConvertNmToStencilPass",
    "convert-stencil-to-nm": "stencil.transforms.to_nm:ConvertStencilToNmPass",
    "nm-crush": "nm.transforms.crush:CrushPass",
    "nm-permute-2to4": "nm.transforms.permute_2to4:Permute2to4Pass",
    "nm-compress": "nm.transforms.compress:CompressPass",
    "convert-nm-to-gpu": "nm.transforms.to_gpu:ConvertNmToGpuPass",
    "convert-stencil-to-gpu": "stencil.transforms.to_gpu:ConvertStencilToGpuPass",
    "convert-stencil-outer-to-sme": (
        "stencil.transforms.outer_to_sme:ConvertStencilOuterToSmePass"
    ),
    "convert-nm-to-vector": "nm.transforms.to_vector:ConvertNmToVectorPass",
    "stencil-fuse-siblings": "stencil.transforms.fuse_siblings:FuseSiblingsPass",
    "convert-stencil-to-vector": "stencil.transforms.to_vector:ConvertStencilToVectorPass",
    "convert-stencil-outer-to-vector": (
        "stencil.transforms.outer_to_vector:ConvertStencilOuterToVectorPass"
    ),
    "convert-stencil-apply-to-vector": (
        "stencil.transforms.apply_to_vector:ConvertStencilApplyToVectorPass"
    ),
    "convert-stencil-to-loops": "stencil.transforms.to_loops:ConvertStencilToLoopsPass",
    "stencil-bufferize": "stencil.transforms.bufferize:BufferizePass",
    "convert-copy-to-kernels": "stencil.transforms.copy_to_kernels:ConvertCopyToKernelsPass",
    "convert-copy-to-gpu": "stencil.transforms.copy_to_gpu:ConvertCopyToGpuPass",
    "stencil-add-boundary-kernels": (
        "stencil.transforms.add_boundary_kernels:AddBoundaryKernelsPass"
    ),
}


@dataclasses.dataclass(frozen=True)
class ModulePass:
    """Base of the project's passes; `run` changes a module in place."""

    name: ClassVar[str]

    def run(self, module: ir.Operation) -> None:
        """Raise TwofourError, located at the op, when the module cannot be handled."""
        raise TypeError(f"pass {type(self).__name__} has no run method")

    def spell(self) -> str:
        """The pass as a pipeline spells it, with the options that differ from their defaults."""
        options = [
            f"{field.name.replace('_', '-')}={_print_value(value)}"
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) != field.default
        ]
        return f"{self.name}{{{' '.join(options)}}}" if options else self.name


def pass_names() -> list[str]:
    """The names of the project's passes, in the order of the pipeline."""
    return list(_MODULES)


def pass_class(name: str) -> type[ModulePass]:
    """The class of a pass; raises KeyError when the project has none of that name."""
    module, _, attribute = _MODULES[name].partition(":")
    return getattr(importlib.import_module(f"twofour.dialects.{module}"), attribute)


@dataclasses.dataclass(frozen=True)
class PassOption:
    """An option as a pipeline spells it.

    `choices` are the values that it may have; where they are not so few, it is empty and `form`
    says how values look (`N`, `N,N,...` or `TEXT`). `default` is the spelling of the value that an
    option has when it is not given, None where it then has none.
    """

    name: str
    choices: tuple[str, ...]
    form: str
    default: str | None

    def __str__(self) -> str:
        text = f"{self.name}={'|'.join(self.choices) or self.form}"
        return text if self.default is None else f"{text} (default {self.default})"


def pass_options(cls: type[ModulePass]) -> list[PassOption]:
    """The options of a pass, in the order of its fields."""
    hints = typing.get_type_hints(cls)
    return [_option(field, hints[field.name]) for field in dataclasses.fields(cls)]


def _option(field: dataclasses.Field, hint) -> PassOption:
    hint = _given(hint)
    choices = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
    form = {int: "N", str: "TEXT"}.get(hint, "N,N,...")
    return PassOption(
        name=field.name.replace("_", "-"),
        choices=("true", "false") if hint is bool else tuple(map(str, choices)),
        form=form,
        default=None if field.default is None else _print_value(field.default),
    )


def _given(hint):
    """The type of an option that is given, where it need not be."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    return next(kind for kind in typing.get_args(hint) if kind is not type(None))


def make_pass(name: str, options: str = "") -> ModulePass:
    """A pass from its name and the text between braces (`tile=4,4 strategy=exact`).

    Raises TwofourError for an option that the pass does not have or a value of the wrong kind.
    """
    cls = pass_class(name)
    hints = typing.get_type_hints(cls)
    fields = {field.name.replace("_", "-"): field.name for field in dataclasses.fields(cls)}
    values = {}
    for item in options.split():
        key, separator, text = item.partition("=")
        if key not in fields:
            raise TwofourError(f"pass '{name}' has no option '{key}'{suggest(key, fields)}")
        if not separator:
            raise TwofourError(f"expected '{key}=VALUE' in the options of pass '{name}'")
        if fields[key] in values:
            raise TwofourError(f"expected option '{key}' of pass '{name}' once, got it twice")
        values[fields[key]] = _parse_value(hints[fields[key]], text, f"option '{key}' of '{name}'")
    return cls(**values)


def _parse_value(hint, text: str, what: str):
    hint = _given(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        if text not in arguments:
            raise TwofourError(
                f"expected one of {', '.join(map(str, arguments))} for {what}, got '{text}'"
            )
        return text
    try:
        if origin is tuple:
            return tuple(_parse_item(arguments[0], item) for item in text.split(","))
        if hint is bool:
            return {"true": True, "1": True, "false": False, "0": False}[text]
        return _parse_item(hint, text)
    except (ValueError, KeyError):
        kind = f"a list of {arguments[0].__name__}" if origin is tuple else hint.__name__
        raise TwofourError(f"expected {kind} for {what}, got '{text}'") from None


def _parse_item(hint: type, text: str):
    if hint is not int:
        return hint(text)
    # Python knows more spellings, and attributes have no place for larger numbers.
    if not re.fullmatch("-?[0-9]+", text) or not -(2**63) <= (value := int(text)) < 2**63:
        raise ValueError
    return value


def _print_value(value) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
