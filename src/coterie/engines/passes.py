"""Passes over parts that other processes hold: what is sent, what the processes do, and how the replies are added.

A process holds the rows of some parts, and the memos that steps have returned for them. It receives an `Order`, runs
the step on its parts, and replies with nodes of the tree of `tree_sum`. So a pass is one message to each process and
one back, whatever the number of parts, and the sum has the same bits as on one machine.

Memos never leave the process of their part. If one is lost, it is computed again from the steps of its `MemoSet`; if
rows are lost, the cluster loads them again elsewhere. Neither changes a result.
"""

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple, Protocol

from coterie import machine
from coterie.core import protocols
from coterie.core.in_memory import is_in_memory
from coterie.core.protocols import Chunk, EStep, Memo, Source, Step
from coterie.core.stats import Node, first_item, tree_nodes
from coterie.engines.local import Threads
from coterie.errors import ClusterError

Load = Callable[[Any], Chunk | None]  # the chunk at a place; None if it is lost

GROUPS = 8  # groups of parts for each thread of a process: few, but enough for threads to end at the same time
MAX_LOSSES = 5  # times that a pass is repeated for parts whose rows or memos were lost


@dataclass(frozen=True)
class Order:
    """One pass: the step, and the numbers of the memo sets that it reads and writes."""

    step: Step
    takes_memo: bool = False
    read: int | None = None  # None: the step receives None
    write: int | None = None  # None: the step returns no memo
    returns_rows: bool = False  # whether the results of all parts are returned, not their sum
    rebuild: tuple[Step, ...] | None = None  # steps that compute a lost memo; None: report it in the reply
    drop: tuple[int, ...] = ()  # memo sets that are no longer needed


class Reply(NamedTuple):
    """What a process has computed."""

    nodes: list[Node]  # sums of parts
    values: dict[int, Any]  # results by part, if the order asks for them
    lost_rows: list[int]  # parts whose rows this process does not hold
    lost_memos: list[int]  # parts whose memo this process does not hold


LOST = object()  # in the place of a memo that is lost


class HeldParts:
    """The parts that one process holds, with their memos. `places` says where each chunk is."""

    def __init__(self, places: dict[int, Any]) -> None:
        self.places = places
        self.memos: dict[int, dict[int, Memo]] = {}  # by memo set and part

    def __reduce__(self) -> Any:
        return HeldParts, (self.places,)  # a copy on disk or in another process has no memos

    def run(self, order: Order, parts: Sequence[int] | None, load: Load, n_threads: int) -> Reply:
        """Run the order on some of the parts, or on all."""
        for number in order.drop:
            self.memos.pop(number, None)
        if order.write is not None:
            self.memos.setdefault(order.write, {})
        mine = sorted(self.places if parts is None else parts)
        size = max(1, len(mine) // (GROUPS * n_threads))
        calls = [(mine[start : start + size],) for start in range(0, len(mine), size)]
        with machine.one_blas_thread:
            return _joined(machine.in_threads(partial(self._run_parts, order, load), calls, n_threads))

    def _run_parts(self, order: Order, load: Load, parts: list[int]) -> Reply:
        """Run the order on consecutive parts, one after the other: starting a thread for each would take longer."""
        reply = Reply([], {}, [], [])
        results = self._results(order, load, parts, reply)
        if order.returns_rows:
            reply.values.update(results)
        else:
            reply.nodes.extend(tree_nodes(Node(0, part, value) for part, value in results))
        return reply

    def _results(self, order: Order, load: Load, parts: list[int], reply: Reply) -> Iterator[tuple[int, Any]]:
        """The results of parts; the reply lists those whose rows or memo are lost."""
        for part in parts:
            if (chunk := load(self.places[part])) is None:
                reply.lost_rows.append(part)
            elif (memo := self._take_memo(order, part, chunk)) is LOST:
                reply.lost_memos.append(part)
            else:
                yield part, self._run_part(order, part, chunk, memo)

    def _run_part(self, order: Order, part: int, chunk: Chunk, memo: Memo) -> Any:
        if not order.takes_memo:
            return order.step(chunk)
        result = order.step(chunk, memo)
        if order.read is not None:
            self.memos[order.read][part] = memo
        if order.write is None:
            return result
        stats, self.memos[order.write][part] = result
        return stats

    def _take_memo(self, order: Order, part: int, chunk: Chunk) -> Any:
        """The memo of a part, removed until the step has ended: a step that fails may have changed it in place.

        If the order was run before, and its reply was lost, then the step has changed the memo already.
        """
        if order.read is None:
            return None
        memo = self.memos.setdefault(order.read, {}).pop(part, LOST)
        if memo is not LOST and (order.write is None or part not in self.memos[order.write]):
            return memo
        if order.rebuild is None:
            return LOST
        memo = None
        for step in order.rebuild:
            _, memo = step(chunk, memo)
        return memo


def _joined(replies: Iterable[Reply]) -> Reply:
    """One reply for several groups of parts, which are in the order of their numbers."""
    whole = Reply([], {}, [], [])
    whole.nodes.extend(tree_nodes(_nodes_of(replies, whole)))
    return whole


def _nodes_of(replies: Iterable[Reply], whole: Reply) -> Iterator[Node]:
    """The nodes of replies; everything else is added to the reply `whole`."""
    for reply in replies:
        yield from reply.nodes
        whole.values.update(reply.values)
        whole.lost_rows.extend(reply.lost_rows)
        whole.lost_memos.extend(reply.lost_memos)


class MemoSet:
    """The memos of all parts after one pass, which stay in the processes; and the steps that compute them from none."""

    def __init__(self, number: int, steps: tuple[Step, ...]) -> None:
        self.number, self.steps = number, steps


class Placement(Protocol):
    """The parts of a source in the processes of a cluster."""

    ledger: "Ledger"
    n_parts: int

    def holders(self) -> dict[str, list[int]]:
        """The parts that each process holds, by its name."""

    def ask(self, order: Order, parts: dict[str, list[int]]) -> dict[str, Reply | None]:
        """Send an order to processes, and return their replies; None if a process has ended."""

    def recover(self, parts: list[int]) -> dict[str, list[int]]:
        """Load lost parts again, and return them by the name of their new process."""

    def values(self, replies: Iterator[tuple[str, Reply]]) -> list[Any]:
        """The results of all parts, which the replies are about."""


@dataclass
class Ledger:
    """The memo sets of a placement that are in use, and those that the processes can drop."""

    numbers: Iterator[int] = field(default_factory=itertools.count)
    unused: list[int] = field(default_factory=list)

    def open(self, step: Step, before: MemoSet | None) -> MemoSet:
        """The set of the memos that a step returns; those of an E-step do not depend on the memos it receives."""
        steps = () if before is None or isinstance(step, EStep) else before.steps
        memos = MemoSet(next(self.numbers), (*steps, step))
        weakref.finalize(memos, self.unused.append, memos.number)
        return memos

    def dropped(self) -> tuple[int, ...]:
        """The numbers of the sets that are no longer used; each is returned once."""
        numbers = tuple(self.unused)
        del self.unused[: len(numbers)]
        return numbers


def values_in_order(replies: Iterable[tuple[str, Reply]], n_parts: int) -> list[Any]:
    """The results of all parts, which replies have by the number of the part."""
    values = {part: value for _, reply in replies for part, value in reply.values.items()}
    return [values[part] for part in range(n_parts)]


class ClusterEngine(protocols.ClusterEngine):
    """The passes of engines of other processes. A subclass has `_new_placement`, which distributes the parts."""

    def _new_placement(self, source: Source) -> Placement:
        raise NotImplementedError

    def place(self, source: Source) -> Placement:
        placement = _placements.get(id(source))
        if placement is None:
            placement = _placements[id(source)] = self._new_placement(source)
            weakref.finalize(source, _placements.pop, id(source), None)
        return placement

    def release(self, source: Source) -> None:
        _placements.pop(id(source), None)
        if hasattr(source, "release"):
            source.release()

    def sum(self, step: Step, source: Source) -> Any:
        return _sum(replies(self.place(source), Order(step), None))

    def scan(self, step: Step, source: Source, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        placement, before = self.place(source), memo_set(memos)
        after = placement.ledger.open(step, before)
        order = Order(step, takes_memo=True, read=None if before is None else before.number, write=after.number)
        return _sum(replies(placement, order, before)), [after] * placement.n_parts

    def map(self, step: Step, source: Source, memos: list[Memo] | None = None) -> list[Any]:
        if memos is not None and memo_set(memos) is None and is_in_memory(source):
            return Threads().map(step, source, memos)  # the memos are memory of this process, which the step writes to
        placement, before = self.place(source), memo_set(memos)
        order = Order(step, memos is not None, None if before is None else before.number, returns_rows=True)
        return placement.values(replies(placement, order, before))


_placements: dict[int, Placement] = {}  # by the identity of the source


def memo_set(memos: list[Memo] | None) -> MemoSet | None:
    """The memo set that a pass returned; None for initial memos, which the steps create themselves from None."""
    return memos[0] if memos and isinstance(memos[0], MemoSet) else None


def replies(placement: Placement, order: Order, before: MemoSet | None) -> Iterator[tuple[str, Reply]]:
    """Run an order on all parts, and again on those whose rows or memos were lost."""
    order = replace(order, drop=placement.ledger.dropped())
    pending = placement.holders()
    without_holder = set(range(placement.n_parts)).difference(*pending.values())
    if without_holder:  # their process ended after its reply to the last order
        _merge(pending, placement.recover(sorted(without_holder)))
    for _ in range(MAX_LOSSES + 1):
        lost: list[int] = []
        still: dict[str, list[int]] = {}
        for name, reply in placement.ask(order, pending).items():
            if reply is None:
                lost.extend(pending[name])
                continue
            yield name, reply
            lost.extend(reply.lost_rows)
            if reply.lost_memos:
                still[name] = reply.lost_memos
        if lost:
            _merge(still, placement.recover(sorted(lost)))
        if not still:
            return
        pending, order = still, replace(order, rebuild=() if before is None else before.steps)
    raise ClusterError(
        f"workers of the cluster ended {MAX_LOSSES + 1} times in one pass, probably because they ran out of memory: "
        "start workers with more memory, or more workers, and fit again; with `checkpoint` the fit resumes"
    )


def _merge(parts: dict[str, list[int]], others: dict[str, list[int]]) -> None:
    """Add other parts to those of each process."""
    for name, more in others.items():
        parts[name] = sorted({*parts.get(name, []), *more})


def _sum(replies: Iterator[tuple[str, Reply]]) -> Any:
    nodes = sorted((node for _, reply in replies for node in reply.nodes), key=first_item)
    return reduce(add, [node.value for node in tree_nodes(nodes)])
