# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where threads of native code wait for each other, as text in LLVM's dialect."""

# Rounds of waiting before other processes are let run.
SPINS = 4096

DECLARATIONS = "llvm.func @sched_yield() -> i32\n"


def meet(when_all_came: str = "") -> str:
    """Code that waits until %threads threads have come here.

    %shared is the address of their number, %turn that of how often they met, and %mine was loaded
    from there before any of them could come. The last one runs `when_all_came` before all go on.
    """
    return f"""\
    %before = llvm.atomicrmw add %shared, %one acq_rel : !llvm.ptr, i64
    %now = llvm.add %before, %one : i64
    %is_last = llvm.icmp "eq" %now, %threads : i64
    scf.if %is_last {{
      llvm.store %zero, %shared atomic monotonic {{alignment = 8 : i64}} : i64, !llvm.ptr
{when_all_came}\
      %following = llvm.add %mine, %one : i64
      llvm.store %following, %turn atomic release {{alignment = 8 : i64}} : i64, !llvm.ptr
    }} else {{
      %waited = scf.while (%w = %zero) : (i64) -> i64 {{
        %seen = llvm.load %turn atomic acquire {{alignment = 8 : i64}} : !llvm.ptr -> i64
        %same = llvm.icmp "eq" %seen, %mine : i64
        scf.condition(%same) %w : i64
      }} do {{
      ^bb0(%w: i64):
        %longer = llvm.add %w, %one : i64
        %yields = llvm.icmp "sgt" %longer, %spins : i64
        scf.if %yields {{
          %status = llvm.call @sched_yield() : () -> i32
        }}
        scf.yield %longer : i64
      }}
    }}
"""
