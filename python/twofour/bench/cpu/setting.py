# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `twofour bench cpu` measures: sizes, threads, rounds, stencils."""

from dataclasses import dataclass

from twofour.bench.cpu.contest import ROUNDS
from twofour.bench.cpu.pinning import usable_cpus
from twofour.errors import TwofourError
from twofour.kernels import Kernel, built_in_kernels

LEAST = 16


@dataclass(frozen=True)
class CpuSetting:
    """Edges of square domains, and the number of threads for each; rounds; kernels by name.

    Without `threads` the first size has one and the others two, where there are so many
    processors; one number stands for all sizes. `names` None stands for all built-in kernels. The
    last size is advanced by `steps` steps at once, the first one by `call_steps` steps in one call
    of each package. Raises TwofourError for sizes that no stencil fits in and for more threads than
    processors.
    """

    sizes: tuple[int, ...] = (512, 4096)
    threads: tuple[int, ...] = ()
    rounds: int = ROUNDS
    names: tuple[str, ...] | None = None
    radii: tuple[int, ...] = (1, 2, 3)
    dtypes: tuple[str, ...] = ("f64", "f32")
    steps: int = 32
    call_steps: int = 100

    def __post_init__(self):
        if not self.sizes or min(self.sizes) < LEAST:
            raise TwofourError(f"expected sizes of at least {LEAST}, got {list(self.sizes)}")
        if self.rounds < 1:
            raise TwofourError(f"expected at least 1 round, got {self.rounds}")
        # Now, not later: processes are pinned while they measure.
        most = len(usable_cpus())
        threads = self.threads or (1, *[min(2, most)] * (len(self.sizes) - 1))
        if len(threads) == 1:
            threads *= len(self.sizes)
        if len(threads) != len(self.sizes):
            raise TwofourError(
                f"expected a number of threads for each of {len(self.sizes)} sizes, "
                f"got {len(threads)}"
            )
        if not all(1 <= one <= most for one in threads):
            raise TwofourError(
                f"expected 1 to {most} threads, the processors of this process, got {list(threads)}"
            )
        object.__setattr__(self, "threads", threads)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Sizes and their threads."""
        return list(zip(self.sizes, self.threads, strict=True))

    @property
    def thread_counts(self) -> list[int]:
        """The numbers of threads that occur."""
        return sorted(set(self.threads))

    def kernels(self) -> list[Kernel]:
        """The built-in kernels asked for."""
        known = built_in_kernels()
        return [known[name] for name in self.names or known]
