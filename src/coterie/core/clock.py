"""Estimates of the remaining time of a computation."""

import math
import time
from collections.abc import Callable
from itertools import pairwise

MIN_ELAPSED = 1.0  # seconds before the first estimate
GAINS = (4, 10)  # minimum and maximum number of iterations from which a rate of convergence is estimated
FINAL_GAIN = 1e-6  # gain of an iteration, relative to the total gain, at which fits typically converge

Now = Callable[[], float]


class Clock:
    """Estimates the remaining time from the speed so far."""

    def __init__(self, now: Now = time.monotonic, before: float = 0.0) -> None:
        self.now, self.began = now, now()
        self.before = before  # share of the work that was already done at the start

    def left(self, share: float) -> float | None:
        """Seconds left when `share` of the work is done; None if it is too early to estimate."""
        if share >= 1:
            return 0.0
        elapsed, done = self.now() - self.began, share - self.before
        return elapsed * (1 - share) / done if done > 0 and elapsed >= MIN_ELAPSED else None


class Descents:
    """Estimates the remaining time of all restarts of a fit, from the time and the number of their iterations.

    A restart is expected to need as many iterations as the mean of those before. The first is expected to end when the
    gain of an iteration is a millionth of its total gain; gains shrink by a common factor in the long run. A model
    that does not converge is expected to need `max_iter` iterations.
    """

    def __init__(self, n_init: int, max_iter: int, converges: bool = True, now: Now = time.monotonic) -> None:
        self.n_init, self.max_iter, self.converges = n_init, max_iter, converges
        self.now, self.began, self.n_calls = now, now(), 0
        self.run, self.last, self.completed = -1, 0, list[int]()  # iterations of the completed restarts
        self.objectives: list[float] = []  # of this restart: the first, and the last few
        self.estimate: float | None = None  # of the iterations of this restart

    def left(self, run: int, iteration: int, objective: float) -> float | None:
        """Seconds left after this iteration; None if it is too early to estimate."""
        if run != self.run:
            self.completed += [self.last] if self.run >= 0 else []
            self.run, self.objectives, self.estimate = run, [], None
        self.last, self.n_calls = iteration, self.n_calls + 1
        self.objectives = [*self.objectives[:1], *self.objectives[1:][-GAINS[1] :], objective]
        elapsed = self.now() - self.began
        self.estimate = None if elapsed < MIN_ELAPSED else self._expected(iteration)
        if self.estimate is None:
            return None
        expected = self.estimate
        mean = (sum(self.completed) + expected) / (len(self.completed) + 1)
        # An initialisation takes about as long as an iteration.
        iterations = expected - iteration + max(0, self.n_init - run - 1) * (mean + 1)
        return elapsed / self.n_calls * max(0.0, iterations)

    def _expected(self, iteration: int) -> float | None:
        """Expected total number of iterations of this restart; None if it is too early to estimate."""
        expected: float | None
        if not self.converges:
            expected = self.max_iter
        else:
            expected = sum(self.completed) / len(self.completed) if self.completed else self._by_rate(iteration)
            expected = self.estimate if expected is None else expected
        return None if expected is None else float(min(max(expected, iteration + 1), max(self.max_iter, iteration)))

    def _by_rate(self, iteration: int) -> float | None:
        """The iteration in which gains will be small enough if they shrink at the same rate; None if they do not."""
        if len(self.objectives) < 2 + GAINS[0] or not all(map(math.isfinite, self.objectives)):
            return None
        gains = [before - after for before, after in pairwise(self.objectives[1:])]
        total = self.objectives[0] - self.objectives[-1]
        if not (min(gains) > 0 and gains[-1] < gains[0] and max(*gains, total) < math.inf and total > 0):
            return None
        rate = (math.log(gains[-1]) - math.log(gains[0])) / (len(gains) - 1)
        return iteration + (math.log(FINAL_GAIN) + math.log(total) - math.log(gains[-1])) / rate


def time_left_text(seconds: float | None) -> str:
    """Format the seconds left, such as "about 3 min left"; an empty text for None."""
    if seconds is None:
        return ""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:.0f} {unit} left"
    return f"about {seconds:.0f} s left" if seconds >= 1 else "less than a second left"
