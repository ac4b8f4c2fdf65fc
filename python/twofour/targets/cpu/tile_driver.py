# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native code that runs time tiles: all steps of a call, on all threads, without Python between.

`drive_legs` takes what twofour.runtime.tiles.program encodes, leg by leg. Each thread calls it
once. In every sweep a thread takes the tiles of its own part one after the other, the same ones
each time, since they are in its caches, up and down alternately: what a sweep wrote last is still
in the nearer ones when the next begins there. Then it helps the others, until no tile is left. They
meet at a barrier, and the source and target arrays change places. A tile is a run of commands, each
a call of a sweep kernel or of `copy_cells` on one input and one output view.

Both are written in LLVM's dialect: they work on addresses, and views of `copy_cells` may go
backwards, which memrefs may not.
"""

from twofour.mlir import ir
from twofour.runtime import ARRAY_WORDS, LEG_WORDS, TileCode, tile_code
from twofour.runtime.once import made_once
from twofour.targets.cpu.barrier import DECLARATIONS, SPINS, meet
from twofour.targets.cpu.crew import native_crew
from twofour.targets.cpu.jit import CompiledModule
from twofour.targets.cpu.words import load_words

DRIVE, COPY = "drive_legs", "copy_cells"


@made_once
def tile_driver(rank: int, itemsize: int) -> TileCode:
    """`drive_legs`, and `copy_cells` for views of this rank and bytes an element.

    Compiled once a process: that takes as long as a kernel does.
    """
    context = ir.Context()
    with context, ir.Location.unknown():
        code = CompiledModule(ir.Module.parse(_DRIVE + _copy(rank, itemsize)))
    return tile_code(code.address(DRIVE), code.address(COPY), (code, context), native_crew)


def _descriptor(side: str) -> str:
    """Code that makes the memref descriptor %<side> from %<side>_view and the arrays' addresses."""
    pointer = ": (!llvm.ptr) -> !llvm.ptr, i64"
    return f"""\
        %{side}_static = llvm.getelementptr %{side}_view[4] {pointer}
        %{side}_rest = llvm.getelementptr %{side}[2] {pointer}
        "llvm.intr.memcpy"(%{side}_rest, %{side}_static, %bytes) <{{isVolatile = false}}>
          : (!llvm.ptr, !llvm.ptr, i64) -> ()
        %{side}_array = llvm.load %{side}_view : !llvm.ptr -> i64
        %{side}_base_at = llvm.getelementptr %local[%{side}_array]
          : (!llvm.ptr, i64) -> !llvm.ptr, i64
        %{side}_base = llvm.load %{side}_base_at : !llvm.ptr -> i64
        %{side}_offset_at = llvm.getelementptr %{side}_view[1] {pointer}
        %{side}_offset = llvm.load %{side}_offset_at : !llvm.ptr -> i64
        %{side}_address = llvm.add %{side}_base, %{side}_offset : i64
        llvm.store %{side}_address, %{side} : i64, !llvm.ptr
        llvm.store %{side}_address, %{side}_first : i64, !llvm.ptr
"""


# The last thread to come counts all parts as not yet begun.
_RESET = """\
      scf.for %part = %zero to %threads step %one : i64 {
        %counter_at = llvm.mul %part, %eight : i64
        %counter = llvm.getelementptr %counters[%counter_at] : (!llvm.ptr, i64) -> !llvm.ptr, i64
        llvm.store %zero, %counter atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
      }
"""

LEG = ("program", "of_threads", "source", "target", "begin", "end", "shared")
PROGRAM = ("number", "tiles", "commands", "views", "width")

# Words of the legs: how many there are, and the words of each (see LEG_WORDS).
# Words of the program: number of tiles; addresses of tiles, commands and views; words of a view.
# Tile: first command, command after the last, bytes to add to source and to target.
# Command: address of the code, first view, first and last row.
# View: array, byte offset, and a memref descriptor without its addresses.
# Words of a thread: addresses of the arrays, of which the first two, the source and the target, are
# arguments, and in the last one its number.
# Words shared by the threads, each on a cache line: threads at the barrier, its turn, and for each
# thread how many tiles of its part were taken.
_DRIVE = f"""
{DECLARATIONS}func.func @{DRIVE}(%legs: !llvm.ptr, %thread: i64, %threads: i64)
    attributes {{llvm.emit_c_interface}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %leg_words = llvm.mlir.constant({LEG_WORDS} : i64) : i64
  %array_words = llvm.mlir.constant({ARRAY_WORDS} : i64) : i64
  %mine = llvm.mul %thread, %array_words : i64
  %count = llvm.load %legs : !llvm.ptr -> i64
  %first = llvm.getelementptr %legs[1] : (!llvm.ptr) -> !llvm.ptr, i64
  scf.for %n = %zero to %count step %one : i64 {{
    %behind = llvm.mul %n, %leg_words : i64
    %leg = llvm.getelementptr %first[%behind] : (!llvm.ptr, i64) -> !llvm.ptr, i64
{load_words("leg", LEG, ("program", "of_threads", "shared"))}
    %arrays = llvm.getelementptr %of_threads[%mine] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    func.call @drive_tiles(%program, %arrays, %source, %target, %begin, %end, %threads, %shared)
      : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr) -> ()
  }}
  return
}}

func.func private @drive_tiles(%program: !llvm.ptr, %arrays: !llvm.ptr, %source: i64,
    %target: i64, %begin_sweep: i64, %end_sweep: i64, %threads: i64, %shared: !llvm.ptr) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %four = llvm.mlir.constant(4 : i64) : i64
  %eight = llvm.mlir.constant(8 : i64) : i64
  %spins = llvm.mlir.constant({SPINS} : i64) : i64
  %words = llvm.mlir.constant(80 : i64) : i64
  %in = llvm.alloca %words x i64 : (i64) -> !llvm.ptr
  %out = llvm.alloca %words x i64 : (i64) -> !llvm.ptr
  %local = llvm.alloca %eight x i64 : (i64) -> !llvm.ptr
{load_words("program", PROGRAM, ("tiles", "commands", "views"))}
  %me_at = llvm.getelementptr %arrays[7] : (!llvm.ptr) -> !llvm.ptr, i64
  %me = llvm.load %me_at : !llvm.ptr -> i64
  %turn = llvm.getelementptr %shared[8] : (!llvm.ptr) -> !llvm.ptr, i64
  %counters = llvm.getelementptr %shared[16] : (!llvm.ptr) -> !llvm.ptr, i64
  %local1 = llvm.getelementptr %local[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %in_first = llvm.getelementptr %in[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %out_first = llvm.getelementptr %out[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %static = llvm.sub %width, %four : i64
  %bytes = llvm.mul %static, %eight : i64
  %local_bytes = llvm.mul %eight, %eight : i64
  %ends:2 = scf.for %sweep = %begin_sweep to %end_sweep step %one
      iter_args(%s = %source, %d = %target) -> (i64, i64) : i64 {{
    %parity = llvm.and %sweep, %one : i64
    %is_odd = llvm.icmp "ne" %parity, %zero : i64
    %mine = llvm.load %turn atomic acquire {{alignment = 8 : i64}} : !llvm.ptr -> i64
    scf.for %other = %zero to %threads step %one : i64 {{
      %whose = llvm.add %me, %other : i64
      %part = llvm.urem %whose, %threads : i64
      %counter_at = llvm.mul %part, %eight : i64
      %counter = llvm.getelementptr %counters[%counter_at] : (!llvm.ptr, i64) -> !llvm.ptr, i64
      %part_next = llvm.add %part, %one : i64
      %before_part = llvm.mul %part, %number : i64
      %part_begin = llvm.udiv %before_part, %threads : i64
      %after_part = llvm.mul %part_next, %number : i64
      %part_end = llvm.udiv %after_part, %threads : i64
      %part_ends = llvm.add %part_begin, %part_end : i64
      %part_last = llvm.sub %part_ends, %one : i64
      %taken = llvm.atomicrmw add %counter, %one monotonic : !llvm.ptr, i64
      %first = llvm.add %part_begin, %taken : i64
      %last = scf.while (%t = %first) : (i64) -> i64 {{
        %more = llvm.icmp "slt" %t, %part_end : i64
        scf.condition(%more) %t : i64
      }} do {{
      ^bb0(%t: i64):
        %mirrored = llvm.sub %part_last, %t : i64
        %this = llvm.select %is_odd, %mirrored, %t : i1, i64
        %tile_at = llvm.mul %this, %four : i64
        %tile = llvm.getelementptr %tiles[%tile_at] : (!llvm.ptr, i64) -> !llvm.ptr, i64
{load_words("tile", ("begin", "end", "from", "to"))}
        "llvm.intr.memcpy"(%local, %arrays, %local_bytes) <{{isVolatile = false}}>
          : (!llvm.ptr, !llvm.ptr, i64) -> ()
        %s_tile = llvm.add %s, %from : i64
        llvm.store %s_tile, %local : i64, !llvm.ptr
        %d_tile = llvm.add %d, %to : i64
        llvm.store %d_tile, %local1 : i64, !llvm.ptr
        scf.for %c = %begin to %end step %one : i64 {{
          %command_at = llvm.mul %c, %four : i64
          %command = llvm.getelementptr %commands[%command_at]
            : (!llvm.ptr, i64) -> !llvm.ptr, i64
{load_words("command", ("code", "view", "row", "rows"), ("code",))}
          %in_at = llvm.mul %view, %width : i64
          %in_view = llvm.getelementptr %views[%in_at] : (!llvm.ptr, i64) -> !llvm.ptr, i64
          %out_view = llvm.getelementptr %in_view[%width] : (!llvm.ptr, i64) -> !llvm.ptr, i64
{_descriptor("in")}{_descriptor("out")}          llvm.call %code(%in, %out, %row, %rows)
            : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
        }}
        %also_taken = llvm.atomicrmw add %counter, %one monotonic : !llvm.ptr, i64
        %next = llvm.add %part_begin, %also_taken : i64
        scf.yield %next : i64
      }}
    }}
{meet(_RESET)}    scf.yield %d, %s : i64, i64
  }}
  return
}}
"""


def _copy(rank: int, itemsize: int) -> str:
    """Code that copies rows [begin, end) of the outermost axis of one view to another."""
    kind = f"i{8 * itemsize}"
    lines = [
        f"func.func @{COPY}(%in: !llvm.ptr, %out: !llvm.ptr, %begin: i64, %end: i64)",
        "  attributes {llvm.emit_c_interface} {",
        "%zero = llvm.mlir.constant(0 : i64) : i64",
        "%one = llvm.mlir.constant(1 : i64) : i64",
        f"%size = llvm.mlir.constant({itemsize} : i64) : i64",
    ]

    def word(name: str, view: str, index: int, result: str = "i64") -> None:
        lines.append(
            f"%{name}_at = llvm.getelementptr %{view}[{index}] : (!llvm.ptr) -> !llvm.ptr, i64"
        )
        lines.append(f"%{name} = llvm.load %{name}_at : !llvm.ptr -> {result}")

    word("in_0", "in", 1, "!llvm.ptr")
    word("out_0", "out", 1, "!llvm.ptr")
    for axis in range(rank):
        word(f"extent_{axis}", "out", 3 + axis)
        word(f"in_stride_{axis}", "in", 3 + rank + axis)
        word(f"out_stride_{axis}", "out", 3 + rank + axis)

    def at(view: str, axis: int) -> None:
        lines.append(f"%{view}_shift_{axis} = llvm.mul %x_{axis}, %{view}_stride_{axis} : i64")
        lines.append(
            f"%{view}_{axis + 1} = llvm.getelementptr %{view}_{axis}"
            f"[%{view}_shift_{axis}] : (!llvm.ptr, i64) -> !llvm.ptr, {kind}"
        )

    last = rank - 1
    for axis in range(last):
        bounds = "%begin to %end" if axis == 0 else f"%zero to %extent_{axis}"
        lines.append(f"scf.for %x_{axis} = {bounds} step %one : i64 {{")
        at("in", axis)
        at("out", axis)
    begin, end = ("%begin", "%end") if last == 0 else ("%zero", f"%extent_{last}")
    lines += [
        f'%in_whole = llvm.icmp "eq" %in_stride_{last}, %one : i64',
        f'%out_whole = llvm.icmp "eq" %out_stride_{last}, %one : i64',
        "%whole = llvm.and %in_whole, %out_whole : i1",
        "scf.if %whole {",
        f"%from = llvm.getelementptr %in_{last}[{begin}] : (!llvm.ptr, i64) -> !llvm.ptr, {kind}",
        f"%to = llvm.getelementptr %out_{last}[{begin}] : (!llvm.ptr, i64) -> !llvm.ptr, {kind}",
        f"%count = llvm.sub {end}, {begin} : i64",
        "%bytes = llvm.mul %count, %size : i64",
        '"llvm.intr.memcpy"(%to, %from, %bytes) <{isVolatile = false}>',
        "  : (!llvm.ptr, !llvm.ptr, i64) -> ()",
        "} else {",
        f"scf.for %x_{last} = {begin} to {end} step %one : i64 {{",
    ]
    at("in", last)
    at("out", last)
    lines += [
        f"%value = llvm.load %in_{rank} : !llvm.ptr -> {kind}",
        f"llvm.store %value, %out_{rank} : {kind}, !llvm.ptr",
        "}" * (last + 2),
        "return",
        "}",
    ]
    return "\n".join(lines)
