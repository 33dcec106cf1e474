"""How long work will still take, as far as that can be told."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

SILENT = 1.0  # seconds in which nothing is said
GAINS = (4, 10)  # steps that a rate is taken from: at least, and at most
END = 1e-6  # of all that was gained: about where descents end

Now = Callable[[], float]


class Clock:
    """The time that the rest of the work will take if it goes on at the speed of what is done."""

    def __init__(self, now: Now = time.monotonic, before: float = 0.0) -> None:
        self.now, self.began = now, now()
        self.before = before  # the share that was done when it began to run

    def left(self, share: float) -> float | None:
        """Seconds, once `share` of all work is done; None while there is too little to go by."""
        if share >= 1:
            return 0.0
        elapsed, done = self.now() - self.began, share - self.before
        return elapsed * (1 - share) / done if done > 0 and elapsed >= SILENT else None


class Descents:
    """The time that all starts of a fit will take, from their speed and from how many iterations they seem to need.

    A start needs about as many as those before it. The first is taken to end when its gains, which shrink by a common
    factor in the long run, are a millionth of what it has gained; one that does not settle, after `most` iterations.
    """

    def __init__(self, starts: int, most: int, settles: bool = True, now: Now = time.monotonic) -> None:
        self.starts, self.most, self.settles = starts, most, settles
        self.now, self.began, self.taken = now, now(), 0
        self.run, self.last, self.ended = -1, 0, list[int]()  # iterations of the starts that ended
        self.objectives: list[float] = []  # of this start: the first, and the last few
        self.guess: float | None = None  # of its iterations

    def left(self, run: int, iteration: int, objective: float) -> float | None:
        """Seconds, after that iteration; None while there is too little to go by."""
        if run != self.run:
            self.ended += [self.last] if self.run >= 0 else []
            self.run, self.objectives, self.guess = run, [], None
        self.last, self.taken = iteration, self.taken + 1
        self.objectives = [*self.objectives[:1], *self.objectives[1:][-GAINS[1] :], objective]
        elapsed = self.now() - self.began
        self.guess = None if elapsed < SILENT else self._expected(iteration)
        if self.guess is None:
            return None
        expected = self.guess
        each = (sum(self.ended) + expected) / (len(self.ended) + 1)
        steps = expected - iteration + max(0, self.starts - run - 1) * (each + 1)  # a start costs a step about
        return elapsed / self.taken * max(0.0, steps)

    def _expected(self, iteration: int) -> float | None:
        """Iterations of this start, all in all."""
        if not self.settles:
            found: float | None = self.most
        else:
            found = sum(self.ended) / len(self.ended) if self.ended else self._by_rate(iteration)
            found = self.guess if found is None else found
        return None if found is None else float(min(max(found, iteration + 1), max(self.most, iteration)))

    def _by_rate(self, iteration: int) -> float | None:
        """When gains will be small enough, if they go on to shrink as they do; None if they do not."""
        if len(self.objectives) < 2 + GAINS[0] or not np.isfinite(self.objectives).all():
            return None
        with np.errstate(over="ignore"):
            gains, total = -np.diff(self.objectives[1:]), self.objectives[0] - self.objectives[-1]
        if not (np.isfinite(gains).all() and gains.min() > 0 and gains[-1] < gains[0] and 0 < total < np.inf):
            return None
        rate = (np.log(gains[-1]) - np.log(gains[0])) / (len(gains) - 1)
        return iteration + float((np.log(END) + np.log(total) - np.log(gains[-1])) / rate)


def spoken(seconds: float | None) -> str:
    """Seconds in words, no more exact than they are; nothing where nothing is known."""
    if seconds is None:
        return ""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:.0f} {unit} left"
    return f"about {seconds:.0f} s left" if seconds >= 1 else "less than a second left"
