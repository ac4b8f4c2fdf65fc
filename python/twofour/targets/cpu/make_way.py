# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native code by which a thread leaves the processor of the one that waits for it.

Linux often puts a thread that it wakes, or starts, where the waker runs, though another processor
is idle or less busy: both are slower than one alone until it mends that.

Text in LLVM's dialect: `@make_way` takes the number of a processor. The calling thread goes to
another one if it is there and may be elsewhere; it may be anywhere afterwards that it might before.
"""

# Most processors of a machine on which threads make way: as many as glibc's cpu_set_t has.
PROCESSORS = 1024

MAKE_WAY = f"""
llvm.func @sched_getcpu() -> i32
llvm.func @sched_getaffinity(i32, i64, !llvm.ptr) -> i32
llvm.func @sched_setaffinity(i32, i64, !llvm.ptr) -> i32

func.func private @make_way(%from: i32) {{
  %here = llvm.call @sched_getcpu() : () -> i32
  %in_the_way = llvm.icmp "eq" %here, %from : i32
  scf.if %in_the_way {{
    func.call @leave(%here) : (i32) -> ()
  }}
  return
}}

func.func private @leave(%here: i32) {{
  %self = llvm.mlir.constant(0 : i32) : i32
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %six = llvm.mlir.constant(6 : i64) : i64
  %last_bit = llvm.mlir.constant(63 : i64) : i64
  %words = llvm.mlir.constant({PROCESSORS // 64} : i64) : i64
  %bytes = llvm.mlir.constant({PROCESSORS // 8} : i64) : i64
  %allowed = llvm.alloca %words x i64 : (i64) -> !llvm.ptr
  %others = llvm.alloca %words x i64 : (i64) -> !llvm.ptr
  %status = llvm.call @sched_getaffinity(%self, %bytes, %allowed) : (i32, i64, !llvm.ptr) -> i32
  %known = llvm.icmp "eq" %status, %self : i32
  scf.if %known {{
    %number = llvm.zext %here : i32 to i64
    %word = llvm.lshr %number, %six : i64
    %place = llvm.and %number, %last_bit : i64
    %bit = llvm.shl %one, %place : i64
    %any = scf.for %i = %zero to %words step %one iter_args(%found = %zero) -> (i64) : i64 {{
      %from = llvm.getelementptr %allowed[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
      %to = llvm.getelementptr %others[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
      %set = llvm.load %from : !llvm.ptr -> i64
      %is_here = llvm.icmp "eq" %i, %word : i64
      %left = llvm.select %is_here, %bit, %zero : i1, i64
      %united = llvm.or %set, %left : i64
      %kept = llvm.xor %united, %left : i64
      llvm.store %kept, %to : i64, !llvm.ptr
      %found_now = llvm.or %found, %kept : i64
      scf.yield %found_now : i64
    }}
    %some = llvm.icmp "ne" %any, %zero : i64
    scf.if %some {{
      %moved = llvm.call @sched_setaffinity(%self, %bytes, %others)
        : (i32, i64, !llvm.ptr) -> i32
      %freed = llvm.call @sched_setaffinity(%self, %bytes, %allowed)
        : (i32, i64, !llvm.ptr) -> i32
    }}
  }}
  return
}}
"""
