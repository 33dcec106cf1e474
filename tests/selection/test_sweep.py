"""One estimator for many numbers of clusters: more clusters never fit worse, and what is shared changes nothing."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from coterie import (
    AgglomerativeClustering,
    BisectingKMeans,
    FuzzyCMeans,
    GaussianMixture,
    KernelKMeans,
    KMeans,
    KMedians,
    KMedoids,
    MiniBatchKMeans,
    SphericalKMeans,
    choose_k,
)
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import cut
from coterie.medoids import fasterpam
from coterie.metrics import inertia
from coterie.mixture.warm_start import fit_with_copies
from coterie.selection import Progress, estimator_sweeps, gap_statistic, mixture_table, stability, sweep, tendency
from coterie.selection.kmeans_path import AbandonHopeless, merge_centers
from many_parts import many_parts, many_strips, weights_of_many_digits

rng = np.random.default_rng(0)
BLOBS = rng.normal(size=(60, 3)) + 5 * rng.integers(0, 3, size=(60, 1)) + 1
GRID = np.array(list(itertools.product(range(1, 5), range(1, 5))), float)
MANY = np.random.default_rng(1).normal(size=(6000, 6)) + 4


def poor(X, k, random_state):
    """A start that is good for odd K; for others all centers are at one end of the rows."""
    order = np.argsort(X[:, 0], kind="stable")
    return X[order[:: len(X) // k][:k]] if k % 2 else X[order[:k]]


ESTIMATORS = [
    pytest.param(KMeans(random_state=0), id="kmeans"),
    pytest.param(KMeans(init="forgy", random_state=0), id="kmeans-forgy"),
    pytest.param(KMeans(init="random_partition", n_init=2, random_state=0), id="kmeans-random-partition"),
    pytest.param(KMeans(init="farthest"), id="kmeans-farthest"),
    pytest.param(KMeans(init=poor, n_init=1, max_iter=1), id="kmeans-poor-starts"),
    pytest.param(KMeans(frozen_centers=BLOBS[:1, :2], random_state=0), id="kmeans-frozen"),
    pytest.param(KMeans(metric_weights=[4.0, 1.0], random_state=0), id="kmeans-metric-weights"),
    pytest.param(KMedians(random_state=0), id="medians"),
    pytest.param(KMedians(metric="l2", random_state=0), id="geometric-medians"),
    pytest.param(SphericalKMeans(random_state=0), id="spherical"),
    pytest.param(FuzzyCMeans(random_state=0), id="fuzzy"),
    pytest.param(FuzzyCMeans(fuzzifier=1.2, random_state=0), id="fuzzy-almost-hard"),
    pytest.param(MiniBatchKMeans(batch_size=8, random_state=0), id="batches"),
    pytest.param(BisectingKMeans(random_state=0), id="bisecting"),
    pytest.param(KMedoids(random_state=0), id="medoids"),
    pytest.param(KMedoids(metric="manhattan", init="random", random_state=0), id="medoids-manhattan"),
    pytest.param(AgglomerativeClustering(), id="ward"),
    pytest.param(AgglomerativeClustering(linkage="centroid"), id="centroid"),
    pytest.param(GaussianMixture(init_params="kmeans", random_state=0), id="mixture"),
    pytest.param(GaussianMixture(init_params="kmeans", max_iter=1, random_state=0), id="mixture-one-step"),
    pytest.param(GaussianMixture(covariance_type="EEE", init_params="random", random_state=0), id="mixture-tied"),
    pytest.param(GaussianMixture(covariance_type="VEI", init_params="random", random_state=0), id="mixture-VEI"),
]
DATA = [
    pytest.param(BLOBS[:, :2], None, [5, 1, 2, 3, 9, 2], id="unsorted"),
    pytest.param(np.repeat(BLOBS[:9, :2], 5, axis=0), None, [1, 2, 5, 8, 9], id="duplicates"),
    pytest.param(BLOBS[:, :2], np.random.default_rng(2).integers(0, 2, 60) * 1.5, [1, 3, 4, 9, 15], id="weights-of-0"),
    pytest.param(BLOBS[:12, :2], None, range(1, 13), id="every-row-a-cluster"),
    pytest.param(BLOBS[:, :2].astype(np.float32) + np.float32(1000), None, range(1, 8), id="float32-far-away"),
]


def of_centers(estimator):
    return isinstance(estimator, KMeans | KMedians | SphericalKMeans | FuzzyCMeans | MiniBatchKMeans)


def quietly(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return sweep(*args, **options)


def rises(found):
    return np.diff(found.objectives).max(initial=0) / max(np.abs(found.objectives).max(), 1e-300)


@pytest.mark.parametrize("X, w, ks", DATA)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_more_clusters_never_fit_worse(estimator, X, w, ks):
    found = quietly(estimator, X, ks, sample_weight=w)
    assert rises(found) <= 1e-12
    assert found.ks.tolist() == sorted(set(ks))


def test_one_step_from_a_poor_start_is_no_worse():
    estimator = KMeans(init=poor, n_init=1, max_iter=1)
    alone = [quietly(estimator, BLOBS, [k]).objectives[0] for k in (7, 8)]
    assert alone[0] < alone[1]
    assert rises(quietly(estimator, BLOBS, [1, 7, 8])) <= 0


@pytest.mark.parametrize("structure", ["VVV", "EEE", "VVI", "EEI", "VII", "EII", "VEV", "EVE", "VEI", "EVV"])
def test_a_copy_of_a_component_is_as_likely(structure):
    """And the penalty of covariances, here a large one, is no higher: a fit from it starts no worse, and ends so."""
    wide = np.random.default_rng(9)
    X = wide.normal(size=(60, 2)) * np.repeat([0.2, 1, 4], 20)[:, None] + np.repeat([0, 20, 60], 20)[:, None]
    estimator = GaussianMixture(covariance_type=structure, init_params="kmeans", reg_covar=0.05, random_state=0)
    fewer = clone(estimator).set_params(n_components=3).fit(X)
    more = fit_with_copies(estimator, fewer, 5, 0.0, X, None)
    assert more.means_.shape == (5, 2)
    start = -(more.history_.lower_bound[0] + more.history_.log_prior[0])
    before = estimator_sweeps.objective_of(fewer) * (1 + 1e-12)
    assert start <= before
    assert estimator_sweeps.objective_of(more) <= before
    assert more.get_params()["warm_start"] is False


def test_medoids_never_fit_worse_wherever_they_start(monkeypatch):
    """Without swaps a start is the answer, and more random medoids may well be worse."""

    def stay(table, state, *_):
        return fasterpam.SwapResult(state.medoids, state.loss, (state.loss,), True)

    monkeypatch.setattr(fasterpam, "descend", stay)
    for seed in range(5):
        assert rises(sweep(KMedoids(init="random", n_init=1, random_state=seed), BLOBS, range(2, 9))) <= 0


@pytest.mark.parametrize("estimator", [case for case in ESTIMATORS if of_centers(case.values[0])])
def test_nor_do_they_on_ties_and_for_compiled_kernels(estimator):
    if isinstance(estimator, SphericalKMeans):
        assert rises(quietly(estimator, GRID, range(1, 9))) <= 1e-12
    else:
        assert rises(quietly(estimator, GRID, [1, 2, 3, 4, 5, 8, 9, 15, 16])) <= 1e-12
    if estimator.get_params().get("metric_weights") is None and estimator.get_params().get("frozen_centers") is None:
        assert rises(quietly(estimator, MANY, [1, 2, 5, 12])) <= 1e-12


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_models_are_fits_of_the_estimator(estimator):
    X = BLOBS[:, :2]
    before = estimator.get_params()
    found = quietly(estimator, pd.DataFrame(X, columns=["a", "b"]), [1, 2, 4])
    number = "n_components" if isinstance(estimator, GaussianMixture) else "n_clusters"
    for k, model, labels in zip(found.ks, found.models, found.labels, strict=True):
        options = model.get_params()
        assert options.pop(number) == k
        assert repr(options) == repr({name: value for name, value in before.items() if name != number})
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert model.labels_ is labels
        if not isinstance(model, AgglomerativeClustering):
            np.testing.assert_array_equal(model.predict(pd.DataFrame(X, columns=["a", "b"])), labels)
    assert found.model(2) is found.models[1]
    assert repr(estimator.get_params()) == repr(before)


@pytest.mark.parametrize("estimator", [case for case in ESTIMATORS if of_centers(case.values[0])])
def test_objectives_are_those_of_the_centers(estimator):
    """By `score`, which knows nothing of the sweep; what a float32 copy rounds does not matter here."""
    w = np.random.default_rng(3).integers(1, 4, 60).astype(float)
    found = quietly(estimator, BLOBS[:, :2], [1, 3, 6], sample_weight=w)
    scores = [-model.score(BLOBS[:, :2], sample_weight=w) for model in found.models]
    np.testing.assert_allclose(found.objectives, scores, rtol=1e-9)


def test_one_cluster_is_the_mean():
    w = np.random.default_rng(3).exponential(size=60)
    found = sweep(KMeans(random_state=0), BLOBS, [1], sample_weight=w)
    np.testing.assert_allclose(found.models[0].cluster_centers_[0], np.average(BLOBS, axis=0, weights=w), rtol=1e-12)


def test_weight_two_is_the_row_twice():
    """Of optima that chance does not decide: a search finds them, a tree has no chance."""
    w = np.random.default_rng(4).integers(1, 3, 60)
    X = BLOBS[:, :2] @ [[1.0, 0.3], [0.2, 1.1]]
    twice = np.repeat(X, w, axis=0)
    for estimator in (KMeans(search="fast", random_state=0), AgglomerativeClustering()):
        a, b = sweep(estimator, X, range(1, 5), sample_weight=w), sweep(estimator, twice, range(1, 5))
        np.testing.assert_allclose(a.objectives, b.objectives, rtol=1e-9)


def test_the_tree_of_ward_is_cut_as_cut_does():
    found = sweep(AgglomerativeClustering(), BLOBS, [2, 5, 11])
    for k, model, value in zip(found.ks, found.models, found.objectives, strict=True):
        np.testing.assert_array_equal(model.labels_, cut(found.models[0].linkage_matrix_, n_clusters=int(k)))
        assert value == pytest.approx(inertia(BLOBS, model.labels_), rel=1e-9)
        alone = AgglomerativeClustering(int(k)).fit(BLOBS)
        np.testing.assert_array_equal(model.predict(BLOBS[:9]), alone.predict(BLOBS[:9]))


def test_the_tree_of_cuts_is_that_of_each_fit_alone():
    found = sweep(BisectingKMeans(random_state=3), BLOBS, [1, 2, 4, 7])
    for k, model in zip(found.ks, found.models, strict=True):
        alone = BisectingKMeans(int(k), random_state=3).fit(BLOBS)
        np.testing.assert_array_equal(model.labels_, alone.labels_)
        np.testing.assert_array_equal(model.cluster_centers_, alone.cluster_centers_)
        np.testing.assert_array_equal(model.tree_.children, alone.tree_.children)
        assert model.inertia_ == alone.inertia_


@pytest.mark.parametrize("estimator", [KMeans(random_state=0), FuzzyCMeans(random_state=0), KMedoids(random_state=0)])
def test_threads_change_nothing(estimator, monkeypatch):
    X = MANY[:900] if isinstance(estimator, KMedoids) else MANY
    many_parts(monkeypatch, X)
    many_strips(monkeypatch, 1 << 14)
    w = weights_of_many_digits(X)
    one, more = (quietly(clone(estimator).set_params(n_jobs=jobs), X, [1, 3, 6], sample_weight=w) for jobs in (1, 3))
    np.testing.assert_array_equal(one.objectives, more.objectives)
    for a, b in zip(one.models, more.models, strict=True):
        np.testing.assert_array_equal(a.labels_, b.labels_)
        np.testing.assert_array_equal(a.cluster_centers_, b.cluster_centers_)


def test_no_worse_than_ten_starts_for_each_k():
    """On average, over clusters that are hard to find; by far less work."""
    hard = np.random.default_rng(5)
    X = hard.normal(size=(800, 2)) * 0.1 + hard.uniform(0, 4, size=(16, 2))[hard.integers(0, 16, 800)]
    ks = range(2, 20, 3)
    found = np.mean([sweep(KMeans(random_state=s), X, ks).objectives for s in range(3)], axis=0)
    alone = np.mean([[KMeans(k, n_init=10, random_state=s).fit(X).inertia_ for k in ks] for s in range(3)], axis=0)
    assert np.log(found / alone).mean() <= 0


def test_the_optimum_of_one_column_stays_the_optimum():
    X = np.random.default_rng(6).exponential(size=(200, 1))
    found = sweep(KMeans(random_state=0), X, range(1, 8))
    alone = [KMeans(k, random_state=0).fit(X).inertia_ for k in range(1, 8)]
    assert found.objectives.tolist() == alone


def test_sparse_rows_and_rows_with_holes():
    counts = sparse.random_array((300, 20), density=0.2, rng=np.random.default_rng(7), format="csr")
    holes = np.where(np.random.default_rng(8).random(BLOBS.shape) < 0.2, np.nan, BLOBS)
    holes = holes[~np.isnan(holes).all(axis=1)]
    assert rises(sweep(KMeans(random_state=0), counts, [1, 2, 4, 9])) <= 1e-12
    assert rises(sweep(KMeans(missing="ignore", random_state=0), holes, [1, 2, 4, 9])) <= 1e-12


def test_other_estimators_are_fitted_one_by_one():
    found = sweep(KernelKMeans(random_state=0), BLOBS, [2, 3])
    assert [model.inertia_ for model in found.models] == found.objectives.tolist()


def test_single_floats_stay_single():
    found = sweep(KMeans(random_state=0), BLOBS.astype(np.float32), [2, 3])
    assert {model.cluster_centers_.dtype for model in found.models} == {np.dtype(np.float32)}


@pytest.mark.parametrize("stop", [1, 2, 4])
@pytest.mark.parametrize("estimator", [KMeans(random_state=0), KMedoids(random_state=0)])
def test_a_sweep_that_is_stopped_keeps_what_there_is(estimator, stop):
    told = []

    def progress(step: Progress):
        told.append(step)
        return step.done == stop

    found = sweep(estimator, BLOBS, [2, 3, 4], callback=progress)
    whole = sweep(estimator, BLOBS, [2, 3, 4])
    assert [step.done for step in told] == list(range(1, len(told) + 1))
    assert len(told) == stop or (isinstance(estimator, KMedoids) and stop > 3)
    assert found.ks.tolist() == [2, 3, 4][: {1: 1, 2: 2, 4: 3 if isinstance(estimator, KMedoids) else 1}[stop]]
    assert told[0].total == (3 if isinstance(estimator, KMedoids) else 6)
    assert found.objectives[0] >= whole.objectives[0]


def test_the_table_prints():
    text = str(sweep(KMeans(random_state=0), BLOBS, [1, 2]))
    assert text.split()[:3] == ["k", "objective", "left"]
    assert len(text.splitlines()) == 3


@pytest.mark.parametrize(
    "estimator, ks, X, error, message",
    [
        (KMeans(), [], BLOBS, ParameterError, "ks must be whole numbers of at least 1.*got an empty list"),
        (KMeans(), [0, 1], BLOBS, ParameterError, "got 0"),
        (KMeans(), [2.5], BLOBS, ParameterError, "got 2.5"),
        (KMeans(), ["3"], BLOBS, ParameterError, "got '3'"),
        (KMeans(), [True], BLOBS, ParameterError, "got True"),
        ("KMeans", [2], BLOBS, ParameterError, "got str as estimator: write sweep"),
        (KMeans(init=BLOBS[:2]), [2], BLOBS, ParameterError, "init must be the name of a method or a callable"),
        (KMeans(), [2, 61], BLOBS, InputError, "n_samples=60 rows"),
        (KMeans(), [2, 5], np.repeat(BLOBS[:3], 9, axis=0), InputError, "X has 3 distinct rows"),
        (
            KMeans(init="forgy", random_state=0),
            [2, 5],
            np.repeat(BLOBS[:3], 9, axis=0),
            InputError,
            "use ks <= 3",
        ),
        (
            KMeans(init="random_partition", random_state=0),
            [2, 5],
            np.repeat(BLOBS[:3], 9, axis=0),
            InputError,
            "use ks <= 3",
        ),
        (BisectingKMeans(), [2, 5], np.repeat(BLOBS[:3], 9, axis=0), InputError, "X has 3 distinct rows"),
        (AgglomerativeClustering(), [61], BLOBS, InputError, "n_samples=60 rows, fewer than n_clusters=61"),
        (KMedoids(objective="silhouette"), [2], BLOBS, ParameterError, "does not fall with more clusters"),
        (KMeans(), [2], np.full((5, 2), np.nan), InputError, "NaN"),
    ],
)
def test_invalid_input_raises_an_error(estimator, ks, X, error, message):
    with pytest.raises(error, match=message):
        quietly(estimator, X, ks)


def as_lists(X):
    return X.tolist()


@pytest.mark.parametrize("given", [np.asarray, pd.DataFrame, as_lists])
@pytest.mark.parametrize(
    "call",
    [
        lambda X: sweep(KMeans(), range(2, 4), X),
        lambda X: stability(KMeans(), range(2, 4), X),
        lambda X: gap_statistic(range(2, 4), X),
        lambda X: tendency(range(2, 4), X),
        lambda X: mixture_table(range(2, 4), X),
        lambda X: choose_k(range(2, 4), X, random_state=0),
    ],
    ids=["sweep", "stability", "gap_statistic", "tendency", "mixture_table", "choose_k"],
)
def test_rows_in_the_place_of_ks_raise_an_error(call, given):
    with pytest.raises(ParameterError, match=r" as ks: write \w+\((estimator, )?X, ks"):
        call(given(BLOBS))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda X, model: sweep(X, model, [2]), ParameterError, r"KMeans as X: write sweep\(estimator, X, ks"),
        (lambda X, model: sweep(X, X, [2]), ParameterError, r"ndarray as estimator: write sweep\(estimator, X, ks"),
        (lambda X, model: sweep(model, [2], "a.csv"), ParameterError, "str as ks: write sweep"),
        (lambda X, model: sweep(model, X, [2], np.ones(60)), TypeError, "4 positional arguments: write sweep"),
        (lambda X, model: choose_k(model, X), ParameterError, r"KMeans as X: write choose_k\(X, ks"),
        (lambda X, model: choose_k(X, model), ParameterError, r"KMeans as ks: write choose_k\(X, ks"),
        (lambda X, model: choose_k(X, [2], ["gap"]), TypeError, "3 positional arguments: write choose_k.*criteria="),
    ],
)
def test_another_order_of_arguments_raises_an_error_that_shows_the_order(call, error, message):
    with pytest.raises(error, match=message):
        call(BLOBS, KMeans(2, random_state=0).fit(BLOBS))


def test_a_table_with_a_column_named_fit_is_no_estimator():
    frame = pd.DataFrame(BLOBS[:, :2], columns=["fit", "b"])
    assert sweep(KMeans(random_state=0), frame, [2]).ks.tolist() == [2]


def test_progress_must_be_a_function():
    with pytest.raises(ParameterError, match="callback must be None or a function"):
        sweep(KMeans(), BLOBS, [2], callback=3)


def test_a_k_that_was_not_fitted_raises_an_error():
    with pytest.raises(ParameterError, match=r"k=5 was not fitted: use one of \[2, 3\]"):
        sweep(KMeans(random_state=0), BLOBS, [2, 3]).model(5)


def test_merging_takes_the_cheapest_pair():
    """Against all pairs, by the sum of squares that each union adds."""
    centers, w = rng.normal(size=(6, 2)), rng.exponential(size=6)
    added = {
        (i, j): w[i] * w[j] / (w[i] + w[j]) * ((centers[i] - centers[j]) ** 2).sum()
        for i, j in itertools.combinations(range(6), 2)
    }
    i, j = min(added, key=added.get)
    found = merge_centers(centers, w, 5)
    assert found.shape == (5, 2)
    np.testing.assert_allclose(found[i], np.average(centers[[i, j]], axis=0, weights=w[[i, j]]))
    assert len(merge_centers(centers, w, 3)) == 3
    np.testing.assert_array_equal(merge_centers(centers, w, 4, n_frozen=3)[:3], centers[:3])


def test_a_descent_is_abandoned_once_it_cannot_catch_up():
    watch, patient = (AbandonHopeless(10.0, patience=2.0, after=after) for after in (0, 3))
    steps = [Progress("iteration", i, objective=value) for i, value in enumerate((100.0, 60.0, 40.0, 34.0))]
    assert [watch(step) for step in steps] == [False, False, False, True]  # 40 - 2 * 20 <= 10, yet 34 - 2 * 6 > 10
    assert not any(patient(step) for step in steps)
