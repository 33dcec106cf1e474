from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.clock import Clock, Descents, time_left_text


class Now:
    """A clock that is set by hand."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def test_the_remaining_time_follows_from_the_speed_so_far():
    now = Now()
    clock = Clock(now)
    now.time = 10.0
    assert clock.left(0.25) == pytest.approx(30.0)
    assert clock.left(1.0) == 0.0


def test_there_is_no_estimate_too_early():
    now = Now()
    clock = Clock(now)
    assert clock.left(0.0) is None
    assert clock.left(0.5) is None
    now.time = 100.0
    assert clock.left(0.0) is None


def test_work_done_before_the_start_does_not_count_for_the_speed():
    now = Now()
    clock = Clock(now, before=0.5)
    now.time = 10.0
    assert clock.left(0.75) == pytest.approx(10.0)


@given(
    n_init=st.integers(1, 4),
    max_iter=st.integers(1, 30),
    converges=st.booleans(),
    steps=st.lists(st.tuples(st.floats(0, 1e6), st.floats(allow_nan=True, allow_infinity=True)), max_size=60),
)
def test_time_left_is_never_negative_and_never_nan(n_init, max_iter, converges, steps):
    now = Now()
    clock = Descents(n_init, max_iter, converges, now)
    for i, (seconds, objective) in enumerate(steps):
        now.time += seconds
        left = clock.left(i // (max_iter + 1), i % (max_iter + 1), objective)
        assert left is None or (left >= 0 and np.isfinite(left))


@given(share=st.floats(0, 1), before=st.floats(0, 1), seconds=st.floats(0, 1e9))
def test_the_time_left_is_never_negative(share, before, seconds):
    now = Now()
    clock = Clock(now, before)
    now.time = seconds
    left = clock.left(share)
    assert left is None or left >= 0


def descent(clock, now, run, rate, count, seconds=1.0):
    """Estimates after every iteration of a restart whose gains shrink by `rate`."""
    estimates, objective = [], 1000.0
    for iteration in range(count + 1):
        now.time += seconds
        estimates.append(clock.left(run, iteration, objective))
        objective -= 100 * rate**iteration
    return estimates


def test_the_first_restart_is_estimated_from_its_rate_of_convergence():
    now = Now()
    estimates = descent(Descents(1, 1000, now=now), now, 0, rate=0.9, count=60)
    assert estimates[:4] == [None] * 4
    expected = np.log(1e-6) / np.log(0.9)  # iterations until gains are a millionth
    assert estimates[60] == pytest.approx(expected - 60, rel=0.5)
    known = [value for value in estimates if value is not None]
    assert known[-1] < known[10]


def test_later_restarts_are_estimated_from_earlier_ones():
    now = Now()
    clock = Descents(4, 1000, now=now)
    descent(clock, now, 0, rate=0.5, count=20)
    estimates = descent(clock, now, 1, rate=0.5, count=20)
    assert estimates[0] == pytest.approx(20 + 2 * 21)
    assert estimates[20] == pytest.approx(1 + 2 * 21, rel=0.05)


def test_a_fit_that_does_not_converge_needs_all_iterations():
    now = Now()
    clock = Descents(1, 100, converges=False, now=now)
    estimates = descent(clock, now, 0, rate=1.0, count=100)
    assert estimates[40] == pytest.approx(60)
    assert estimates[100] == 0.0


def test_there_is_no_estimate_while_the_objective_rises():
    now = Now()
    clock = Descents(1, 100, now=now)
    for iteration in range(20):
        now.time += 1.0
        assert clock.left(0, iteration, float(iteration)) is None


@pytest.mark.parametrize(
    "seconds, words",
    [(None, ""), (0.0, "less than a second left"), (12.4, "about 12 s left"), (89.0, "about 89 s left"),
     (200.0, "about 3 min left"), (7300.0, "about 2 h left")],
)  # fmt: skip
def test_the_text_is_rounded(seconds, words):
    assert time_left_text(seconds) == words
