"""The search of estimators of centers: where it applies, and that seed and data alone decide on its result."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from coterie import FuzzyCMeans, KMeans, KMedians, SphericalKMeans
from coterie.errors import FitInterruptedWarning, ParameterError
from coterie.kmeans import center_search
from many_parts import many_parts

rng = np.random.default_rng(3)
GROUPS = rng.normal(size=(12, 3)) * 5
X = GROUPS[rng.integers(12, size=400)] + rng.normal(size=(400, 3))
MODELS = {
    "KMeans": KMeans,
    "SphericalKMeans": SphericalKMeans,
    "l1": KMedians,
    "l2": lambda k, **options: KMedians(k, metric="l2", **options),
    "FuzzyCMeans": FuzzyCMeans,
}
ALL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
KINDS = pytest.mark.parametrize("kind", ["auto", "thorough"])


def cost(fitted):
    return fitted.objective_ if hasattr(fitted, "objective_") else fitted.inertia_


@ALL
@KINDS
@pytest.mark.parametrize("seed", range(3))
def test_it_is_as_good_as_ten_starts(model, kind, seed):
    best = cost(model(9, search="none", n_init=10, random_state=0).fit(X))
    assert cost(model(9, search=kind, random_state=seed).fit(X)) <= 1.005 * best


@ALL
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(model, monkeypatch):
    rows = np.random.default_rng(1).normal(size=(4500, 6))
    many_parts(monkeypatch, rows)
    one, two = (model(9, random_state=1, n_jobs=jobs).fit(rows) for jobs in (1, 3))
    assert one.cluster_centers_.tobytes() == two.cluster_centers_.tobytes()
    assert one.history_.tolist() == two.history_.tolist()


@ALL
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_history_goes_down_from_a_start_to_the_result(model, dtype):
    fitted = model(9, random_state=0).fit(X.astype(dtype))
    history = fitted.history_
    assert (np.diff(history) <= 1e-6 * history[0]).all()
    assert history[-1] == cost(fitted)
    assert len(history) == fitted.n_iter_ + 1 > 2
    assert fitted.cluster_centers_.dtype == dtype
    assert np.array_equal(fitted.predict(X.astype(dtype)), fitted.labels_)


@ALL
@KINDS
@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_no_more_iterations_are_made_than_allowed(model, kind, max_iter):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = (
            model(9, search=kind, max_iter=max_iter, search_budget=1)
            if (model is KMeans and kind == "thorough")
            else model(9, search=kind, max_iter=max_iter)
        )
        assert fitted.set_params(random_state=0).fit(X).n_iter_ <= max_iter


@ALL
def test_a_row_of_weight_zero_has_no_effect(model):
    w = rng.integers(0, 3, size=400).astype(float)
    with_zeros = model(6, random_state=0).fit(np.where(w[:, None] > 0, X, X[0] + 0.1), sample_weight=w)
    without = model(6, random_state=0).fit(X[w > 0], sample_weight=w[w > 0])
    assert cost(with_zeros) == pytest.approx(cost(without), rel=5e-3)


@pytest.mark.parametrize("word", ["fast", "global"])
def test_earlier_words_mean_a_thorough_search(word):
    found = [SphericalKMeans(9, search=each, random_state=0).fit(X) for each in (word, "thorough")]
    assert found[0].cluster_centers_.tobytes() == found[1].cluster_centers_.tobytes()


@pytest.mark.parametrize(
    "options",
    [{"init": X[:9]}, {"init": "forgy"}, {"n_init": 2}, {"init": lambda X, k, random_state: X[:k]}],
    ids=["array", "forgy", "n_init", "callable"],
)
@ALL
def test_options_of_initialisations_turn_the_default_search_off(model, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searched, plain = (model(9, random_state=0, search=kind, **options).fit(X) for kind in ("auto", "none"))
    assert searched.cluster_centers_.tobytes() == plain.cluster_centers_.tobytes()


def test_other_rows_are_fitted_without_it(monkeypatch):
    def forbidden(*_):
        raise AssertionError("a search")

    monkeypatch.setattr(center_search, "_search", forbidden)
    missing = X.copy()
    missing[0, 0] = np.nan
    KMeans(4, missing="ignore").fit(missing)
    KMeans(4, frozen_centers=X[:2]).fit(X)
    KMeans(4, algorithm="exact").fit(X[:12])
    KMeans(4).fit(X[:, :1])  # exact
    KMeans(300).fit(np.tile(X, (3, 4)))
    FuzzyCMeans(4, fuzzifier=9.0).fit(X)
    KMeans(4).fit(sparse.random_array((60, 40_000), density=0.01, random_state=0, format="csr"))
    with pytest.raises(AssertionError, match="a search"):
        KMeans(4).fit(X)


def test_small_sparse_rows_are_searched_like_dense_ones():
    dense, stored = (SphericalKMeans(6, random_state=0).fit(form(X)) for form in (np.asarray, sparse.csr_array))
    np.testing.assert_array_equal(dense.labels_, stored.labels_)


def test_the_thorough_search_is_longer_in_every_respect():
    auto, thorough = center_search.EFFORTS["auto"], center_search.EFFORTS["thorough"]
    for name in ("starts", "moves", "patience", "jumps", "runs", "work", "pass_work"):
        assert getattr(thorough, name) > getattr(auto, name)


def test_a_large_table_is_searched_by_a_sample():
    effort = center_search.EFFORTS["auto"]
    n, d, k = 10**6, 5, 7
    count = center_search.n_searched(effort, (n, d), k)
    assert center_search.SAMPLE * k <= count < n / 10
    assert center_search.n_searched(effort, (1000, d), k) == 1000
    assert center_search.n_searched(effort, (n, d), 10**4) == 0
    large = np.tile(X, (300, 1)) + 1e-3 * np.random.default_rng(0).normal(size=(120_000, 3))
    searched, plain = (KMedians(9, random_state=0, search=kind).fit(large) for kind in ("auto", "none"))
    assert searched.objective_ <= 1.001 * plain.objective_


def test_a_sample_that_misses_a_small_cluster_does_not_lose_it():
    large = np.concatenate([np.tile(X, (300, 1)), np.full((3, 3), 1e4)])
    found = KMeans(9, random_state=0).fit(large)
    assert np.bincount(found.labels_).min() == 3


@ALL
def test_a_callback_sees_the_search_and_all_iterations_and_changes_nothing(model):
    seen = []
    told = model(9, random_state=0, callback=seen.append).fit(X)
    plain = model(9, random_state=0).fit(X)
    assert told.cluster_centers_.tobytes() == plain.cluster_centers_.tobytes()
    steps = [progress for progress in seen if progress.run == 1]
    assert [progress.iteration for progress in steps] == list(range(told.n_iter_ + 1))
    assert [progress.objective for progress in steps] == told.history_.tolist()
    searched = [progress.objective for progress in seen if progress.run == 0]
    assert searched == sorted(searched, reverse=True)
    assert told.history_[-1] <= searched[-1] * (1 + 1e-6)


@ALL
def test_an_interrupt_keeps_the_best_so_far(model):
    def interrupt(progress):
        if progress.run == 0:
            raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning, match="the best result so far is kept"):
        found = model(9, random_state=0, callback=interrupt).fit(X)
    assert np.array_equal(found.labels_, found.predict(X))


@ALL
def test_a_trace_has_the_iterations_of_the_fit(model):
    trace = model(9, random_state=0).fit_trace(X)
    plain = model(9, random_state=0).fit(X)
    assert trace.model.cluster_centers_.tobytes() == plain.cluster_centers_.tobytes()
    assert max(step.iteration for step in trace.steps) == plain.n_iter_
    assert trace.steps[0].objective == pytest.approx(plain.history_[0], rel=1e-6)


def test_a_budget_belongs_to_a_thorough_search():
    with pytest.raises(ParameterError, match="search_budget=3 has no effect with search='auto': set search='thorough'"):
        KMeans(3, search_budget=3).fit(X)


@ALL
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_the_unit_of_the_columns_changes_nothing(model, size):
    ours, theirs = model(7, random_state=0).fit(X), model(7, random_state=0).fit(X * size)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)


def test_the_default_search_continues_its_path_with_rows_of_weight_zero():
    plain = KMeans(4, random_state=0).fit(X)
    weighted = KMeans(4, random_state=0).fit(np.r_[X, [[90.0] * X.shape[1]]], sample_weight=np.r_[np.ones(len(X)), 0.0])
    np.testing.assert_allclose(weighted.history_, plain.history_, rtol=1e-9)
