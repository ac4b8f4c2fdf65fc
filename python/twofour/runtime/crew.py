# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that are in native code all their lives, so that jobs reach them without Python.

To wake a thread in Python takes some 80 microseconds, of which most is the interpreter's lock: the
time of a sweep over 200,000 points. These stay awake for a moment after each job (see
twofour.targets.cpu.crew), as OpenMP's do, and programs that step by hand are back by then.

Python does not start them either: it waits until a thread has begun, and is woken where that one
runs, so that each would stand in the way of the other.
"""

import atexit
import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock

import numpy as np

from twofour.runtime.page_offset import CACHE_LINE
from twofour.runtime.threads import MOST_THREADS

# Room for the state, a job and a semaphore, on cache lines of their own.
MAILBOX_BYTES = 6 * CACHE_LINE


# A job: void JOB(void *context, int64_t number, int64_t count).
JOB = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True)
class CrewCode:
    """Native code: functions of a mailbox, the one that leads, a job, and what owns them.

    `serve` is the address of what threads run.
    """

    prepare: Callable
    serve: int
    lead: Callable
    dismiss: Callable
    sweep: Callable
    keep_alive: object


def crew_code(
    prepare: int, serve: int, lead: int, dismiss: int, sweep: int, keep_alive: object
) -> CrewCode:
    """The native code at these addresses."""
    pointer = ctypes.c_void_p
    of_box = ctypes.CFUNCTYPE(None, pointer)
    leads = ctypes.CFUNCTYPE(None, pointer, ctypes.c_int64, JOB, pointer)
    return CrewCode(of_box(prepare), serve, leads(lead), of_box(dismiss), JOB(sweep), keep_alive)


class Crew:
    """Up to `most` threads beside the callers', which are started when they are first needed."""

    def __init__(self, code: CrewCode, most: int = MOST_THREADS):
        self._code, self._most = code, most
        self._forget()
        _crews.append(self)

    def run(self, job: Callable, context: ctypes.Array | None, threads: int) -> None:
        """Call `job(context, number, count)`, which is a JOB, at the same time on `count` threads.

        `count` is `threads`, or less where other calls have the threads between them or the system
        has no more to give; `number` is 0 ... count - 1, the calling thread is the first.
        """
        members: list[_Member] = []
        try:
            self._take(threads - 1, members)
            boxes = (ctypes.c_void_p * len(members))(*[member.mailbox for member in members])
            self._code.lead(boxes, len(members), job, context)
        finally:
            self._give_back(members)

    def sweep(
        self,
        kernel: Callable,
        source: ctypes.c_void_p,
        target: ctypes.c_void_p,
        extent: int,
        threads: int,
    ) -> None:
        """Call `kernel(source, target, begin, end)` on up to so many threads.

        Their ranges make up [0, extent), and differ by one in length at most.
        """
        code = ctypes.cast(kernel, ctypes.c_void_p)
        words = (ctypes.c_int64 * 4)(code.value, source.value, target.value, extent)
        self.run(self._code.sweep, words, threads)

    @property
    def size(self) -> int:
        """How many threads were started."""
        return len(self._started)

    def dismiss(self) -> None:
        """End the threads, those of calls that run now after them; later calls run alone."""
        with self._lock:
            self._most = 0
            members, self._idle = self._idle, []
        for member in members:
            member.end()

    def _take(self, count: int, members: "list[_Member]") -> None:
        """Add up to so many members that no other call has."""
        with self._lock:
            while len(members) < count:
                # Not `if self._idle`: a signal handler that calls a program takes some as well.
                with suppress(IndexError):
                    members.append(self._idle.pop())
                    continue
                if len(self._started) >= self._most:
                    return
                try:
                    member = _Member(self._code)
                except OSError:
                    # The system has no more threads to give.
                    return
                self._started.append(member)
                members.append(member)

    def _give_back(self, members: "list[_Member]") -> None:
        with self._lock:
            if self._most:
                # The next call has them in the same order: parts of arrays are in their caches.
                self._idle += reversed(members)
                return
        for member in members:
            member.end()

    def _forget(self) -> None:
        self._lock = RLock()
        self._started: list[_Member] = []
        self._idle: list[_Member] = []


def table_of(words: Sequence[int]) -> ctypes.Array:
    """Words as native code reads them."""
    return (ctypes.c_int64 * len(words))(*words)


def run_table(
    drive: Callable, table: ctypes.Array, threads: int, crew: Callable[[], Crew] | None
) -> None:
    """Call `drive(table, number, count)`, a JOB, on up to so many threads, of a crew if several."""
    if threads == 1:
        drive(table, 0, 1)
    else:
        crew().run(drive, table, threads)


class _Member:
    """A thread and its mailbox; raises OSError where the system has none to give."""

    def __init__(self, code: CrewCode):
        space = np.zeros(MAILBOX_BYTES + CACHE_LINE, np.uint8)
        self.mailbox = -(-space.ctypes.data // CACHE_LINE) * CACHE_LINE
        _mailboxes.append(space)
        code.prepare(self.mailbox)
        self._code, self._thread = code, _start_thread(code.serve, self.mailbox)

    def end(self) -> None:
        """Have the thread end, which has no job, and wait until it has."""
        self._code.dismiss(self.mailbox)
        ctypes.CDLL(None).pthread_join(self._thread, None)


def _start_thread(code: int, argument: int) -> ctypes.c_ulong:
    thread = ctypes.c_ulong()
    place = ctypes.byref(thread)
    # As addresses: numbers would be cut to 32 bits.
    where = ctypes.c_void_p(code), ctypes.c_void_p(argument)
    status = ctypes.CDLL(None).pthread_create(place, None, *where)
    if status:
        raise OSError(status, os.strerror(status))
    return thread


_crews: list[Crew] = []
# They live as long as the process: an interrupt may leave a thread that no crew knows of.
_mailboxes: list[np.ndarray] = []


def _dismiss_all() -> None:
    # Native code is let go when the interpreter ends: nobody may be in it.
    for crew in _crews:
        crew.dismiss()


def _forget_all() -> None:
    # Threads do not survive a fork: the child starts its own when it needs them.
    for crew in _crews:
        crew._forget()


atexit.register(_dismiss_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
