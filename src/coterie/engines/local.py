"""Engines of this machine: serial, and threads."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from coterie import machine
from coterie.core.protocols import Memo, Source, Step
from coterie.core.stats import tree_sum


class LocalEngine:
    """Base class of local engines. `_run` runs a step on all parts, in their order."""

    n_jobs: int | None = 1  # number of threads

    def _run(self, step: Step, source: Source, *memos: list[Memo]) -> Iterator[Any]:
        return machine.in_threads(partial(_run_part, step), zip(source.parts(), *memos, strict=True), self.n_jobs)

    def sum(self, step: Step, source: Source) -> Any:
        with machine.one_blas_thread:
            return tree_sum(self._run(step, source))

    def scan(self, step: Step, source: Source, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        new_memos: list[Memo] = []

        def stats() -> Iterator[Any]:
            for stats, memo in self._run(step, source, memos or [None] * len(source.parts())):
                new_memos.append(memo)
                yield stats

        with machine.one_blas_thread:
            return tree_sum(stats()), new_memos

    def map(self, step: Step, source: Source, memos: list[Memo] | None = None) -> list[Any]:
        with machine.one_blas_thread:
            return list(self._run(step, source, *([] if memos is None else [memos])))


@dataclass(frozen=True)
class Serial(LocalEngine):
    """Process one chunk after the other."""


@dataclass(frozen=True)
class Threads(LocalEngine):
    """Process chunks in parallel threads; the kernels release the GIL."""

    n_jobs: int | None = None  # None and -1: all cores; -2: all but one


def _run_part(step: Step, part: Any, *memo: Memo) -> Any:
    return step(part(), *memo)
