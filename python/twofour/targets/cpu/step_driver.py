# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native code that runs rounds of programs over several fields, on all threads.

`drive_stretches` takes a list of what twofour.runtime.rounds.step_tables encodes, and runs one
after the other. Each thread calls it once, so that nothing comes between a thread and the others
which wait for it. It does its part of the rows of every command: a sweep, or a copy of cells.
Commands of a phase take turns, some rows each, such that what several of them read is in the
caches. Where they need each other each stays some rows behind those before it, and the rows at the
ends of parts are left to seams (see twofour.runtime.rounds.time_skewing). Phases of several turns
go up and down the rows alternately, the first one down in an odd round: what one did last is still
in the caches when the next one begins there. After each phase threads meet. Each of them writes the
index of a loop: those that come first have met all others after the round before. Like tile_driver
it is written in LLVM's dialect, since it works on addresses.
"""

from twofour.codegen.cpu.vector_unit import vector_unit
from twofour.mlir import ir
from twofour.runtime import STRETCH_WORDS, Command, Phase, StepCode, step_code
from twofour.runtime.once import made_once
from twofour.targets.cpu.barrier import DECLARATIONS, SPINS, meet
from twofour.targets.cpu.crew import native_crew
from twofour.targets.cpu.jit import CompiledModule
from twofour.targets.cpu.tile_driver import tile_driver
from twofour.targets.cpu.words import WORD, load_words

DRIVE = "drive_stretches"
WORDS = ": (!llvm.ptr, i64) -> !llvm.ptr, i64"


def step_driver(most_views: int) -> StepCode:
    """Code for commands of two to `most_views` views."""
    drive, owner = _compiled(most_views)
    planes = vector_unit("host").core.planes
    return step_code(drive, _copy, owner, planes, native_crew)


def _copy(rank: int, itemsize: int) -> int:
    return tile_driver(rank, itemsize).copy


@made_once
def _compiled(most_views: int) -> tuple[int, object]:
    context = ir.Context()
    with context, ir.Location.unknown():
        parts = (_drive(), _rounds(), _block(), _seam(), _runs(most_views), _meet())
        code = CompiledModule(ir.Module.parse(DECLARATIONS + "".join(parts)))
    return code.address(DRIVE), (code, context)


# Words of the list: how many stretches there are, and the words of each.
# Words of a stretch: addresses of the program and of all views, the first round, how many, and the
# address of what threads share. Without a program: where to write the number that is third.
# Words of the program: the round that follows the last one, and how many there are; addresses of
# the first phase of each round, of the phases, and of the commands; words of a view; the view that
# gets the index of the loop, or -1, this index in round 0, and its step. The first list holds one
# number more.
# View: a memref descriptor.
# Words shared by the threads, each on a cache line: threads at the barrier, and its turn.
def _drive() -> str:
    stretch = load_words(
        "stretch", ("program", "place", "value", "count", "shared"), ("program", "place", "shared")
    )
    return f"""
func.func @{DRIVE}(%list: !llvm.ptr, %thread: i64, %threads: i64)
    attributes {{llvm.emit_c_interface}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %words = llvm.mlir.constant({STRETCH_WORDS} : i64) : i64
  %none = llvm.mlir.zero : !llvm.ptr
  %how_many = llvm.load %list : !llvm.ptr -> i64
  %stretches = llvm.getelementptr %list[1] {WORD}
  scf.for %n = %zero to %how_many step %one : i64 {{
    %behind = llvm.mul %n, %words : i64
    %stretch = llvm.getelementptr %stretches[%behind] {WORDS}
{stretch}
    %sets = llvm.icmp "eq" %program, %none : !llvm.ptr
    scf.if %sets {{
      llvm.store %value, %place atomic monotonic {{alignment = 8 : i64}} : i64, !llvm.ptr
    }} else {{
      func.call @rounds(%program, %place, %value, %count, %thread, %threads, %shared)
          : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64, !llvm.ptr) -> ()
    }}
  }}
  return
}}
"""


def _rounds() -> str:
    program = load_words(
        "program",
        ("start", "rounds", "first_phases", "phases", "commands", "width", "index_view", "lower",
         "stride"),
        ("first_phases", "phases", "commands"),
    )  # fmt: skip
    return f"""
func.func private @rounds(%program: !llvm.ptr, %views: !llvm.ptr, %first_round: i64, %count: i64,
                          %thread: i64, %threads: i64, %shared: !llvm.ptr) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %phase_words = llvm.mlir.constant({len(Phase._fields)} : i64) : i64
  %turn = llvm.getelementptr %shared[8] {WORD}
{program}
  %period = llvm.sub %rounds, %start : i64
  %counts = llvm.icmp "sge" %index_view, %zero : i64
  %first_direction = llvm.and %first_round, %one : i64
  %last_direction = scf.for %counted = %zero to %count step %one
      iter_args(%direction = %first_direction) -> (i64) : i64 {{
    %number = llvm.add %first_round, %counted : i64
    %is_early = llvm.icmp "slt" %number, %start : i64
    %behind_start = llvm.sub %number, %start : i64
    %turn_number = llvm.urem %behind_start, %period : i64
    %again = llvm.add %start, %turn_number : i64
    %round = llvm.select %is_early, %number, %again : i1, i64
    scf.if %counts {{
      %index_at = llvm.mul %index_view, %width : i64
      %index_words = llvm.getelementptr %views[%index_at] {WORDS}
      %cell = llvm.load %index_words : !llvm.ptr -> !llvm.ptr
      %since_lower = llvm.mul %number, %stride : i64
      %index = llvm.add %lower, %since_lower : i64
      llvm.store %index, %cell atomic monotonic {{alignment = 8 : i64}} : i64, !llvm.ptr
    }}
    %round_at = llvm.getelementptr %first_phases[%round] {WORDS}
    %first_phase = llvm.load %round_at : !llvm.ptr -> i64
    %round_end = llvm.getelementptr %round_at[1] {WORD}
    %last_phase = llvm.load %round_end : !llvm.ptr -> i64
    %next_direction = scf.for %p = %first_phase to %last_phase step %one
        iter_args(%down = %direction) -> (i64) : i64 {{
      %mine = llvm.load %turn atomic acquire {{alignment = 8 : i64}} : !llvm.ptr -> i64
      %phase_at = llvm.mul %p, %phase_words : i64
      %phase = llvm.getelementptr %phases[%phase_at] {WORDS}
{load_words("phase", Phase._fields)}
      %least_part = llvm.udiv %rows, %threads : i64
      %last_block = llvm.udiv %least_part, %block : i64
      %last_done = llvm.mul %last_block, %block : i64
      %all_blocks = llvm.add %last_done, %block : i64
      %way = llvm.add %all_blocks, %lag : i64
      %is_down = llvm.icmp "ne" %down, %zero : i64
      scf.for %turned = %zero to %way step %block : i64 {{
        %from_last = llvm.sub %last_done, %turned : i64
        %done = llvm.select %is_down, %from_last, %turned : i1, i64
        scf.for %c = %first to %last step %one : i64 {{
          func.call @block(%commands, %c, %views, %width, %thread, %threads, %done, %block,
              %is_down) : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64, i64, i64, i1) -> ()
        }}
      }}
      func.call @meet(%shared, %turn, %mine, %threads) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
      %seams = llvm.icmp "ne" %has_seams, %zero : i64
      scf.if %seams {{
        %then = llvm.load %turn atomic acquire {{alignment = 8 : i64}} : !llvm.ptr -> i64
        scf.for %c = %first to %last step %one : i64 {{
          func.call @seam(%commands, %c, %views, %width, %thread, %threads)
              : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64) -> ()
        }}
        func.call @meet(%shared, %turn, %then, %threads) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
      }}
      %turns = llvm.icmp "sgt" %least_part, %block : i64
      %other = llvm.sub %one, %down : i64
      %after = llvm.select %turns, %other, %down : i1, i64
      scf.yield %after : i64
    }}
    scf.yield %next_direction : i64
  }}
  return
}}
"""


# Code that loads command %c, and what its thread does of it before the seams.
def _command() -> str:
    return f"""\
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %command_words = llvm.mlir.constant({len(Command._fields)} : i64) : i64
  %command_at = llvm.mul %c, %command_words : i64
  %command = llvm.getelementptr %commands[%command_at] {WORDS}
{load_words("command", Command._fields, ("code",))}
  %shared_out = llvm.sub %end, %begin : i64
  %next_thread = llvm.add %thread, %one : i64
  %all_before = llvm.mul %shared_out, %thread : i64
  %rows_before = llvm.udiv %all_before, %threads : i64
  %part_begin = llvm.add %begin, %rows_before : i64
  %all_up_to = llvm.mul %shared_out, %next_thread : i64
  %rows_up_to = llvm.udiv %all_up_to, %threads : i64
  %part_end = llvm.add %begin, %rows_up_to : i64
  %is_first = llvm.icmp "eq" %thread, %zero : i64
  %is_last = llvm.icmp "eq" %next_thread, %threads : i64
  %left_low = llvm.select %is_first, %first_low, %low : i1, i64
  %left_high = llvm.select %is_last, %last_high, %high : i1, i64
  %after_seam = llvm.add %part_begin, %left_low : i64
  %before_seam = llvm.sub %part_end, %left_high : i64"""


def _run(begin: str, end: str) -> str:
    """Code that runs those of the rows [%begin, %end) that the command has."""
    return f"""\
  func.call @run(%code, %view, %views, %rows, %all_views, %width, %{begin}, %{end})
      : (!llvm.ptr, i64, i64, i64, !llvm.ptr, i64, i64, i64) -> ()"""


def _block() -> str:
    return f"""
func.func private @block(%commands: !llvm.ptr, %c: i64, %all_views: !llvm.ptr, %width: i64,
                         %thread: i64, %threads: i64, %done: i64, %block: i64, %is_down: i1) {{
{_command()}
  %minus_high = llvm.sub %zero, %high : i64
  %behind = llvm.select %is_down, %low, %minus_high : i1, i64
  %front = llvm.add %part_begin, %done : i64
  %block_begin = llvm.add %front, %behind : i64
  %block_end = llvm.add %block_begin, %block : i64
  %run_begin = llvm.intr.smax(%block_begin, %after_seam) : (i64, i64) -> i64
  %run_end = llvm.intr.smin(%block_end, %before_seam) : (i64, i64) -> i64
{_run("run_begin", "run_end")}
  return
}}
"""


def _seam() -> str:
    return f"""
func.func private @seam(%commands: !llvm.ptr, %c: i64, %all_views: !llvm.ptr, %width: i64,
                        %thread: i64, %threads: i64) {{
{_command()}
  %left_by_other = llvm.sub %part_begin, %high : i64
  %seam_begin = llvm.select %is_first, %zero, %left_by_other : i1, i64
{_run("seam_begin", "after_seam")}
  scf.if %is_first {{
    %last_begin = llvm.sub %end, %last_high : i64
  {_run("last_begin", "rows")}
  }}
  return
}}
"""


def _runs(most_views: int) -> str:
    calls = "\n".join(_call(views) for views in range(1, most_views + 1))
    return f"""
func.func private @run(%code: !llvm.ptr, %view: i64, %views: i64, %rows: i64, %all_views: !llvm.ptr,
                       %width: i64, %given_begin: i64, %given_end: i64) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %begin = llvm.intr.smax(%given_begin, %zero) : (i64, i64) -> i64
  %end = llvm.intr.smin(%given_end, %rows) : (i64, i64) -> i64
  %some = llvm.icmp "slt" %begin, %end : i64
  scf.if %some {{
    %view_at = llvm.mul %view, %width : i64
    %first_view = llvm.getelementptr %all_views[%view_at] {WORDS}
    %arity = arith.index_cast %views : i64 to index
    scf.index_switch %arity
{calls}
    default {{
    }}
  }}
  return
}}
"""


def _call(views: int) -> str:
    """Code that calls %code with so many views and the rows [%begin, %end)."""
    lines = [f"    case {views} {{"]
    for view in range(views):
        lines += [
            f"      %number_{view} = llvm.mlir.constant({view} : i64) : i64",
            f"      %behind_{view} = llvm.mul %number_{view}, %width : i64",
            f"      %view_{view} = llvm.getelementptr %first_view[%behind_{view}] {WORDS}",
        ]
    operands = "".join(f"%view_{view}, " for view in range(views))
    types = "!llvm.ptr, " * views
    lines += [
        f"      llvm.call %code({operands}%begin, %end) : !llvm.ptr, ({types}i64, i64) -> ()",
        "      scf.yield",
        "    }",
    ]
    return "\n".join(lines)


def _meet() -> str:
    return f"""
func.func private @meet(%shared: !llvm.ptr, %turn: !llvm.ptr, %mine: i64, %threads: i64) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %spins = llvm.mlir.constant({SPINS} : i64) : i64
{meet()}  return
}}
"""
