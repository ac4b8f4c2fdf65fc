# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native code that runs rounds of programs over several fields, on all threads.

`drive_stretches` takes a list of what twofour.runtime.step_tables encodes, and runs one after the
other. Each thread calls it once, so that nothing comes between a thread and the others which wait
for it. It does its part of the rows of every command: a sweep, or a copy of cells. Commands of a
phase take turns, some rows each, such that what several of them read is in the caches. Phases of
several turns go up and down the rows alternately: what one did last is still in the caches when the
next one begins there. After each phase threads meet. Each of them writes the index of a loop: those
that come first have met all others after the round before. Like tile_driver it is written in LLVM's
dialect, since it works on addresses.
"""

from functools import cache

from twofour.mlir import ir
from twofour.runtime import STRETCH_WORDS, StepCode, step_code
from twofour.targets.cpu.barrier import DECLARATIONS, SPINS, meet
from twofour.targets.cpu.jit import CompiledModule
from twofour.targets.cpu.tile_driver import tile_driver
from twofour.targets.cpu.vector_unit import vector_unit

DRIVE, ROUNDS = "drive_stretches", "drive_rounds"


def step_driver(most_views: int) -> StepCode:
    """Code for commands of two to `most_views` views."""
    drive, owner = _compiled(most_views)
    planes = vector_unit("host").core.planes
    return step_code(drive, lambda rank, itemsize: tile_driver(rank, itemsize).copy, owner, planes)


@cache
def _compiled(most_views: int) -> tuple[int, object]:
    context = ir.Context()
    with context, ir.Location.unknown():
        code = CompiledModule(ir.Module.parse(_drive(most_views)))
    return code.address(DRIVE), (code, context)


def _call(views: int) -> str:
    """Code that calls %code with so many views and the rows [%begin, %end)."""
    lines = [f"case {views} {{"]
    for view in range(views):
        lines += [
            f"%number_{view} = llvm.mlir.constant({view} : i64) : i64",
            f"%behind_{view} = llvm.mul %number_{view}, %width : i64",
            f"%view_{view} = llvm.getelementptr %first_view[%behind_{view}]"
            " : (!llvm.ptr, i64) -> !llvm.ptr, i64",
        ]
    operands = "".join(f"%view_{view}, " for view in range(views))
    types = "!llvm.ptr, " * views
    lines += [
        f"llvm.call %code({operands}%begin, %end) : !llvm.ptr, ({types}i64, i64) -> ()",
        "scf.yield",
        "}",
    ]
    return "\n".join(lines)


# Words of a stretch: addresses of the program and of all views, the first round, how many, and the
# address of what threads share. Without a program: where to write the number that is third.
# Words of the program: the round that follows the last one, and how many there are; addresses of
# the first phase of each round, of the phases, and of the commands; words of a view; the view that
# gets the index of the loop, or -1, this index in round 0, and its step. The first list holds one
# number more.
# Phase: first command, command after the last, most rows of a command, rows of a block.
# Command: address of the code, first view, number of views, rows.
# View: a memref descriptor.
# Words shared by the threads, each on a cache line: threads at the barrier, and its turn.
def _drive(most_views: int) -> str:
    calls = "\n".join(_call(views) for views in range(2, most_views + 1))
    word = ": (!llvm.ptr) -> !llvm.ptr, i64"
    at = ": (!llvm.ptr, i64) -> !llvm.ptr, i64"
    return f"""
{DECLARATIONS}func.func @{DRIVE}(%stretches: !llvm.ptr, %how_many: i64, %thread: i64, %threads: i64)
    attributes {{llvm.emit_c_interface}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %words = llvm.mlir.constant({STRETCH_WORDS} : i64) : i64
  %none = llvm.mlir.zero : !llvm.ptr
  scf.for %n = %zero to %how_many step %one : i64 {{
    %behind = llvm.mul %n, %words : i64
    %stretch = llvm.getelementptr %stretches[%behind] {at}
    %program = llvm.load %stretch : !llvm.ptr -> !llvm.ptr
    %s1 = llvm.getelementptr %stretch[1] {word}
    %place = llvm.load %s1 : !llvm.ptr -> !llvm.ptr
    %s2 = llvm.getelementptr %stretch[2] {word}
    %value = llvm.load %s2 : !llvm.ptr -> i64
    %s3 = llvm.getelementptr %stretch[3] {word}
    %count = llvm.load %s3 : !llvm.ptr -> i64
    %s4 = llvm.getelementptr %stretch[4] {word}
    %shared = llvm.load %s4 : !llvm.ptr -> !llvm.ptr
    %sets = llvm.icmp "eq" %program, %none : !llvm.ptr
    scf.if %sets {{
      llvm.store %value, %place atomic monotonic {{alignment = 8 : i64}} : i64, !llvm.ptr
    }} else {{
      func.call @{ROUNDS}(%program, %place, %value, %count, %thread, %threads, %shared)
          : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64, !llvm.ptr) -> ()
    }}
  }}
  return
}}
func.func private @{ROUNDS}(%program: !llvm.ptr, %all_views: !llvm.ptr, %first: i64,
                            %count: i64, %thread: i64, %threads: i64, %shared: !llvm.ptr) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %four = llvm.mlir.constant(4 : i64) : i64
  %spins = llvm.mlir.constant({SPINS} : i64) : i64
  %turn = llvm.getelementptr %shared[8] {word}
  %start = llvm.load %program : !llvm.ptr -> i64
  %p1 = llvm.getelementptr %program[1] {word}
  %rounds = llvm.load %p1 : !llvm.ptr -> i64
  %period = llvm.sub %rounds, %start : i64
  %p2 = llvm.getelementptr %program[2] {word}
  %phases = llvm.load %p2 : !llvm.ptr -> !llvm.ptr
  %p3 = llvm.getelementptr %program[3] {word}
  %all_phases = llvm.load %p3 : !llvm.ptr -> !llvm.ptr
  %p4 = llvm.getelementptr %program[4] {word}
  %commands = llvm.load %p4 : !llvm.ptr -> !llvm.ptr
  %p5 = llvm.getelementptr %program[5] {word}
  %width = llvm.load %p5 : !llvm.ptr -> i64
  %p6 = llvm.getelementptr %program[6] {word}
  %index_view = llvm.load %p6 : !llvm.ptr -> i64
  %p7 = llvm.getelementptr %program[7] {word}
  %lower = llvm.load %p7 : !llvm.ptr -> i64
  %p8 = llvm.getelementptr %program[8] {word}
  %stride = llvm.load %p8 : !llvm.ptr -> i64
  %counts = llvm.icmp "sge" %index_view, %zero : i64
  %next_thread = llvm.add %thread, %one : i64
  %last_direction = scf.for %counted = %zero to %count step %one
      iter_args(%direction = %zero) -> (i64) : i64 {{
    %number = llvm.add %first, %counted : i64
    %is_first = llvm.icmp "slt" %number, %start : i64
    %behind_start = llvm.sub %number, %start : i64
    %turn_number = llvm.urem %behind_start, %period : i64
    %again = llvm.add %start, %turn_number : i64
    %round = llvm.select %is_first, %number, %again : i1, i64
    scf.if %counts {{
      %index_at = llvm.mul %index_view, %width : i64
      %index_words = llvm.getelementptr %all_views[%index_at] {at}
      %cell = llvm.load %index_words : !llvm.ptr -> !llvm.ptr
      %since_lower = llvm.mul %number, %stride : i64
      %index = llvm.add %lower, %since_lower : i64
      llvm.store %index, %cell atomic monotonic {{alignment = 8 : i64}} : i64, !llvm.ptr
    }}
    %phases_at = llvm.getelementptr %phases[%round] {at}
    %first_phase = llvm.load %phases_at : !llvm.ptr -> i64
    %phases_end = llvm.getelementptr %phases_at[1] {word}
    %last_phase = llvm.load %phases_end : !llvm.ptr -> i64
    %next_direction = scf.for %phase = %first_phase to %last_phase step %one
        iter_args(%down = %direction) -> (i64) : i64 {{
    %mine = llvm.load %turn atomic acquire {{alignment = 8 : i64}} : !llvm.ptr -> i64
    %phase_at = llvm.mul %phase, %four : i64
    %first_command_at = llvm.getelementptr %all_phases[%phase_at] {at}
    %first_command = llvm.load %first_command_at : !llvm.ptr -> i64
    %last_command_at = llvm.getelementptr %first_command_at[1] {word}
    %last_command = llvm.load %last_command_at : !llvm.ptr -> i64
    %most_rows_at = llvm.getelementptr %first_command_at[2] {word}
    %most_rows = llvm.load %most_rows_at : !llvm.ptr -> i64
    %block_at = llvm.getelementptr %first_command_at[3] {word}
    %block = llvm.load %block_at : !llvm.ptr -> i64
    %shared_out = llvm.udiv %most_rows, %threads : i64
    %most_part = llvm.add %shared_out, %one : i64
    %last_row = llvm.sub %most_part, %one : i64
    %last_block = llvm.sdiv %last_row, %block : i64
    %last_done = llvm.mul %last_block, %block : i64
    %is_down = llvm.icmp "ne" %down, %zero : i64
    scf.for %turned = %zero to %most_part step %block : i64 {{
    %from_last = llvm.sub %last_done, %turned : i64
    %done = llvm.select %is_down, %from_last, %turned : i1, i64
    scf.for %c = %first_command to %last_command step %one : i64 {{
      %c_at = llvm.mul %c, %four : i64
      %command = llvm.getelementptr %commands[%c_at] {at}
      %code = llvm.load %command : !llvm.ptr -> !llvm.ptr
      %c1 = llvm.getelementptr %command[1] {word}
      %view = llvm.load %c1 : !llvm.ptr -> i64
      %c2 = llvm.getelementptr %command[2] {word}
      %views = llvm.load %c2 : !llvm.ptr -> i64
      %c3 = llvm.getelementptr %command[3] {word}
      %rows = llvm.load %c3 : !llvm.ptr -> i64
      %before_part = llvm.mul %rows, %thread : i64
      %part_begin = llvm.udiv %before_part, %threads : i64
      %after_part = llvm.mul %rows, %next_thread : i64
      %part_end = llvm.udiv %after_part, %threads : i64
      %begin = llvm.add %part_begin, %done : i64
      %block_end = llvm.add %begin, %block : i64
      %end = llvm.intr.smin(%block_end, %part_end) : (i64, i64) -> i64
      %some = llvm.icmp "slt" %begin, %end : i64
      scf.if %some {{
        %view_at = llvm.mul %view, %width : i64
        %first_view = llvm.getelementptr %all_views[%view_at] {at}
        %arity = arith.index_cast %views : i64 to index
        scf.index_switch %arity
{calls}
        default {{
        }}
      }}
    }}
    }}
{meet()}    %turns = llvm.icmp "sgt" %shared_out, %block : i64
    %other = llvm.sub %one, %down : i64
    %after = llvm.select %turns, %other, %down : i1, i64
    scf.yield %after : i64
    }}
    scf.yield %next_direction : i64
  }}
  return
}}
"""
