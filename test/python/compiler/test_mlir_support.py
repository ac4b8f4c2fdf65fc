# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the project adds to MLIR's bindings."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from twofour import context
from twofour.context import context_of_programs, make_context
from twofour.errors import SourceLocation, TwofourError
from twofour.mlir import ir
from twofour.mlir_support import location_of, nested_ops, op_names, source_location


class Root:
    """A module, whose walk meets a callback that raises."""

    def __init__(self, module, error):
        self.operation, self._module, self._error = self, module, error

    def walk(self, visit, order):
        def hit(op):
            raise self._error

        return self._module.operation.walk(hit, order)


@pytest.mark.parametrize("function", [nested_ops, op_names])
@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [(KeyboardInterrupt(), KeyboardInterrupt, None), (ValueError("other"), RuntimeError, "other")],
)
def test_what_callbacks_raise(function, error, kind, message):
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func private @f()")
        with pytest.raises(kind, match=message):
            function(Root(module, error))


def test_functions_and_modules_in_modules():
    text = """
func.func @a() { func.call @c() : () -> () return }
module { gpu.module @kernels { gpu.func @k() kernel { gpu.return } func.func @b() { return } } }
func.func @c() { return }
"""
    with make_context():
        module = ir.Module.parse(text)
        for names, expected in (
            (["func.func"], ["a", "b", "c"]),
            (["gpu.module", "gpu.func"], ["kernels", "k"]),
            (["func.func", "func.call"], ["a", "c", "b", "c"]),
        ):
            found = nested_ops(module, *names)
            keys = ["callee" if "callee" in op.attributes else "sym_name" for op in found]
            assert [
                op.attributes[key].value for op, key in zip(found, keys, strict=True)
            ] == expected


def test_locations_of_files_with_any_name():
    with make_context():
        place = SourceLocation("a\udcff b.mlir", 3, 4)
        assert source_location(location_of(place)) == SourceLocation(r"a\udcff b.mlir", 3, 4)


def test_a_signal_handler_cannot_compile_while_dialects_are_loaded(monkeypatch):
    """MLIR would end the process."""
    load = context.DIALECTS[0].load

    def interrupted():
        with pytest.raises(TwofourError, match="expected no compilation within another one"):
            make_context()
        load()

    monkeypatch.setattr(context.DIALECTS[0], "load", interrupted)
    make_context()
    monkeypatch.undo()
    make_context()


def test_programs_of_a_thread_share_contexts():
    own = context_of_programs()
    with ThreadPoolExecutor(1) as thread:
        others = list(thread.map(lambda _: context_of_programs(), range(129)))
    assert own not in others
    kept = [others.index(one) for one in others]
    assert kept == [0] * 64 + [64] * 64 + [128]


@pytest.mark.parametrize(
    "text",
    [
        'loc("y":3:4)',
        'loc("name"("y":3:4))',
        'loc(fused[unknown, "y":3:4, "z":1:1])',
        'loc(callsite("y":3:4 at "z":1:1))',
        'loc(callsite(unknown at "y":3:4))',
        'loc(callsite("name" at callsite(unknown at "y":3:4)))',
    ],
)
def test_the_first_place_that_a_location_knows(text):
    with ir.Context():
        module = ir.Module.parse(f"module {{}} {text}")
        assert source_location(module.operation.location) == SourceLocation("y", 3, 4)
