from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from coterie import interrupts
from coterie.core import loop
from coterie.core.stats import Stats
from coterie.errors import FitInterruptedWarning


@dataclass(frozen=True)
class Value(Stats):
    value: float


@dataclass(frozen=True)
class Halving:
    """A model whose objective is its parameter, halved by every M-step; initial parameters are random."""

    settles_at: float = 1e-3

    def init(self, source, engine, rng):
        return float(rng.uniform(1, 100))

    def initial_memos(self, source):
        return None

    def m_step(self, params, stats):
        return stats.value / 2

    def repair(self, params, stats, source, engine, memos):
        return params

    def objective(self, params, stats):
        return stats.value

    def has_converged(self, before, after, stats, history, stretch):
        return after < self.settles_at

    def e_step(self, params, chunk, memo=None):
        return Value(params), (memo or 0) + 1


class OnePart:
    def scan(self, step, source, memos):
        stats, memo = step(None, memos[0] if memos else None)
        return stats, [memo]


def fit(callback=None, n_init=1, max_iter=100):
    return loop.fit(
        Halving(), None, OnePart(), rng=np.random.default_rng(0), n_init=n_init, max_iter=max_iter, callback=callback
    )


def test_history_ends_at_the_objective_of_the_parameters():
    found = fit()
    assert found.converged
    assert found.objective == found.params == found.history[-1] < 1e-3
    np.testing.assert_allclose(np.array(found.history[1:]) * 2, found.history[:-1])


def test_memos_come_back_pass_after_pass():
    found = fit()
    assert found.memos == [len(found.history)]


def test_max_iter_is_a_number_of_m_steps():
    found = fit(max_iter=4)
    assert not found.converged
    assert len(found.history) == 5


def test_the_restart_with_the_lowest_objective_is_returned():
    seen = {}
    found = fit(lambda p: seen.__setitem__(p.run, p.objective), n_init=5)
    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert found.objective == min(seen.values())


def test_a_callback_sees_the_start_and_every_iteration_and_can_stop():
    seen = []

    def stop_at_three(progress):
        seen.append(progress.iteration)
        return progress.iteration == 3

    found = fit(stop_at_three, n_init=2)
    assert seen == [0, 1, 2, 3]  # and no second start
    assert found.stopped
    assert not found.converged
    assert len(found.history) == 4


def test_an_interrupt_keeps_the_best_so_far():
    def interrupt(progress):
        if (progress.run, progress.iteration) == (1, 2):
            raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning, match="best result so far"):
        found = fit(interrupt, n_init=3)
    assert found.converged  # the first start was complete, and lower than what the second had reached
    assert found.objective < 1e-3


def test_an_interrupt_in_the_first_start_keeps_what_it_reached():
    def interrupt(progress):
        if progress.iteration == 5:
            raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning):
        found = fit(interrupt)
    assert found.stopped
    assert found.objective == found.params


def test_an_interrupt_before_the_first_result_is_raised():
    class Broken(OnePart):
        def scan(self, step, source, memos):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop.fit(Halving(), None, Broken(), rng=np.random.default_rng(0))


def test_an_interrupt_of_a_fit_within_a_larger_computation_is_raised():
    def interrupt(progress):
        if progress.iteration == 5:
            raise KeyboardInterrupt

    with interrupts.outermost(), pytest.raises(KeyboardInterrupt):
        fit(interrupt)


def test_other_system_errors_are_raised():
    def fail(progress):
        raise SystemError("something else")

    with pytest.raises(SystemError, match="something else"):
        fit(fail)
