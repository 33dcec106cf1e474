from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.base import Lines
from coterie.core.clock import Clock, Descents, spoken
from coterie.core.progress import Progress


class Now:
    """A clock that is set by hand."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def test_the_rest_takes_as_long_as_what_is_done():
    now = Now()
    clock = Clock(now)
    now.time = 10.0
    assert clock.left(0.25) == pytest.approx(30.0)
    assert clock.left(1.0) == 0.0


def test_nothing_is_said_before_there_is_something_to_go_by():
    now = Now()
    clock = Clock(now)
    assert clock.left(0.0) is None
    assert clock.left(0.5) is None
    now.time = 100.0
    assert clock.left(0.0) is None


def test_work_of_another_fit_is_not_taken_for_speed():
    now = Now()
    clock = Clock(now, before=0.5)
    now.time = 10.0
    assert clock.left(0.75) == pytest.approx(10.0)


@given(
    starts=st.integers(1, 4),
    most=st.integers(1, 30),
    settles=st.booleans(),
    steps=st.lists(st.tuples(st.floats(0, 1e6), st.floats(allow_nan=True, allow_infinity=True)), max_size=60),
)
def test_time_left_is_never_negative_and_never_nan(starts, most, settles, steps):
    now = Now()
    clock = Descents(starts, most, settles, now)
    for i, (seconds, objective) in enumerate(steps):
        now.time += seconds
        left = clock.left(i // (most + 1), i % (most + 1), objective)
        assert left is None or (left >= 0 and np.isfinite(left))


@given(share=st.floats(0, 1), before=st.floats(0, 1), seconds=st.floats(0, 1e9))
def test_shares_make_no_negative_times(share, before, seconds):
    now = Now()
    clock = Clock(now, before)
    now.time = seconds
    left = clock.left(share)
    assert left is None or left >= 0


def descent(clock, now, run, rate, count, seconds=1.0):
    """What is said after every iteration of a start whose gains shrink by `rate`."""
    said, objective = [], 1000.0
    for iteration in range(count + 1):
        now.time += seconds
        said.append(clock.left(run, iteration, objective))
        objective -= 100 * rate**iteration
    return said


def test_a_first_start_goes_by_the_rate_at_which_its_gains_shrink():
    now = Now()
    said = descent(Descents(1, 1000, now=now), now, 0, rate=0.9, count=60)
    assert said[:4] == [None] * 4
    expected = np.log(1e-6) / np.log(0.9)  # iterations until gains are a millionth
    assert said[60] == pytest.approx(expected - 60, rel=0.5)
    told = [value for value in said if value is not None]
    assert told[-1] < told[10]


def test_later_starts_go_by_those_before():
    now = Now()
    clock = Descents(4, 1000, now=now)
    descent(clock, now, 0, rate=0.5, count=20)
    said = descent(clock, now, 1, rate=0.5, count=20)
    assert said[0] == pytest.approx(20 + 2 * 21)
    assert said[20] == pytest.approx(1 + 2 * 21, rel=0.05)


def test_a_fit_that_does_not_settle_takes_all_its_iterations():
    now = Now()
    clock = Descents(1, 100, settles=False, now=now)
    said = descent(clock, now, 0, rate=1.0, count=100)
    assert said[40] == pytest.approx(60)
    assert said[100] == 0.0


def test_an_objective_that_rises_says_nothing():
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
def test_words_are_no_more_exact_than_the_guess(seconds, words):
    assert spoken(seconds) == words


def test_lines_are_printed_now_and_then(capsys):
    now = Now()
    lines = Lines(now=now)
    for iteration in range(31):
        lines(Progress("iteration", iteration, left=12.0 if iteration > 9 else None, objective=5.0))
        now.time += 0.125
    assert capsys.readouterr().out.splitlines() == [
        "start 1, iteration 0: objective 5",
        "start 1, iteration 8: objective 5",
        "start 1, iteration 16: objective 5, about 12 s left",
        "start 1, iteration 24: objective 5, about 12 s left",
    ]
