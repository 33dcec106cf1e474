"""Thorough search of K-means: better than restarts, identical on any number of threads, and within its budget."""

import itertools
import signal
import warnings
from time import perf_counter

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from coterie import KMeans
from coterie.errors import FitInterruptedWarning, ParameterError
from coterie.kmeans import center_search
from many_parts import many_parts

rng = np.random.default_rng(5)
CENTERS = rng.normal(size=(25, 3)) * 4
X = (CENTERS[rng.integers(25, size=900)] + rng.normal(size=(900, 3))).copy()
BUDGET = 30  # enough to be interrupted, not to be waited for


def searching(k, **options):
    return KMeans(k, search="thorough", **({"search_budget": BUDGET, "random_state": 0} | options))


def same(one, two):
    assert one.cluster_centers_.tobytes() == two.cluster_centers_.tobytes()
    assert np.array_equal(one.labels_, two.labels_)
    assert one.inertia_ == two.inertia_
    assert one.history_.tolist() == two.history_.tolist()


# Better


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("k", [1, 2, 25, 60])
def test_it_is_as_good_as_ten_starts_with_the_same_seed(k, seed):
    found = searching(k, random_state=seed).fit(X)
    assert found.inertia_ <= KMeans(k, n_init=10, random_state=seed).fit(X).inertia_ * (1 + 1e-12)


def test_it_is_never_worse_than_the_run_from_the_same_centers():
    start = X[:25] + 0.1
    found = searching(25, init=start, search_budget=1).fit(X)
    assert found.inertia_ <= KMeans(25, init=start).fit(X).inertia_ * (1 + 1e-12)


def test_it_leaves_a_local_optimum():
    """Two centers in one of three distant groups, one between the others: Lloyd stays there forever."""
    groups = np.repeat([[0.0, 0.0], [40.0, 0.0], [40.0, 9.0]], 30, axis=0)
    rows = groups + rng.normal(size=groups.shape)
    start = np.array([[-1.0, 0.0], [1.0, 0.0], [40.0, 4.5]])
    stuck = KMeans(3, init=start).fit(rows)
    found = searching(3, init=start).fit(rows)
    assert found.inertia_ < 0.5 * stuck.inertia_
    assert sorted(np.bincount(found.labels_)) == [30, 30, 30]


def test_it_finds_the_best_of_all_partitions_of_a_few_rows():
    rows = rng.normal(size=(9, 2))
    least = np.inf
    for labels in itertools.product(range(3), repeat=8):
        labels = np.array([0, *labels])
        groups = [rows[labels == j] for j in range(3)]
        least = min(least, sum(((g - g.mean(axis=0)) ** 2).sum() for g in groups if len(g)))
    assert searching(3, search_budget=None).fit(rows).inertia_ == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_no_single_row_is_better_off_in_another_cluster(weighted):
    w = rng.integers(1, 5, size=len(X)).astype(float) if weighted else np.ones(len(X))
    found = searching(25).fit(X, sample_weight=w)
    weight = np.bincount(found.labels_, w, 25)
    squares = ((X[:, None] - found.cluster_centers_) ** 2).sum(axis=2)
    own, rows = found.labels_, np.arange(len(X))
    stays = w * weight[own] / (weight[own] - w) * squares[rows, own]
    goes = w[:, None] * weight / (weight + w[:, None]) * squares
    goes[rows, own] = np.inf
    several = np.bincount(own, minlength=25)[own] > 1
    assert (goes.min(axis=1) >= stays * (1 - 1e-9))[several].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_attributes_belong_together(dtype, form):
    rows = form(X.astype(dtype))
    found = searching(25).fit(rows)
    assert found.cluster_centers_.dtype == dtype
    assert np.array_equal(found.labels_, found.predict(rows))
    squares = ((X.astype(dtype)[:, None].astype(float) - found.cluster_centers_) ** 2).sum(axis=2)
    assert found.inertia_ == pytest.approx(squares.min(axis=1).sum(), rel=1e-6)
    assert found.inertia_ == found.history_[-1]
    assert (np.diff(found.history_) <= 1e-12 * found.inertia_).all()
    assert found.inertia_ <= KMeans(25, search="none", random_state=0).fit(rows).inertia_ * (1 + 1e-6)


# Weights


def test_weight_two_is_the_row_twice():
    rows = X[:60, :2].copy()
    w = rng.integers(0, 4, size=60)
    twice = np.repeat(rows, w, axis=0)
    one = searching(4, search_budget=None).fit(rows, sample_weight=w)
    two = searching(4, search_budget=None).fit(twice)
    assert one.inertia_ == pytest.approx(two.inertia_, rel=1e-12)


def test_rows_of_weight_zero_count_for_nothing():
    w = (np.arange(len(X)) % 3 > 0).astype(float)
    one = searching(8, search_budget=None).fit(np.where(w[:, None] > 0, X, 1e6), sample_weight=w)
    assert one.inertia_ <= KMeans(8, n_init=20, random_state=1).fit(X[w > 0]).inertia_ * (1 + 1e-12)


# Reproducible


def test_the_number_of_threads_changes_nothing(monkeypatch):
    rows = np.random.default_rng(1).normal(size=(4500, 6))
    many_parts(monkeypatch, rows)
    same(*(searching(12, search_budget=1, n_jobs=jobs).fit(rows) for jobs in (1, 3)))


def test_the_same_seed_gives_the_same_bits():
    same(searching(20).fit(X), searching(20).fit(X))


# Edges


def test_as_many_clusters_as_rows_cost_nothing():
    assert searching(12).fit(X[:12]).inertia_ == 0


def test_fewer_distinct_rows_than_clusters_are_all_found():
    with pytest.warns(UserWarning, match="only 4 of 6 clusters"):
        found = searching(6).fit(np.repeat(X[:4], 5, axis=0))
    assert found.inertia_ == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_the_unit_of_the_columns_changes_nothing(size):
    ours, theirs = searching(9).fit(X), searching(9).fit(X * size)
    assert theirs.inertia_ == pytest.approx(ours.inertia_ * size**2, rel=1e-9)


def test_rows_far_from_the_origin_lose_nothing():
    ours, theirs = searching(9).fit(X), searching(9).fit(X + 1e6)
    assert theirs.inertia_ == pytest.approx(ours.inertia_, rel=1e-6)


def test_a_sample_is_searched_where_there_are_too_many_rows(monkeypatch):
    monkeypatch.setattr(center_search, "MAX_VALUES", 1800)
    for form in (np.asarray, sparse.csr_array):
        found = searching(10).fit(form(X))
        assert found.inertia_ <= KMeans(10, search="none", random_state=0).fit(form(X)).inertia_
        assert np.array_equal(found.labels_, found.predict(form(X)))


def test_dask_rows_are_searched():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(200, 3))
    found = searching(10).fit(rows)
    assert found.inertia_ <= KMeans(10, search="none", random_state=0).fit(rows).inertia_


# Progress, and stopping


def test_progress_never_gets_worse():
    seen = []
    found = searching(25, callback=seen.append).fit(X)
    steps = [p for p in seen if p.run == 0]
    assert [p.iteration for p in steps] == list(range(len(steps)))
    assert len(steps) > 3
    objectives = [p.objective for p in steps]
    assert objectives == sorted(objectives, reverse=True)
    assert {p.run for p in seen} == {0, 1}
    assert found.inertia_ <= objectives[-1] * (1 + 1e-12)
    squares = ((X[:, None] - steps[-1].params) ** 2).sum(axis=2)
    assert steps[-1].objective == pytest.approx(squares.min(axis=1).sum(), rel=1e-9)


def at(run, iteration, then):
    reached = []

    def callback(progress):
        if (progress.run, progress.iteration) == (run, iteration):
            reached.append(progress)
            return then()
        return False

    callback.reached = reached
    return callback


def interrupt():
    raise KeyboardInterrupt


def test_an_interrupt_keeps_the_best_so_far():
    callback = at(0, 3, interrupt)
    with pytest.warns(FitInterruptedWarning, match="the best result so far is kept"):
        found = searching(25, callback=callback).fit(X)
    assert found.inertia_ == pytest.approx(callback.reached[0].objective, rel=1e-9)
    assert found.inertia_ < KMeans(25, search="none", random_state=0).fit(X).inertia_
    assert np.array_equal(found.labels_, found.predict(X))
    assert not found.converged_


def test_the_callback_can_end_it_without_a_warning():
    callback = at(0, 3, lambda: True)
    found = searching(25, callback=callback).fit(X)
    assert found.inertia_ == pytest.approx(callback.reached[0].objective, rel=1e-3)


# Budgets


def work_of(monkeypatch, **options):
    """The work of a search, in multiply-adds."""
    ends = []

    class Problem(center_search.CenterProblem):
        def polished(self, centers, objective):
            ends.append(self.work)
            return centers

    monkeypatch.setattr(center_search, "CenterProblem", Problem)
    searching(20, **options).fit(X)
    return ends[0]


def test_the_budget_is_kept_to_within_a_few_runs(monkeypatch):
    run = work_of(monkeypatch, n_init=1, init=X[:20], search_budget=1e-9)
    for budget in (10, 30, 90):
        assert 0.3 * budget * run <= work_of(monkeypatch, search_budget=budget) <= 3 * (budget + 4) * run


def test_a_larger_budget_is_never_worse():
    found = [searching(40, search_budget=budget).fit(X).inertia_ for budget in (1, 4, 16, 64)]
    assert found == sorted(found, reverse=True)


def test_seconds_are_kept():
    assert center_search.as_budget(" 0.25 s") == (np.inf, 0.25)
    seen = []
    searching(5, search_budget="0.2s", callback=lambda progress: seen.append(perf_counter())).fit(X)
    assert 0.1 < seen[-1] - seen[0] < 30


@pytest.mark.parametrize("budget", [0, -1, np.nan, np.inf, True, "10", "s", "-2s", "0s", "two s", [10], b"2s"])
def test_an_invalid_budget_is_rejected(budget):
    with pytest.raises(ParameterError, match=r"search_budget must be None, a number above 0 .*'2\.5s'; got"):
        KMeans(3, search="thorough", search_budget=budget).fit(X)


def test_a_budget_without_a_search_is_rejected():
    with pytest.raises(ParameterError, match="search_budget"):
        KMeans(3, search_budget=10).fit(X)


def test_an_unknown_search_is_rejected():
    with pytest.raises(ParameterError, match="search must be 'none' or 'auto' or 'thorough'; got 'slow'"):
        KMeans(3, search="slow").fit(X)


def test_nothing_warns():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        searching(5).fit(X[:50])
    assert said == []


def test_ctrl_c_during_the_last_moves_of_single_rows_keeps_the_result_and_the_checkpoint(tmp_path, monkeypatch):
    polished, path = center_search.CenterProblem.polished, tmp_path / "search"
    model = searching(25, search_budget=5 * BUDGET)  # with some jumps, before which a state is stored

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return polished(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(center_search.CenterProblem, "polished", interrupted)
        with pytest.warns(FitInterruptedWarning, match="the best result so far is kept"):
            stopped = clone(model).set_params(checkpoint=path).fit(X)
    whole = clone(model).fit(X)
    assert stopped.inertia_ <= 1.01 * whole.inertia_
    assert path.exists()
    same(clone(model).set_params(checkpoint=path).fit(X), whole)


def test_rows_of_weight_zero_change_neither_the_result_nor_the_objectives_of_callbacks():
    def fitted(rows, weight):
        seen = []
        model = searching(9, callback=lambda step: seen.append(step.objective))
        return model.fit(rows, sample_weight=weight), seen

    without, objectives = fitted(X, None)
    weight = np.r_[np.ones(len(X)), np.zeros(500)]
    with_rows, others = fitted(np.r_[X, X[:500] + 50.0], weight)
    np.testing.assert_allclose(with_rows.cluster_centers_, without.cluster_centers_, rtol=1e-9)
    np.testing.assert_allclose(others, objectives, rtol=1e-9)


def test_a_sample_with_rows_of_weight_zero_is_searched(monkeypatch):
    monkeypatch.setattr(center_search, "MAX_VALUES", 1 << 10)
    searched = []
    search = center_search.search
    monkeypatch.setattr(center_search, "search", lambda *arguments: searched.append(1) or search(*arguments))
    rows = np.repeat(X, 8, axis=1)
    searching(5, init="random").fit(rows, sample_weight=np.arange(len(rows)) % 2 + 0.0)
    assert searched == [1]
