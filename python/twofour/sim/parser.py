# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parser of PTX as LLVM, nvcc and this project emit it.

Statements are found by scanning for `;` and braces, operands by regular expressions, since modules
have tens of thousands of lines. Comments and line information are dropped; `.func` and calls are
refused. Everything else that is not understood is an error at its line.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, replace

from twofour.errors import SourceLocation, TwofourError
from twofour.sim.operands import IDENTIFIER, Context, parse_name, parse_operand, split
from twofour.sim.ptx import (
    Instruction,
    Kernel,
    Label,
    Module,
    Negated,
    Operand,
    Parameter,
    Register,
)
from twofour.sim.variables import SIZES, parse_variable

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_SPACE = re.compile(r"\s*")
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_LINE_DIRECTIVE = re.compile(r"\.(loc|file)\b[^\n]*")
_SECTION = re.compile(r"\.section\b[^{]*\{[^}]*\}")
_HEADER = re.compile(r"\.(version|target|address_size)\s+([^\n]*)")
_LINKAGE = re.compile(r"\.(visible|extern|weak|common)\s+")
_ENTRY = re.compile(r"\.entry\s+([\w$%.]+)")
_INSTRUCTION = re.compile(
    r"(?:@\s*(!?)\s*(%?[\w$]+)\s+)?([a-z][a-z0-9_]*)((?:\.[\w:]+)*)\s*(.*)", re.S
)
_REGISTERS = re.compile(r"\.reg\s*(?:\.(v2|v4)\s*)?\.(\w+)\s+(.*)", re.S)
_REGISTER_RANGE = re.compile(r"([%\w$]+)<(\d+)>\Z")
_DIRECTIVE = re.compile(r"\.(\w+)((?:\s*[\d]+\s*,?)*)")
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s*"
    r"((?:\.ptr|\.global|\.shared|\.const|\.local|\.align\s+\d+|\s)*)([\w$%.]+)\s*(?:\[(\d*)\])?\Z"
)
# The kernel directives that say something about its launch; others are refused.
_KERNEL_DIRECTIVES = {
    "maxntid",
    "reqntid",
    "minnctapersm",
    "maxnreg",
    "maxnctapersm",
    "reqnctapercluster",
    "maxclusterrank",
    "explicitcluster",
    "noreturn",
    "blocksareclusters",
}
_BRANCHES = {"bra", "brx"}


def parse_module(text: str, name: str) -> Module:
    """The syntax tree of the PTX `text`; `name` is the file name that locations show.

    Raises TwofourError with the line and column of the first thing that is not understood.
    """
    return _Parser(text, name).module()


class _Parser:
    def __init__(self, text: str, name: str):
        # Blank out comments but keep every position.
        self.text = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]
        self.position = 0
        self.result = Module(name, text)
        self.operands: dict[tuple[str, str], Operand] = {}

    def location(self, position: int | None = None) -> SourceLocation:
        position = self.position if position is None else position
        line = bisect_right(self.lines, position)
        return SourceLocation(self.result.name, line, position - self.lines[line - 1] + 1)

    def error(self, message: str, position: int | None = None) -> TwofourError:
        return TwofourError(message, self.location(position))

    def skip(self) -> None:
        while True:
            self.position = _SPACE.match(self.text, self.position).end()
            line = _LINE_DIRECTIVE.match(self.text, self.position)
            if not line:
                return
            self.position = line.end()

    def statement(self) -> tuple[str, int]:
        """The text up to the next `;` and where it starts."""
        start = self.position
        end = self.text.find(";", start)
        if end < 0:
            raise self.error("expected ';' before the end of the file")
        self.position = end + 1
        return self.text[start:end].strip(), start

    def module(self) -> Module:
        result = self.result
        while True:
            self.skip()
            if self.position >= len(self.text):
                break
            if header := _HEADER.match(self.text, self.position):
                self._header(header)
            elif section := _SECTION.match(self.text, self.position):
                self.position = section.end()
            else:
                self._declaration()
        if not result.version or not result.target:
            raise TwofourError(
                "expected .version and .target in a PTX module", SourceLocation(result.name)
            )
        return result

    def _header(self, header: re.Match) -> None:
        kind, value = header.group(1), header.group(2).strip()
        if kind == "version":
            self.result.version = value
        elif kind == "target":
            self.result.target = value.split(",")[0].strip()
        elif value != "64":
            raise self.error(f"expected .address_size 64, got {value}")
        self.position = header.end()

    def _declaration(self) -> None:
        start = self.position
        while linkage := _LINKAGE.match(self.text, self.position):
            self.position = linkage.end()
        if entry := _ENTRY.match(self.text, self.position):
            self.position = entry.end()
            self._kernel(entry.group(1), start)
            return
        if self.text.startswith(".pragma", self.position):
            self.statement()
            return
        if not self.text.startswith((".global", ".const", ".shared"), self.position):
            word = self.text[self.position : self.position + 40].split("\n")[0].strip()
            if word.startswith(".func"):
                raise self.error(f"functions are not supported: {word!r}")
            raise self.error(f"expected a kernel or a variable, got {word!r}")
        text, at = self.statement()
        variable = parse_variable(text, self.location(at))
        self.result.globals[variable.name] = variable

    def _kernel(self, name: str, start: int) -> None:
        kernel = Kernel(name, self.result, self.location(start), [])
        self.skip()
        if self.text.startswith("(", self.position):
            end = self.text.find(")", self.position)
            if end < 0:
                raise self.error("expected ')' after the parameters")
            self._parameters(kernel, self.text[self.position + 1 : end])
            self.position = end + 1
        self.skip()
        while directive := _DIRECTIVE.match(self.text, self.position):
            if directive.group(1) not in _KERNEL_DIRECTIVES:
                raise self.error(f"unsupported kernel directive .{directive.group(1)}")
            kernel.directives[directive.group(1)] = tuple(
                int(n) for n in re.findall(r"\d+", directive.group(2))
            )
            self.position = directive.end()
            self.skip()
        if not self.text.startswith("{", self.position):
            raise self.error(f"expected the body of kernel {name}")
        self.position += 1
        if name in self.result.kernels:
            raise self.error(f"kernel {name} is defined twice", start)
        self._body(kernel)
        self.result.kernels[name] = kernel

    def _parameters(self, kernel: Kernel, text: str) -> None:
        offset = 0
        for part in text.split(","):
            part = part.strip()
            if not part:
                continue
            match = _PARAMETER.match(part)
            if not match or match.group(2) not in SIZES:
                raise self.error(f"expected a parameter, got {part!r}")
            alignment, kind, _, name, count = match.groups()
            size = SIZES[kind] * (int(count) if count else 1)
            alignment = max(int(alignment or 1), SIZES[kind])
            offset = -(-offset // alignment) * alignment
            kernel.parameters.append(Parameter(name, kind, size, alignment, offset))
            offset += size

    def _body(self, kernel: Kernel) -> None:
        scopes = [_Scope({}, (0,))]
        opened = 0
        branches: list[tuple[int, _Scope]] = []
        while True:
            self.skip()
            start = self.position
            if start >= len(self.text):
                raise self.error(f"expected '}}' at the end of kernel {kernel.name}")
            character = self.text[start]
            if character == "{":
                opened += 1
                scopes.append(_Scope(dict(scopes[-1].names), (*scopes[-1].path, opened)))
                self.position += 1
            elif character == "}":
                self.position += 1
                scopes.pop()
                if not scopes:
                    break
            elif character == ".":
                self._directive(kernel, scopes[-1])
            elif label := _LABEL.match(self.text, start):
                self._label(kernel, label, scopes[-1])
            else:
                text, at = self.statement()
                if text:
                    instruction = self._instruction(kernel, text, at, scopes[-1].names)
                    if instruction.root in _BRANCHES:
                        branches.append((len(kernel.body), scopes[-1]))
                    kernel.body.append(instruction)
        for index, scope in branches:
            kernel.body[index] = _resolved(kernel, kernel.body[index], scope)

    def _label(self, kernel: Kernel, label: re.Match, scope: "_Scope") -> None:
        name = scope.label(label.group(1))
        self.position = label.end()
        self.skip()
        if self.text.startswith(".branchtargets", self.position):
            text, _ = self.statement()
            targets = text[len(".branchtargets") :].replace("\n", " ").split(",")
            kernel.branch_targets[name] = tuple(t.strip() for t in targets)
            return
        if name in kernel.labels:
            raise self.error(f"label {label.group(1)} is defined twice", label.start())
        kernel.labels[name] = len(kernel.body)

    def _directive(self, kernel: Kernel, scope: "_Scope") -> None:
        text, start = self.statement()
        if text.startswith(".pragma"):
            return
        if not text.startswith(".reg"):
            variable = parse_variable(text, self.location(start))
            if variable.space not in ("shared", "local"):
                raise self.error(f"expected .reg, .shared or .local, got {text!r}", start)
            kernel.variables[variable.name] = variable
            return
        match = _REGISTERS.match(text)
        if not match or (match.group(2) != "pred" and match.group(2) not in SIZES):
            raise self.error(f"expected a register declaration, got {text!r}", start)
        vector, kind, names = match.groups()
        if vector:
            raise self.error("vector registers are not supported", start)
        for name in names.split(","):
            name = name.strip()
            span = _REGISTER_RANGE.match(name)
            if span:
                members = [f"{span.group(1)}{i}" for i in range(int(span.group(2)))]
            elif IDENTIFIER.match(name):
                members = [name]
            else:
                raise self.error(f"expected a register name, got {name!r}", start)
            for member in members:
                unique = member
                if len(scope.path) > 1:
                    while unique in kernel.registers:
                        unique += "'"
                    scope.names[member] = unique
                kernel.registers[unique] = kind

    def _instruction(
        self, kernel: Kernel, text: str, start: int, scope: dict[str, str]
    ) -> Instruction:
        match = _INSTRUCTION.match(text)
        if not match:
            raise self.error(f"expected an instruction, got {text[:60]!r}", start)
        negated, guard, root, modifiers, rest = match.groups()
        location = self.location(start)
        if root == "call":
            raise TwofourError("unsupported instruction call", location)
        context = Context(kernel, scope, location, root in _BRANCHES)
        predicate = None
        if guard:
            predicate = parse_name(guard, context)
            if not isinstance(predicate, Register):
                raise TwofourError(f"expected a predicate register, got {guard}", location)
            predicate = Negated(predicate) if negated else predicate
        operands = []
        for part in split(rest):
            # Scopes are rare, so operands are interned only where no scope renames.
            key = None if scope else part
            operand = self.operands.get((kernel.name, key)) if key else None
            if operand is None or root in _BRANCHES:
                operand = parse_operand(part, context)
                if key and root not in _BRANCHES:
                    self.operands[kernel.name, key] = operand
            operands.append(operand)
        return Instruction(
            root,
            tuple(modifiers.split(".")[1:]) if modifiers else (),
            tuple(operands),
            predicate,
            location,
        )


@dataclass(frozen=True)
class _Scope:
    """A block in braces: unique names of the registers declared in it, since scopes may shadow.

    `path` has the numbers of the scopes around it and its own.
    """

    names: dict[str, str]
    path: tuple[int, ...]

    def label(self, name: str) -> str:
        """The unique name of a label that is defined in the scope."""
        return name if len(self.path) == 1 else f"{name}@{self.path[-1]}"


def _resolved(kernel: Kernel, instruction: Instruction, scope: _Scope) -> Instruction:
    """A branch with the unique names of the labels that it means, from the innermost scope on."""
    candidates = [_Scope({}, scope.path[:n]) for n in range(len(scope.path), 0, -1)]

    def unique(operand: Operand) -> Operand:
        if not isinstance(operand, Label):
            return operand
        names = (candidate.label(operand.name) for candidate in candidates)
        known = (n for n in names if n in kernel.labels or n in kernel.branch_targets)
        return Label(next(known, operand.name))

    return replace(instruction, operands=tuple(map(unique, instruction.operands)))
