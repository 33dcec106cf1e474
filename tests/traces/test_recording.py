"""Recorded fits: steps with the labels of all rows, and fewer iterations on request."""

from itertools import pairwise

import numpy as np
import pytest

from coterie import BalancedKMeans, FuzzyCMeans, GaussianMixture, KMeans, MiniBatchKMeans
from coterie.datasets import make_blobs
from coterie.traces.half_steps import thinned
from coterie.traces.recorder import Iteration

MODELS = [
    KMeans(4, init="forgy", n_init=2, random_state=0),
    GaussianMixture(4, random_state=0),
    FuzzyCMeans(4, n_init=1, random_state=0),
    MiniBatchKMeans(4, batch_size=100, random_state=0),
    BalancedKMeans(4, n_init=1, random_state=0),
]


@pytest.fixture(scope="module")
def rows():
    X, _ = make_blobs(700, 3, centers=4, cluster_std=2.0, random_state=0)
    return X


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_steps_of_all_rows_are_those_of_the_trace(model, is_weighted, rows):
    weight = np.random.default_rng(0).integers(1, 4, len(rows)).astype(float) if is_weighted else None
    recording = model.fit_recorded(rows, weight)
    trace = recording.trace()  # 700 rows are all in the sample
    other, steps = recording.all_rows(10_000)
    steps = list(steps)
    assert (other.objective, other.better, other.n) == (trace.objective, trace.better, trace.n)
    assert [step.caption for step in steps] == [step.caption for step in trace.steps]
    for step, expected in zip(steps, trace.steps, strict=True):
        assert step.changed == expected.changed
        assert step.objective == expected.objective
        np.testing.assert_allclose(step.sizes, expected.sizes)
        if expected.labels is not None:
            np.testing.assert_array_equal(step.labels, expected.labels)
    np.testing.assert_array_equal(steps[-1].labels, model.labels_)


def test_labels_of_all_rows_are_those_of_a_naive_assignment(rows):
    recording = KMeans(4, init="forgy", n_init=1, random_state=1).fit_recorded(rows)
    for step in recording.all_rows(10_000)[1]:
        if step.kind == "assign":
            distances = ((rows[:, None] - step.params[None]) ** 2).sum(axis=2)
            np.testing.assert_array_equal(step.labels, distances.argmin(axis=1))


def test_a_trace_is_computed_once(rows):
    recording = KMeans(4, random_state=0).fit_recorded(rows, columns=["a", "b", "c"])
    assert recording.trace() is recording.trace()
    assert recording.trace().columns == ["a", "b", "c"]


@pytest.mark.parametrize("limit", [3, 4, 7, 50, 99, 100, None])
def test_fewer_iterations_keep_the_first_the_last_and_pairs(limit):
    iterations = [Iteration(i, None, 0.0) for i in range(100)]
    numbers = [each.iteration for each in thinned(iterations, limit)]
    assert len(numbers) <= (100 if limit is None else limit)
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[-1]) == (0, 99)
    assert 98 in numbers
    assert any(b == a + 1 for a, b in pairwise(numbers[1:]))
