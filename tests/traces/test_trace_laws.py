"""A traced fit equals `fit`, and its half steps satisfy the inequalities of the algorithm."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie import BalancedKMeans, GaussianMixture, KMeans, MiniBatchKMeans
from coterie.data import as_source
from coterie.data.row_sample import sample_rows
from coterie.traces.recording import MAX_ROWS
from traces.cases import (
    ALL,
    BELIEFS,
    CENTERS,
    HINTS,
    RANDOM,
    SOFT,
    W,
    X,
    anew,
    much,
    over,
    quiet,
    traced,
    weights,
    weights_of,
)

pytestmark = quiet


# the fit


@weights
@over(ALL)
def test_fit_trace_gives_the_same_bits_as_fit(name, weighted):
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
def test_the_last_step_is_the_result_of_the_fit(name):
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


def test_fit_without_a_trace_uses_the_callback_unchanged():
    def callback(progress):
        return None

    assert KMeans()._with_recorder(callback, None, None, None) is callback


def test_a_failed_fit_leaves_no_recorder():
    model = KMeans(3)
    with pytest.raises(ValueError, match="are fewer than"):
        model.fit_trace(X[:2])
    assert not hasattr(model, "_recorder")


def test_a_callback_is_still_called_and_may_stop_the_fit():
    seen = []

    def callback(progress):
        seen.append(progress.iteration)
        return progress.iteration == 2

    trace = KMeans(4, init="forgy", n_init=1, random_state=0, callback=callback).fit_trace(X)
    assert seen == [0, 1, 2]
    assert trace.steps[-1].iteration == 2


def test_the_trace_does_not_depend_on_threads():
    many = np.tile(X, (-(-120_000 // len(X)), 1))
    assert len(as_source(many).parts()) > 2
    one, other = (KMeans(4, n_jobs=jobs, **RANDOM).fit_trace(many).to_dict() for jobs in (1, 3))
    assert one == other


# laws of the half steps


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
@over(["kmeans", "sizes", "sizes and links"])
def test_after_an_update_rows_are_still_in_their_old_clusters(name, weighted):
    trace = traced(name, weighted)
    w = W if weighted else np.ones(len(X))
    for step in trace.steps[1:]:
        naive = w @ ((X - step.centers[step.labels]) ** 2).sum(axis=1)
        assert step.objective == pytest.approx(naive, rel=1e-9), (step.kind, step.iteration)


@weights
@over(SOFT)
def test_the_bound_equals_the_likelihood_after_e_and_lies_between_after_m(name, weighted):
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
    """The bound computed from rows, chunk by chunk, equals the bound from the statistics of the E-step."""
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
    assert trace.objective == "evidence lower bound"
    assert np.isnan(trace.bounds).all()
    assert np.all(np.diff(trace.objectives) >= -much(trace))
    assert trace.objectives[-1] == pytest.approx(trace.model.lower_bound_, rel=1e-12)


@weights
@pytest.mark.parametrize("name", ["hard", "hard poisson", "stochastic"])
def test_bounds_of_hard_and_stochastic_e_steps_are_below_and_m_steps_raise_them(name, weighted):
    """The bound is the likelihood of the assigned rows; a hard E-step never lowers it, a stochastic one may."""
    trace = traced(name, weighted)
    room = much(trace)
    assert np.all(trace.bounds[1:] <= trace.objectives[1:] + room)
    rises = np.diff(trace.bounds[1:])
    reseeded = [event.iteration - 1 for event in trace.model.history_.events]  # such an M-step may lower it
    assert np.all(np.delete(rises[0::2], reseeded) >= -room)
    if name != "stochastic":
        assert np.all(rises[1::2] >= -room)  # E
        assert trace.bounds[1] < trace.objectives[1]


def test_accelerated_steps_never_lower_the_likelihood():
    trace = traced("accelerated")
    assert np.all(trace.bounds[1:] <= trace.objectives[1:] + much(trace))
    assert np.all(np.diff(trace.objectives) >= -much(trace))


def test_rows_whose_component_is_known_keep_it():
    trace = GaussianMixture(4, init_params="random_from_data", random_state=0).fit_trace(X, W, known_labels=HINTS)
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
    """By its definition for all rows, also after an update, where labels are those of the previous centers."""
    trace = traced(name, weighted)
    w = W if weighted else np.ones(300)
    for step in trace.steps[1:]:
        cost = NAIVE[name](trace.rows, step.centers)
        share = trace.shares(step) ** 2 if name == "fuzzy" else np.eye(4)[step.labels]
        assert step.objective == pytest.approx(w @ (share * cost).sum(axis=1), rel=1e-9)


# which estimators have it


def test_every_estimator_that_has_fit_trace_is_traced_here_and_named_in_the_docs():
    public = {name: getattr(coterie, name) for name in coterie.__all__}
    have = {name for name, each in public.items() if isinstance(each, type) and hasattr(each, "fit_trace")}
    assert have == {type(estimator).__name__ for estimator, _ in ALL.values()}
    told = (Path(__file__).parents[2] / "docs" / "animate.md").read_text()
    assert [name for name in sorted(have) if f"`{name}`" not in told] == []


def test_rows_of_constrained_clusters_are_shown_in_their_cluster():
    """With more rows than the trace contains, in several parts."""
    many = np.tile(X, (-(-90_000 // len(X)), 1))
    assert len(as_source(many).parts()) > 1
    trace = BalancedKMeans(3, init="forgy", n_init=1, max_iter=2, random_state=0).fit_trace(many)
    kept = sample_rows(len(many), MAX_ROWS)
    np.testing.assert_array_equal(trace.rows, many[kept])
    np.testing.assert_array_equal(trace.steps[-1].labels, trace.model.labels_[kept])
    np.testing.assert_array_equal(trace.steps[-1].sizes, trace.model.cluster_sizes_)
