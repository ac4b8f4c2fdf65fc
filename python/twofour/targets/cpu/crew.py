# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native code of threads that wait for jobs, and of the one that leads them.

`serve` is what a thread of twofour.runtime.crew does all its life: it waits at its mailbox, first
awake, then asleep, and does what is posted there, after making way for the one that leads it.
`lead` posts a job to several of them, does a part of it itself, and waits for the others. A job is
`void JOB(void *context, int64_t thread, int64_t threads)`; `sweep` is the job of a kernel whose
rows are shared out.

Who leads has taken the threads that it leads: nobody else posts to them until they are done.
"""

import platform

from twofour.mlir import ir
from twofour.runtime import Crew, crew_code
from twofour.runtime.once import made_once
from twofour.targets.cpu.jit import CompiledModule
from twofour.targets.cpu.make_way import MAKE_WAY
from twofour.targets.cpu.words import WORD, load_words

# Rounds of waiting before a thread goes to sleep, of some 30 to 140 cycles each: 100 microseconds
# and more. To wake it takes half as long.
AWAKE_SPINS = 1 << 14
# Whoever waits lets others run after so many rounds, a power of two: a thread that is waited for
# may be on the same processor.
YIELDING_SPINS = 64

# States of a mailbox.
WAITING, POSTED, ASLEEP, DISMISSED = range(4)

_PAUSES = {"x86_64": "pause", "amd64": "pause", "aarch64": "yield", "arm64": "yield"}


@made_once
def native_crew() -> Crew:
    """The threads of this process; the code is compiled once."""
    context = ir.Context()
    with context, ir.Location.unknown():
        code = CompiledModule(ir.Module.parse(_CODE))
    names = ("prepare", "serve", "lead", "dismiss", "sweep")
    return Crew(crew_code(*map(code.address, names), (code, context)))


def _pause() -> str:
    """Code of round %w of waiting, which leaves the core to others for a moment."""
    name = _PAUSES.get(platform.machine().lower())
    pause = f'llvm.inline_asm has_side_effects "{name}", "" : () -> ()' if name else ""
    return f"""{pause}
    %mask = llvm.mlir.constant({YIELDING_SPINS - 1} : i64) : i64
    %place = llvm.and %w, %mask : i64
    %yields = llvm.icmp "eq" %place, %mask : i64
    scf.if %yields {{
      %status = llvm.call @sched_yield() : () -> i32
    }}"""


# Words of a mailbox, on three cache lines: its state; the job, its context, the number of the
# thread in it, how many there are, and the processor of the one that leads them; a semaphore.
_ATOMIC = "{alignment = 8 : i64} : i64, !llvm.ptr"
_LOAD = "atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64"
_CODE = f"""
llvm.func @sem_init(!llvm.ptr, i32, i32) -> i32
llvm.func @sem_wait(!llvm.ptr) -> i32
llvm.func @sem_post(!llvm.ptr) -> i32
llvm.func @sched_yield() -> i32
{MAKE_WAY}

func.func @prepare(%box: !llvm.ptr) attributes {{llvm.emit_c_interface}} {{
  %none = llvm.mlir.constant(0 : i32) : i32
  %semaphore = llvm.getelementptr %box[16] {WORD}
  %status = llvm.call @sem_init(%semaphore, %none, %none) : (!llvm.ptr, i32, i32) -> i32
  return
}}

func.func @serve(%box: !llvm.ptr) -> !llvm.ptr attributes {{llvm.emit_c_interface}} {{
  %waiting = llvm.mlir.constant({WAITING} : i64) : i64
  %dismissed = llvm.mlir.constant({DISMISSED} : i64) : i64
  %job_at = llvm.getelementptr %box[8] {WORD}
  %context_at = llvm.getelementptr %box[9] {WORD}
  %number_at = llvm.getelementptr %box[10] {WORD}
  %count_at = llvm.getelementptr %box[11] {WORD}
  scf.while : () -> () {{
    %state = func.call @next_state(%box) : (!llvm.ptr) -> i64
    %stays = llvm.icmp "ne" %state, %dismissed : i64
    scf.condition(%stays)
  }} do {{
    %leads_on_at = llvm.getelementptr %box[12] {WORD}
    %leads_on = llvm.load %leads_on_at : !llvm.ptr -> i32
    func.call @make_way(%leads_on) : (i32) -> ()
    %job = llvm.load %job_at : !llvm.ptr -> !llvm.ptr
    %context = llvm.load %context_at : !llvm.ptr -> !llvm.ptr
    %number = llvm.load %number_at : !llvm.ptr -> i64
    %count = llvm.load %count_at : !llvm.ptr -> i64
    llvm.call %job(%context, %number, %count) : !llvm.ptr, (!llvm.ptr, i64, i64) -> ()
    llvm.store %waiting, %box atomic release {_ATOMIC}
    scf.yield
  }}
  %nothing = llvm.mlir.zero : !llvm.ptr
  return %nothing : !llvm.ptr
}}

func.func private @next_state(%box: !llvm.ptr) -> i64 {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %waiting = llvm.mlir.constant({WAITING} : i64) : i64
  %asleep = llvm.mlir.constant({ASLEEP} : i64) : i64
  %spins = llvm.mlir.constant({AWAKE_SPINS} : i64) : i64
  %semaphore = llvm.getelementptr %box[16] {WORD}
  %awake:2 = scf.while (%w = %zero) : (i64) -> (i64, i64) {{
    %seen = llvm.load %box {_LOAD}
    %waits = llvm.icmp "eq" %seen, %waiting : i64
    %early = llvm.icmp "slt" %w, %spins : i64
    %goes_on = llvm.and %waits, %early : i1
    scf.condition(%goes_on) %w, %seen : i64, i64
  }} do {{
  ^bb0(%w: i64, %seen: i64):
    {_pause()}
    %longer = llvm.add %w, %one : i64
    scf.yield %longer : i64
  }}
  // Whoever posts in between has changed the state, and this changes nothing.
  %exchanged = llvm.cmpxchg %box, %waiting, %asleep acq_rel acquire : !llvm.ptr, i64
  %state = scf.while : () -> i64 {{
    %now = llvm.load %box {_LOAD}
    %sleeps = llvm.icmp "eq" %now, %asleep : i64
    scf.condition(%sleeps) %now : i64
  }} do {{
  ^bb0(%now: i64):
    %status = llvm.call @sem_wait(%semaphore) : (!llvm.ptr) -> i32
    scf.yield
  }}
  return %state : i64
}}

func.func private @change(%box: !llvm.ptr, %state: i64) {{
  %asleep = llvm.mlir.constant({ASLEEP} : i64) : i64
  %before = llvm.atomicrmw xchg %box, %state acq_rel : !llvm.ptr, i64
  %slept = llvm.icmp "eq" %before, %asleep : i64
  scf.if %slept {{
    %semaphore = llvm.getelementptr %box[16] {WORD}
    %status = llvm.call @sem_post(%semaphore) : (!llvm.ptr) -> i32
  }}
  return
}}

func.func @dismiss(%box: !llvm.ptr) attributes {{llvm.emit_c_interface}} {{
  %dismissed = llvm.mlir.constant({DISMISSED} : i64) : i64
  func.call @change(%box, %dismissed) : (!llvm.ptr, i64) -> ()
  return
}}

func.func @sweep(%words: !llvm.ptr, %thread: i64, %threads: i64)
    attributes {{llvm.emit_c_interface}} {{
  %one = llvm.mlir.constant(1 : i64) : i64
{load_words("words", ("kernel", "source", "target", "extent"), ("kernel", "source", "target"))}
  %next = llvm.add %thread, %one : i64
  %below = llvm.mul %extent, %thread : i64
  %begin = llvm.udiv %below, %threads : i64
  %upto = llvm.mul %extent, %next : i64
  %end = llvm.udiv %upto, %threads : i64
  llvm.call %kernel(%source, %target, %begin, %end)
    : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
  return
}}

func.func @lead(%boxes: !llvm.ptr, %others: i64, %job: !llvm.ptr, %context: !llvm.ptr)
    attributes {{llvm.emit_c_interface}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %posted = llvm.mlir.constant({POSTED} : i64) : i64
  %threads = llvm.add %others, %one : i64
  scf.for %i = %zero to %others step %one : i64 {{
    %at = llvm.getelementptr %boxes[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
    %box = llvm.load %at : !llvm.ptr -> !llvm.ptr
    %job_at = llvm.getelementptr %box[8] {WORD}
    llvm.store %job, %job_at : !llvm.ptr, !llvm.ptr
    %context_at = llvm.getelementptr %box[9] {WORD}
    llvm.store %context, %context_at : !llvm.ptr, !llvm.ptr
    %number_at = llvm.getelementptr %box[10] {WORD}
    %number = llvm.add %i, %one : i64
    llvm.store %number, %number_at : i64, !llvm.ptr
    %count_at = llvm.getelementptr %box[11] {WORD}
    llvm.store %threads, %count_at : i64, !llvm.ptr
    %leads_on_at = llvm.getelementptr %box[12] {WORD}
    %here = llvm.call @sched_getcpu() : () -> i32
    llvm.store %here, %leads_on_at : i32, !llvm.ptr
    func.call @change(%box, %posted) : (!llvm.ptr, i64) -> ()
  }}
  llvm.call %job(%context, %zero, %threads) : !llvm.ptr, (!llvm.ptr, i64, i64) -> ()
  scf.for %i = %zero to %others step %one : i64 {{
    %at = llvm.getelementptr %boxes[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
    %box = llvm.load %at : !llvm.ptr -> !llvm.ptr
    %waited = scf.while (%w = %zero) : (i64) -> i64 {{
      %seen = llvm.load %box {_LOAD}
      %busy = llvm.icmp "eq" %seen, %posted : i64
      scf.condition(%busy) %w : i64
    }} do {{
    ^bb0(%w: i64):
      {_pause()}
      %longer = llvm.add %w, %one : i64
      scf.yield %longer : i64
    }}
  }}
  return
}}
"""
