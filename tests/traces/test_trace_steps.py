"""The attributes of the steps of a trace, for all kinds of input."""

import json
import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from coterie import GaussianMixture, KMeans
from coterie.core import loop
from coterie.traces import recorder as recording
from families.cases import learned
from traces.cases import CENTERS, COUNTS, RANDOM, SOFT, W, X, in_thirds, over, quiet, traced

pytestmark = quiet

# what a step says


@over(CENTERS | SOFT)
def test_rows_that_changed_are_those_whose_label_did(name):
    """The trace contains all rows here, so that changes can be counted from their labels."""
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


def test_components_keep_their_number_if_steps_sort_them():
    """Every step sorts the components by size; a trace follows each component."""
    trace = traced("process of counts")
    for before, step in pairwise(trace.steps):
        nearest = np.linalg.norm(step.centers[:, None] - before.centers, axis=2).argmin(axis=1)
        np.testing.assert_array_equal(nearest, np.arange(len(nearest)))
    np.testing.assert_allclose(trace.shares(trace.steps[-1]), trace.model.predict_proba(COUNTS), atol=1e-12)


def test_components_that_change_their_order_are_followed():
    from coterie.families import Gaussian
    from coterie.mixture.dirichlet_process import DirichletProcess, PosteriorFamily, with_conjugate_prior
    from coterie.mixture.variational import StickBreaking
    from coterie.traces.half_steps import HalfSteps

    family = with_conjugate_prior(learned(Gaussian(), X))
    model = DirichletProcess(4, PosteriorFamily(family), sticks=StickBreaking(1.0))
    resp = np.eye(4)[np.random.default_rng(5).permutation(np.repeat([0, 1, 2, 3], [15, 45, 90, 150]))]
    stats = family.statistics(None, family.features(X), resp)
    backwards = replace(model, start=model.posterior(resp.sum(axis=0), stats))  # the smallest first
    recorder, source = recording.Recorder(), in_thirds()
    watch = recorder.watching(None, backwards, *source)
    loop.fit(backwards, *source, rng=np.random.default_rng(0), max_iter=30, callback=watch)
    steps = list(HalfSteps(recorder, source[0].pick(slice(None)), np.arange(len(X)), X.mean(axis=0)).steps())
    origins = [iteration.origin for iteration in recorder.run.iterations]
    assert any((origin != origins[0]).any() for origin in origins)  # otherwise the order never changes
    values = np.array([step.objective for step in steps])
    assert np.all(np.diff(values) >= -1e-9 * np.abs(values[-1]))
    divided = [step for step in steps if step.kind == "E"]
    for before, step in pairwise(divided):
        assert step.changed == np.count_nonzero(step.labels != before.labels)
        assert step.changed < 300  # a change of the order alone does not count


def test_captions():
    steps = traced("kmeans").steps
    assert steps[0].caption == "start: 4 centers"
    assert steps[1].caption == "assign: 300 rows to their nearest centers"
    joint = "assign: 300 rows to centers at the minimum cost that the sizes and links allow"
    assert traced("sizes").steps[1].caption == joint
    moved = np.linalg.norm(steps[2].centers - steps[1].centers, axis=1).max()
    assert steps[2].caption == f"update: centers move by at most {moved:.3g}"
    assert steps[3].caption == f"assign: {steps[3].changed} of 300 rows changed cluster"
    steps = traced("gaussians without a penalty").steps
    assert steps[1].caption == "E: the bound now equals the log-likelihood"
    assert f"the bound rises by {steps[2].bound - steps[1].bound:.3g}, the log-likelihood by" in steps[2].caption
    assert "batch 1: centers move by" in traced("batches").steps[1].caption
    assert "drawn at random" in traced("stochastic").steps[1].caption


def test_the_caption_names_empty_clusters():
    start = np.concatenate([X[:2], [[1e3, 1e3, 1e3]]])
    steps = KMeans(3, init=start, n_init=1).fit_trace(X).steps
    assert steps[1].sizes[2] == 0
    assert steps[2].caption.endswith("cluster 2 was empty and is reinitialised")
    assert "cluster" not in steps[4].caption


def test_the_caption_names_empty_components():
    means = np.concatenate([X[:2], [[1e4, 1e4, 1e4]]])
    model = GaussianMixture(
        3, means_init=means, weights_init=[0.5, 0.5, 1e-9], precisions_init=np.array([np.eye(3)] * 3)
    )
    captions = [step.caption for step in model.fit_trace(X).steps]
    assert any("component 2 was empty and is reinitialised" in caption for caption in captions)


# rows of any kind


def test_column_names_of_frames_are_used():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    trace = KMeans(4, **RANDOM).fit_trace(frame)
    assert trace.columns == ["a", "b", "c"]
    np.testing.assert_array_equal(trace.model.feature_names_in_, trace.columns)


def test_columns_of_weight_zero_are_left_out():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    trace = KMeans(4, metric_weights=[1, 4, 0], **RANDOM).fit_trace(frame)
    assert trace.columns == ["a", "b"]
    np.testing.assert_allclose(trace.rows, X[:, :2], rtol=1e-12)


def test_a_trace_of_many_rows_contains_a_sample():
    many = np.tile(X, (20, 1)) + np.random.default_rng(6).normal(0, 0.01, (6000, 3))
    trace = KMeans(4, **RANDOM).fit_trace(many)
    assert (trace.n, len(trace.rows)) == (6000, 5000)
    assert all(len(step.labels) == 5000 for step in trace.steps[1:])
    assert trace.steps[1].sizes.sum() == 6000


def test_dask_arrays_can_be_traced():
    da = pytest.importorskip("dask.array")
    far = KMeans(4, init=X[:4], n_init=1).fit_trace(da.from_array(X, chunks=(150, 3)))
    near = KMeans(4, init=X[:4], n_init=1).fit_trace(X)
    np.testing.assert_allclose(far.objectives, near.objectives, rtol=1e-9)


def test_the_dictionary_is_json_data():
    for name in ("kmeans", "gaussians", "stochastic", "process"):
        result = traced(name).to_dict()
        assert json.loads(json.dumps(result, allow_nan=False)) == result
        assert result["rows"] == 300


def test_a_trace_can_be_pickled():
    trace = traced("gaussians")
    again = pickle.loads(pickle.dumps(trace))
    np.testing.assert_array_equal(again.shares(again.steps[3]), trace.shares(trace.steps[3]))
