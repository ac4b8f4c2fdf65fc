# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that wait for jobs. Each belongs to one call at a time.

Jobs of a call wait for each other, so that none of them may stand in line for a thread behind those
of other calls: a call has its threads before it begins, and no more jobs than these.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread


class Worker:
    """A thread that joins `idle` again after each job."""

    def __init__(self, name: str, idle: "list[Worker]"):
        self._idle = idle
        self._jobs: SimpleQueue = SimpleQueue()
        # Of those that wait, none keeps the process from ending.
        Thread(target=self._serve, name=name, daemon=True).start()

    def begin(self, job: Callable[[], None], ended: SimpleQueue) -> None:
        """Call `job()`, then put what it raised to `ended`, None for nothing."""
        self._jobs.put((job, ended))

    def _serve(self) -> None:
        while True:
            job, ended = self._jobs.get()
            error = None
            try:
                job()
            except BaseException as raised:
                error = raised
            # The caller may count on its arrays being let go, and on the thread being there again.
            del job
            self._idle.append(self)
            ended.put(error)
            del ended, error


class WorkerPool:
    """Up to `most` workers, which are started when they are first needed."""

    def __init__(self, most: int):
        self._most = most
        self._started = 0
        self._idle: list[Worker] = []
        self._lock = Lock()

    def take(self, count: int) -> list[Worker]:
        """Up to so many workers that no other call has, fewer where there are no more.

        Each is free again after its next job.
        """
        taken = []
        with self._lock:
            while len(taken) < count:
                if self._idle:
                    taken.append(self._idle.pop())
                    continue
                if self._started == self._most:
                    break
                try:
                    taken.append(Worker(f"twofour_{self._started}", self._idle))
                except RuntimeError:
                    # The system has no more threads to give.
                    break
                self._started += 1
        return taken
