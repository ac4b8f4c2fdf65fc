# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow of a kernel: segments of straight-line code, and the order they run in.

Threads that stand at different segments run in the order of the segments' numbers, so that every
thread that can still reach a segment does so before it runs: they meet where their paths join.
That needs an order that is topological but for the back edges of loops, and that keeps every loop
together: a weak topological order. A loop with several back edges gets an empty segment at its
end which all of them go through.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from twofour.errors import TwofourError
from twofour.sim.ptx import Instruction, Kernel, Label, Operand, spelled


@dataclass
class Segment:
    """Instructions [start, end) of the body; `kind` says how it ends.

    `successors` are segment numbers: for a conditional branch first the taken one.
    """

    start: int
    end: int
    kind: str
    successors: list[int] = field(default_factory=list)


def ending(instruction: Instruction) -> str | None:
    """How an instruction ends a segment, or None."""
    root, modifiers = instruction.root, instruction.modifiers
    if root in ("bra", "brx", "ret", "exit", "trap"):
        return "exit" if root == "ret" else root
    if root in ("bar", "barrier") and "warp" not in modifiers and "cluster" not in modifiers:
        return "barrier"
    if root == "mbarrier" and ("try_wait" in modifiers or "test_wait" in modifiers):
        return "wait"
    return None


def segments_of(kernel: Kernel) -> list[Segment]:
    """The segments of a kernel, numbered in the order they run in; the first one is the entry."""
    body = kernel.body
    starts = {0, *kernel.labels.values()}
    starts.update(i + 1 for i, instruction in enumerate(body) if ending(instruction))
    # A wait is tried again alone.
    starts.update(i for i, instruction in enumerate(body) if ending(instruction) == "wait")
    bounds = sorted(s for s in starts if s < len(body))
    number = {start: i for i, start in enumerate(bounds)}
    segments = []
    for i, start in enumerate(bounds):
        end = bounds[i + 1] if i + 1 < len(bounds) else len(body)
        segments.append(Segment(start, end, ending(body[end - 1]) or "next"))
    # Falling off the end of the body is an exit.
    leave = len(segments)
    segments.append(Segment(len(body), len(body), "exit"))
    for i, segment in enumerate(segments[:-1]):
        segment.successors = _successors(kernel, segment, i, number, leave)
    return _ordered(segments)


def _successors(
    kernel: Kernel, segment: Segment, index: int, number: dict[int, int], leave: int
) -> list[int]:
    last = kernel.body[segment.end - 1]
    following = index + 1

    def target(label: Operand) -> int:
        if not isinstance(label, Label) or label.name not in kernel.labels:
            raise TwofourError(f"expected a label, got {spelled(label)}", last.location)
        return number.get(kernel.labels[label.name], leave)

    if segment.kind == "bra":
        if len(last.operands) != 1 or set(last.modifiers) - {"uni"}:
            raise TwofourError("expected bra{.uni} and a label", last.location)
        taken = target(last.operands[0])
        return [taken, following] if last.guard else [taken]
    if segment.kind == "brx":
        if last.guard or last.modifiers[:1] != ("idx",) or len(last.operands) != 2:
            raise TwofourError("expected brx.idx, an index and a list of targets", last.location)
        names = kernel.branch_targets.get(getattr(last.operands[1], "name", ""))
        if not names:
            raise TwofourError("expected the name of a .branchtargets list", last.location)
        return [target(Label(name)) for name in names]
    if segment.kind in ("exit", "trap"):
        return [following] if last.guard else []
    return [following]


def _ordered(segments: list[Segment]) -> list[Segment]:
    """The reachable segments in a weak topological order, renumbered."""
    reachable, stack = {0}, [0]
    while stack:
        for successor in segments[stack.pop()].successors:
            if successor not in reachable:
                reachable.add(successor)
                stack.append(successor)
    order = _weak_order(segments, sorted(reachable), 0, {n: set() for n in range(len(segments))})
    number = {old: new for new, old in enumerate(order)}
    for old in order:
        segments[old].successors = [number[s] for s in segments[old].successors]
    return [segments[old] for old in order]


def _weak_order(
    segments: list[Segment], nodes: list[int], entry: int, removed: dict[int, set[int]]
) -> list[int]:
    """`nodes` in a weak topological order; `removed` are back edges of the loops around them."""
    members = set(nodes)

    def following(node: int) -> list[int]:
        return [
            s for s in segments[node].successors if s in members and s not in removed.get(node, ())
        ]

    result: list[int] = []
    for component in _components(nodes, following):
        if len(component) == 1 and component[0] not in following(component[0]):
            result += component
            continue
        inside = set(component)
        if entry in inside:
            head = entry
        else:
            entries = {s for n in members - inside for s in following(n) if s in inside}
            head = min(entries or inside)
        back = [n for n in component if head in following(n)]
        latch = []
        if len(back) > 1:
            # Threads that go round wait there for those that have not got so far.
            latch = [len(segments)]
            end = segments[head].start
            segments.append(Segment(end, end, "next", [head]))
            for node in back:
                segments[node].successors = [
                    latch[0] if s == head else s for s in segments[node].successors
                ]
        else:
            removed.setdefault(back[0], set()).add(head)
        result += _weak_order(segments, component, head, removed) + latch
    return result


def _components(nodes: list[int], following: Callable[[int], list[int]]) -> list[list[int]]:
    """Strongly connected components in topological order, ties in the order of the program."""
    index, low, component = {}, {}, {}
    stack, groups, counter = [], [], 0
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(following(root)))]
        index[root] = low[root] = counter
        counter += 1
        stack.append(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = counter
                    counter += 1
                    stack.append(successor)
                    work.append((successor, iter(following(successor))))
                    break
                if successor not in component:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = []
                    while not members or members[-1] != node:
                        members.append(stack.pop())
                        component[members[-1]] = len(groups)
                    groups.append(sorted(members))
    waiting = [0] * len(groups)
    edges = [
        {component[s] for n in group for s in following(n)} - {i} for i, group in enumerate(groups)
    ]
    for targets in edges:
        for t in targets:
            waiting[t] += 1
    ready = [(group[0], i) for i, group in enumerate(groups) if not waiting[i]]
    heapq.heapify(ready)
    result = []
    while ready:
        _, i = heapq.heappop(ready)
        result.append(groups[i])
        for t in edges[i]:
            waiting[t] -= 1
            if not waiting[t]:
                heapq.heappush(ready, (groups[t][0], t))
    return result
