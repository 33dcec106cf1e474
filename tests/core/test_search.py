"""The search that all models share, on a line with known optima."""

from dataclasses import replace

import numpy as np
import pytest

from coterie.core.search import Effort, Pool, Problem, kind_of, search
from coterie.errors import ParameterError

EFFORT = Effort(
    batch=2, starts=8, agree=3, same=1e-6, moves=1, patience=2, jumps=3, runs=1e9, work=0.0, pass_work=np.inf
)


class Line(Problem):
    """Runs are integers that go down to the lowest number of their ten, at an objective of 1 + number / 10."""

    def __init__(self, starts, defective=(), downhill=0):
        self.queue, self.defective, self.downhill = list(starts), set(defective), downhill
        self.work, self.moved, self.jumped = 0.0, 0, 0

    def starts(self, count):
        taken, self.queue = self.queue[:count], self.queue[count:]
        return np.array(taken)

    def advance(self, params, to_beat, hope):
        self.work += len(params)
        ended = params % 10 == 0
        params = np.where(ended, params, params - 1)
        return params, 1 + params / 10, np.where(ended, 0.0, 9.0) * np.ones((2, 1))

    def defects(self, params):
        return np.isin(params, list(self.defective)).astype(int)

    def moves(self, pool, effort, patience, failures):
        self.moved += 1
        self.work += 1
        gains = self.downhill > 0
        self.downhill -= gains
        params = pool.params[:1] - 10 * gains
        objective = 1 + params / 10
        return Pool(params, objective, self.defects(params), np.zeros(1, int)), (0 if gains else failures + 1)

    def jump(self, pool):
        self.jumped += 1
        return pool.params[:1] + 25


def quiet(pool, share):
    assert 0 <= share <= 1
    return False


def test_starts_that_agree_end_the_search():
    line = Line([23, 34, 21, 25, 70, 70, 70, 70])
    pool = search(line, EFFORT, quiet)
    assert pool.params.tolist() == [20, 30]
    assert pool.hits.tolist() == [3, 1]
    assert len(line.queue) == 4
    assert line.moved == line.jumped == 0


def test_starts_that_disagree_are_followed_by_moves_and_jumps():
    line = Line([23, 34, 45, 56, 67, 78, 89, 91], downhill=2)
    pool = search(line, EFFORT, quiet)
    assert pool.params[0] == 0
    assert line.jumped == 3
    assert line.moved >= 4


def test_defective_runs_come_last_and_do_not_agree():
    line = Line([13, 14, 15, 34, 36, 37, 50, 51], defective=[10])
    pool = search(line, EFFORT, quiet)
    assert pool.params[0] == 30
    assert pool.defects[0] == 0
    assert pool.hits[0] >= 3


def test_defective_runs_do_not_continue_beside_others():
    line = Line([13, 35], defective=range(10, 20))
    search(line, replace(EFFORT, starts=2, patience=0, jumps=0), quiet)
    assert line.work == 2 + 5  # the first step of both, and further steps of one


def test_a_search_without_a_result_continues_until_its_work_is_done():
    effort = replace(EFFORT, starts=2, patience=0, jumps=3, runs=0.0, work=100.0)
    for defective, jumps in ((range(0), 3), (range(1000), 16)):
        line = Line([13, 14], defective)
        search(line, effort, quiet)
        assert line.jumped == jumps


def test_the_first_of_runs_that_are_equal_up_to_rounding_is_kept():
    class Rounding(Line):
        def advance(self, params, to_beat, hope):
            params, _, gains = super().advance(params, to_beat, hope)
            return params, 2 - 1e-13 * params, np.zeros_like(gains)

    pool = search(Rounding([21, 31, 41, 51]), EFFORT, quiet)
    assert pool.params.tolist() == [20]


@pytest.mark.parametrize("restart, jumps, starts", [(0, 7, 6), (2, 3, 12), (1, 0, 20)])
def test_starts_take_the_place_of_some_jumps(restart, jumps, starts):
    line = Line(np.arange(103, 403, 10).tolist())
    search(line, replace(EFFORT, patience=0, jumps=7, starts=8, restart=restart), quiet)
    assert (line.jumped, 30 - len(line.queue)) == (jumps, starts)


def test_runs_that_agree_later_end_a_search_with_restarts():
    line = Line([103, 113, *[23] * 20])
    pool = search(line, replace(EFFORT, patience=0, jumps=100, starts=2, restart=1), quiet)
    assert pool.params[0] == 20
    assert pool.hits[0] == 4
    assert len(line.queue) == 16


def test_counted_work_ends_the_search():
    line = Line([23, 34, 45, 56, 67, 78, 89, 91], downhill=10**6)
    search(line, replace(EFFORT, runs=5.0), quiet)
    assert line.work < 60


def test_a_search_resumes_before_any_jump_with_the_same_result():
    def line():
        return Line([23, 34, 45, 56, 67, 78, 89, 91], downhill=2)

    states, whole, effort = [], line(), replace(EFFORT, runs=20.0)

    def save(*state):
        states.append((state, whole.work, whole.downhill))

    expected = search(whole, effort, quiet, save)
    assert len(states) == 3
    for state, work, downhill in states:
        resumed = line()
        resumed.work, resumed.downhill = work, downhill
        pool = search(resumed, effort, quiet, None, state)
        assert pool.params.tolist() == expected.params.tolist()
        assert pool.hits.tolist() == expected.hits.tolist()
        assert resumed.work == whole.work
        assert len(resumed.queue) == 8  # no starts


@pytest.mark.parametrize("solutions", [4, 6])
def test_so_many_different_solutions_are_remembered(solutions):
    line = Line([13, 24, 35, 46, 57, 68, 79, 81])
    pool = search(line, replace(EFFORT, solutions=solutions, jumps=0), quiet)
    assert len(pool.params) == solutions


@pytest.mark.parametrize("calls", [1, 3])
def test_the_watcher_can_end_it(calls):
    seen = []

    def watch(pool, share):
        seen.append(pool)
        return len(seen) == calls

    pool = search(Line([23, 34, 45, 56, 67, 78, 89, 91], downhill=10), EFFORT, watch)
    assert len(seen) == calls
    assert pool.objective[0] == seen[-1].objective[0]


@pytest.mark.parametrize(
    "word, kind", [("auto", "auto"), ("none", "none"), ("fast", "thorough"), ("global", "thorough")]
)
def test_words_of_earlier_versions_mean_a_thorough_search(word, kind):
    assert kind_of(word) == kind


@pytest.mark.parametrize("word", ["quick", None, ["auto"]])
def test_other_words_are_errors(word):
    with pytest.raises(ParameterError, match="search must be 'none' or 'auto' or 'thorough'; got"):
        kind_of(word)
