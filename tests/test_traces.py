"""The way of a fit: it is that of `fit`, and what must hold between its half steps."""

import json
import pickle
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import zoo
from coterie import (
    BayesianGaussianMixture,
    FuzzyCMeans,
    GaussianMixture,
    KMeans,
    KMedians,
    MiniBatchKMeans,
    Mixture,
    SphericalKMeans,
    TimeSeriesKMeans,
)
from coterie.core import loop
from coterie.core.errors import ParameterError
from coterie.data import as_source
from coterie.datasets import make_blobs
from coterie.families import Poisson, Product
from coterie.traces import recorder as recording

X = make_blobs(600, 3, centers=4, cluster_std=2.5, random_state=0)[0]
W = np.random.default_rng(1).exponential(size=600)
HOLES = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
HOLES = HOLES[~np.isnan(HOLES).all(axis=1)]
COUNTS = np.random.default_rng(3).poisson(np.repeat([[1.0, 8.0], [9.0, 2.0], [4.0, 4.0]], 200, axis=0)).astype(float)
HINTS = np.where(np.arange(600) % 10 == 0, np.random.default_rng(4).integers(0, 4, 600), -1)
RANDOM = {"init": "forgy", "n_init": 3, "random_state": 0}

CENTERS = {
    "kmeans": (KMeans(4, **RANDOM), X),
    "kmeans of float32": (KMeans(4, **RANDOM), X.astype(np.float32)),
    "kmeans with holes": (KMeans(4, missing="ignore", **RANDOM), HOLES),
    "kmeans of weighted columns": (KMeans(4, metric_weights=[1, 4, 0], **RANDOM), X),
    "kmeans with a frozen center": (KMeans(4, frozen_centers=X[:1], **RANDOM), X),
    "kmeans of sparse rows": (KMeans(4, **RANDOM), sparse.csr_array(np.where(np.abs(X) > 3, X, 0.0))),
    "kmeans after a search": (KMeans(4, search="fast", random_state=0), X),
    "kmeans to the optimum": (KMeans(3, random_state=0), X[:, :1].copy()),
    "spherical": (SphericalKMeans(4, **RANDOM), X),
    "medians": (KMedians(4, **RANDOM), X),
    "geometric medians": (KMedians(4, metric="l2", **RANDOM), X),
    "fuzzy": (FuzzyCMeans(4, **RANDOM), X),
    "series": (TimeSeriesKMeans(4, n_init=2, random_state=0), zoo.WAVES),
    "series of all lengths": (TimeSeriesKMeans(4, n_init=2, random_state=0), zoo.RAGGED),
}
SOFT = {
    "gaussians": (GaussianMixture(4, init_params="random", random_state=0), X),
    "gaussians of float32": (GaussianMixture(4, init_params="random_from_data", random_state=0), X.astype(np.float32)),
    "the best of three": (GaussianMixture(4, init_params="random_from_data", n_init=3, random_state=0), X),
    "gaussians of a form": (GaussianMixture(4, covariance_type="VEI", init_params="random", random_state=0), X),
    "tied gaussians": (GaussianMixture(4, covariance_type="tied", init_params="random", random_state=0), X),
    "gaussians without a penalty": (GaussianMixture(3, reg_covar=0, init_params="random", random_state=0), X),
    "gaussians with a prior": (GaussianMixture(4, prior="default", init_params="random", random_state=0), X),
    "gaussians with holes": (GaussianMixture(3, missing="ignore", init_params="random", random_state=0), HOLES),
    "gaussians of a mixture": (Mixture("gaussian", 4, init_params="random_from_data", random_state=0), X),
    "tails": (Mixture("student_t", 3, random_state=0, max_iter=40), X),
    "poisson": (Mixture("poisson", 3, random_state=0), COUNTS),
    "poisson with a concentration": (Mixture("poisson", 3, concentration=2.0, random_state=0), COUNTS),
    "product": (Mixture(Product([(Poisson(), [0]), ("gaussian", [1])]), 3, random_state=0), COUNTS),
}
BELIEFS = {
    "beliefs": (BayesianGaussianMixture(6, random_state=0), X),
    "process": (Mixture("gaussian", "auto", random_state=0), X),
    "process of counts": (Mixture("poisson", "auto", random_state=0), COUNTS),
}
OTHERS = {
    "hard": (GaussianMixture(4, e_step="hard", init_params="random", random_state=0), X),
    "stochastic": (GaussianMixture(4, e_step="stochastic", max_iter=15, init_params="random", random_state=0), X),
    "hard poisson": (Mixture("poisson", 3, e_step="hard", random_state=0), COUNTS),
    "accelerated": (GaussianMixture(4, accelerate=True, init_params="random_from_data", random_state=0), X),
    "batches": (MiniBatchKMeans(4, batch_size=64, random_state=0), X),
}
ALL = CENTERS | SOFT | BELIEFS | OTHERS
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
pytestmark = quiet


def over(table):
    return pytest.mark.parametrize("name", table)


def weights_of(rows, weighted):
    return W[: rows.shape[0]] if weighted else None


@cache
def traced(name, weighted=False):
    estimator, rows = ALL[name]
    return anew(estimator).fit_trace(rows, weights_of(rows, weighted))


def anew(estimator):
    return type(estimator)(**estimator.get_params(deep=False))


weights = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])


# the fit


@weights
@over(ALL)
def test_it_is_fitted_as_fit_does_to_the_last_bit(name, weighted):
    found = traced(name, weighted).model
    estimator, rows = ALL[name]
    plain = anew(estimator).fit(rows, sample_weight=weights_of(rows, weighted))
    assert set(vars(found)) == set(vars(plain))
    for attribute in ("labels_", "cluster_centers_", "means_", "covariances_", "weights_", "inertia_", "objective_"):
        mine, others = (getattr(model, attribute, None) for model in (found, plain))
        for one, other in zip(mine, others, strict=True) if isinstance(mine, list) else [(mine, others)]:
            np.testing.assert_array_equal(one, other)
    one, other = (getattr(model.history_, "lower_bound", model.history_) for model in (found, plain))
    np.testing.assert_array_equal(one, other)


@over(ALL)
def test_it_ends_where_the_fit_does(name):
    trace = traced(name)
    last, model = trace.steps[-1], trace.model
    assert trace.n == ALL[name][1].shape[0]
    np.testing.assert_array_equal(last.labels, model.labels_)
    if isinstance(getattr(model, "cluster_centers_", None), np.ndarray):
        seen = (
            np.flatnonzero(getattr(model, "_roots", None))
            if getattr(model, "_roots", None) is not None
            else slice(None)
        )
        np.testing.assert_allclose(last.centers, model.cluster_centers_[:, seen], rtol=1e-6)
    if hasattr(model, "means_"):
        np.testing.assert_allclose(last.centers, model.means_, rtol=1e-5)
    if not isinstance(model, MiniBatchKMeans):
        assert (
            last.iteration == len(np.unique(getattr(model.history_, "iteration", np.arange(len(model.history_))))) - 1
        )


def test_a_fit_that_is_not_watched_has_its_callback_alone():
    def callback(progress):
        return None

    assert KMeans()._watched(callback, None, None, None) is callback


def test_nothing_is_left_of_a_fit_that_fails():
    model = KMeans(3)
    with pytest.raises(ValueError, match="cannot make"):
        model.fit_trace(X[:2])
    assert not hasattr(model, "_recorder")


def test_a_callback_is_told_as_ever_and_may_stop_it():
    seen = []

    def callback(progress):
        seen.append(progress.iteration)
        return progress.iteration == 2

    trace = KMeans(4, init="forgy", n_init=1, random_state=0, callback=callback).fit_trace(X)
    assert seen == [0, 1, 2]
    assert trace.steps[-1].iteration == 2


def test_threads_do_not_change_it():
    many = np.tile(X, (-(-120_000 // len(X)), 1))
    assert len(as_source(many).parts()) > 2
    one, other = (KMeans(4, n_jobs=jobs, **RANDOM).fit_trace(many).to_dict() for jobs in (1, 3))
    assert one == other


# laws of the half steps


def much(trace):
    return (1e-11 if trace.rows.dtype == np.float64 else 3e-6) * np.abs(trace.objectives).max()


@weights
@over(CENTERS)
def test_every_half_step_lowers_the_objective_of_centers(name, weighted):
    trace = traced(name, weighted)
    assert [step.kind for step in trace.steps] == [
        "start",
        *["assign", "update"] * (len(trace.steps) // 2 - 1),
        "assign",
    ]
    assert np.all(np.diff(trace.objectives) <= much(trace))
    assigned = [step.objective for step in trace.steps if step.kind == "assign"]
    np.testing.assert_array_equal(assigned[-len(trace.model.history_) :], trace.model.history_)


@weights
@over(SOFT)
def test_the_bound_touches_after_e_and_lies_between_after_m(name, weighted):
    trace = traced(name, weighted)
    assert [step.kind for step in trace.steps] == ["start", *["E", "M"] * (len(trace.steps) // 2 - 1), "E"]
    room = much(trace)
    for before, step in pairwise(trace.steps[1:]):
        if step.kind == "E":
            assert step.bound == pytest.approx(step.objective, abs=room)
        else:
            assert before.objective - room <= step.bound <= step.objective + room, step.iteration


@weights
@over(SOFT)
def test_the_bound_of_all_rows_is_that_of_the_statistics(name, weighted):
    """Two ways to one number: the rows, chunk by chunk, and what the E-step added up of them."""
    trace = traced(name, weighted)
    history, steps = trace.model.history_, trace.steps[1:]
    np.testing.assert_array_equal([step.kind for step in steps], history.step)
    penalised = history.log_likelihood + history.log_prior
    np.testing.assert_allclose([step.objective for step in steps], penalised, rtol=1e-9)
    jensen = history.lower_bound + history.log_prior
    if name in ("tails", "gaussians with holes"):  # more is hidden there than the component, and its bound is lower
        assert np.all(trace.bounds[1:] >= jensen - 100 * much(trace))
        jensen[history.step == "M"] = trace.bounds[1:][history.step == "M"]
    np.testing.assert_allclose(trace.bounds[1:], jensen, rtol=0, atol=100 * much(trace))


@over(BELIEFS)
def test_every_half_step_raises_the_evidence(name):
    trace = traced(name)
    assert trace.objective == "lower bound of the log evidence"
    assert np.isnan(trace.bounds).all()
    assert np.all(np.diff(trace.objectives) >= -much(trace))
    assert trace.objectives[-1] == pytest.approx(trace.model.lower_bound_, rel=1e-12)


@weights
@pytest.mark.parametrize("name", ["hard", "hard poisson", "stochastic"])
def test_bounds_of_e_steps_that_choose_are_below_and_m_steps_raise_them(name, weighted):
    """What touches is the likelihood of the divided rows; a hard E-step never lowers it, a drawn one may."""
    trace = traced(name, weighted)
    room = much(trace)
    assert np.all(trace.bounds[1:] <= trace.objectives[1:] + room)
    rises = np.diff(trace.bounds[1:])
    assert np.all(rises[0::2] >= -room)  # M
    if name != "stochastic":
        assert np.all(rises[1::2] >= -room)  # E
        assert trace.bounds[1] < trace.objectives[1]


def test_leaps_keep_the_bound_below_and_never_lower_the_likelihood():
    trace = traced("accelerated")
    assert np.all(trace.bounds[1:] <= trace.objectives[1:] + much(trace))
    assert np.all(np.diff(trace.objectives) >= -much(trace))


def test_rows_whose_component_is_known_keep_it():
    trace = GaussianMixture(4, init_params="random_from_data", random_state=0).fit_trace(X, W, y=HINTS)
    room = much(trace)
    for before, step in pairwise(trace.steps[1:]):
        low = before.objective if step.kind == "M" else step.objective
        assert low - room <= step.bound <= step.objective + room


def squares(rows, centers):
    return ((rows[:, None] - centers) ** 2).sum(axis=2)


NAIVE = {
    "kmeans": squares,
    "spherical": lambda rows, centers: 1.0 - rows @ centers.T,
    "medians": lambda rows, centers: np.abs(rows[:, None] - centers).sum(axis=2),
    "geometric medians": lambda rows, centers: np.sqrt(squares(rows, centers)),
    "fuzzy": squares,
}


@weights
@over(NAIVE)
def test_the_objective_is_that_of_the_labels_and_centers_of_the_step(name, weighted):
    """By its definition, of all rows: also between the halves, where labels are those of the centers before."""
    trace = traced(name, weighted)
    w = W if weighted else np.ones(600)
    for step in trace.steps[1:]:
        cost = NAIVE[name](trace.rows, step.centers)
        share = trace.shares(step) ** 2 if name == "fuzzy" else np.eye(4)[step.labels]
        assert step.objective == pytest.approx(w @ (share * cost).sum(axis=1), rel=1e-9)


# what a step says


@over(CENTERS | SOFT)
def test_rows_that_changed_are_those_whose_label_did(name):
    """All rows are shown here, so that their labels say it."""
    trace = traced(name)
    divided = [step for step in trace.steps if step.kind in ("assign", "E")]
    assert divided[0].changed is None
    for before, step in pairwise(divided):
        assert step.changed == np.count_nonzero(step.labels != before.labels)


@over(CENTERS)
def test_sizes_are_weights_of_rows(name):
    trace = traced(name, True)
    for step in trace.steps[1:]:
        np.testing.assert_allclose(step.sizes, np.bincount(step.labels, W[: trace.n], 4)[: len(step.sizes)], rtol=1e-12)


def test_sizes_of_components_are_sums_of_responsibilities():
    trace = traced("poisson", True)
    for step in trace.steps[1:]:
        if step.kind == "E":
            np.testing.assert_allclose(step.sizes, W @ trace.shares(step), rtol=1e-10)


def test_shares_are_those_of_the_rows_at_that_step():
    for name in ("gaussians", "poisson"):
        trace = traced(name)
        np.testing.assert_allclose(trace.shares(trace.steps[-1]), trace.model.predict_proba(trace.rows), atol=1e-12)
        assert trace.shares(trace.steps[0]) is None
    trace = traced("fuzzy")
    np.testing.assert_allclose(trace.shares(trace.steps[-1]), trace.model.memberships(X), atol=1e-12)
    assert traced("kmeans").shares(trace.steps[-1]) is None


def test_rows_keep_their_shares_while_components_move():
    trace = traced("gaussians")
    before, moved, after = (trace.shares(step) for step in trace.steps[1:4])
    np.testing.assert_array_equal(moved, before)
    assert np.abs(after - before).max() > 1e-3


def test_components_keep_their_number_where_steps_sort_them():
    """In every step the largest comes first: a trace follows the components, not their places."""
    trace = traced("process of counts")
    for before, step in pairwise(trace.steps):
        nearest = np.linalg.norm(step.centers[:, None] - before.centers, axis=2).argmin(axis=1)
        np.testing.assert_array_equal(nearest, np.arange(len(nearest)))
    np.testing.assert_allclose(trace.shares(trace.steps[-1]), trace.model.predict_proba(COUNTS), atol=1e-12)


def test_components_that_change_places_are_followed():
    from coterie.families import Gaussian
    from coterie.mixture.beliefs import Sticks
    from coterie.mixture.dirichlet import Believed, DirichletProcess, with_conjugate_prior
    from coterie.traces.steps import Steps

    family = with_conjugate_prior(Gaussian().learned(Gaussian().survey(X)))
    model = DirichletProcess(4, Believed(family), sticks=Sticks(1.0))
    resp = np.eye(4)[np.random.default_rng(5).permutation(np.repeat([0, 1, 2, 3], [30, 90, 180, 300]))]
    stats = family.statistics(None, family.features(X), resp)
    backwards = replace(model, start=model.believed(resp.sum(axis=0), stats))  # the smallest first
    kept, source = recording.Recorder(), _source()
    watch = kept.watching(None, backwards, *source)
    loop.fit(backwards, *source, rng=np.random.default_rng(0), max_iter=30, callback=watch)
    steps = Steps(kept, source[0].pick(slice(None)), X.mean(axis=0)).all()
    came = [moment.came for moment in kept.run.moments]
    assert any((one != came[0]).any() for one in came)  # else nothing is tested
    values = np.array([step.objective for step in steps])
    assert np.all(np.diff(values) >= -1e-9 * np.abs(values[-1]))
    divided = [step for step in steps if step.kind == "E"]
    for before, step in pairwise(divided):
        assert step.changed == np.count_nonzero(step.labels != before.labels)
        assert step.changed < 300  # a change of places alone is none


def _source():
    from coterie.data.memory import MemorySource
    from coterie.engines.local import Serial

    return MemorySource(X, None, chunk_rows=200), Serial()


def test_sentences():
    steps = traced("kmeans").steps
    assert steps[0].caption == "start: 4 centers"
    assert steps[1].caption == "assign: each of 600 rows joins its nearest center"
    moved = np.linalg.norm(steps[2].centers - steps[1].centers, axis=1).max()
    assert steps[2].caption == f"update: centers move by at most {moved:.3g}"
    assert steps[3].caption == f"assign: {steps[3].changed} of 600 rows changed cluster"
    steps = traced("gaussians without a penalty").steps
    assert steps[1].caption == "E: the bound touches the log-likelihood"
    assert f"rises by at least {steps[2].bound - steps[1].bound:.3g}, and by" in steps[2].caption
    assert "batch 1: centers move by" in traced("batches").steps[1].caption
    assert "every row draws" in traced("stochastic").steps[1].caption


def test_a_cluster_without_rows_is_said_to_start_anew():
    start = np.concatenate([X[:2], [[1e3, 1e3, 1e3]]])
    steps = KMeans(3, init=start, n_init=1).fit_trace(X).steps
    assert steps[1].sizes[2] == 0
    assert steps[2].caption.endswith("cluster 2 had no rows and starts anew")
    assert "cluster" not in steps[4].caption


def test_a_component_without_rows_is_said_to_start_anew():
    means = np.concatenate([X[:2], [[1e4, 1e4, 1e4]]])
    model = GaussianMixture(
        3, means_init=means, weights_init=[0.5, 0.5, 1e-9], precisions_init=np.array([np.eye(3)] * 3)
    )
    captions = [step.caption for step in model.fit_trace(X).steps]
    assert any("component 2 had no rows and starts anew" in caption for caption in captions)


# rows of any kind


def test_frames_bring_the_names_of_their_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    trace = KMeans(4, **RANDOM).fit_trace(frame)
    assert trace.columns == ["a", "b", "c"]
    np.testing.assert_array_equal(trace.model.feature_names_in_, trace.columns)


def test_columns_that_distances_do_not_see_are_left_out():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    trace = KMeans(4, metric_weights=[1, 4, 0], **RANDOM).fit_trace(frame)
    assert trace.columns == ["a", "b"]
    np.testing.assert_allclose(trace.rows, X[:, :2], rtol=1e-12)


def test_of_many_rows_some_are_kept():
    many = np.tile(X, (10, 1)) + np.random.default_rng(6).normal(0, 0.01, (6000, 3))
    trace = KMeans(4, **RANDOM).fit_trace(many)
    assert (trace.n, len(trace.rows)) == (6000, 5000)
    assert all(len(step.labels) == 5000 for step in trace.steps[1:])
    assert trace.steps[1].sizes.sum() == 6000


def test_rows_of_dask_are_traced_where_they_are():
    da = pytest.importorskip("dask.array")
    far = KMeans(4, init=X[:4], n_init=1).fit_trace(da.from_array(X, chunks=(150, 3)))
    near = KMeans(4, init=X[:4], n_init=1).fit_trace(X)
    np.testing.assert_allclose(far.objectives, near.objectives, rtol=1e-9)


def test_it_is_what_json_holds():
    for name in ("kmeans", "gaussians", "stochastic", "process"):
        told = traced(name).to_dict()
        assert json.loads(json.dumps(told, allow_nan=False)) == told
        assert told["rows"] == 600


def test_it_can_be_kept():
    trace = traced("gaussians")
    again = pickle.loads(pickle.dumps(trace))
    np.testing.assert_array_equal(again.shares(again.steps[3]), trace.shares(trace.steps[3]))


# memory


def moment(i, params=None):
    return recording.Moment(i, np.zeros(3) if params is None else params, -float(i))


def test_of_many_iterations_the_first_are_kept_and_pairs_of_the_others():
    run = recording.Run(0)
    for i in range(5000):
        run.add(moment(i))
        assert len(run.moments) <= recording.MOST + 1
        assert run.moments[-1].iteration == i
    kept = [each.iteration for each in run.moments]
    head = recording.MOST // 2
    assert kept[:head] == list(range(head))
    assert len(kept) > head
    later = kept[head:-1]
    assert {i for i in later if i % run.stride == 0} == {i - 1 for i in later if i % run.stride == 1}


def test_large_parameters_are_kept_of_few_iterations():
    run, large = recording.Run(0), np.broadcast_to(np.zeros(1), (recording.BYTES // 8,))
    for i in range(100):
        run.add(moment(i, (large, (large, 3))))
    assert len(run.moments) <= recording.FEWEST + 1
    assert run.moments[0].iteration == 0


def test_only_the_best_start_and_the_one_under_way_are_kept():
    kept = recording.Recorder()
    watch = kept.watching(None, object(), *_source())
    for start, end in enumerate([5.0, 2.0, 3.0]):
        for i in range(4):
            watch(loop.Progress(start, i, np.zeros(2), end + 3 - i))
        assert {kept.now.number, getattr(kept.best, "number", None)} <= {start, None, 0, 1}
    kept.chose(loop.Fit(np.zeros(2), 2.0, (), True, 1))
    assert kept.run.number == 1
    assert len(kept.run.moments) == 4


def test_a_start_that_was_over_before_is_told_about():
    kept = recording.Recorder()
    watch = kept.watching(None, object(), *_source())
    watch(loop.Progress(2, 0, np.zeros(2), 4.0))
    with pytest.raises(ParameterError, match="checkpoint"):
        kept.chose(loop.Fit(np.zeros(2), 2.0, (), True, 1))


def test_many_iterations_make_a_trace_that_still_climbs(monkeypatch):
    monkeypatch.setattr(recording, "MOST", 12)
    trace = anew(SOFT["gaussians"][0]).fit_trace(X)
    assert trace.model.n_iter_ > 14
    assert len({step.iteration for step in trace.steps}) < 16
    assert np.all(np.diff(trace.objectives) >= -much(trace))
    for before, step in pairwise(trace.steps[1:]):
        if step.kind == "M":
            assert step.iteration == before.iteration + 1
