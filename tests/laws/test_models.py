"""What must hold for every model, on every engine."""

from __future__ import annotations

import pickle
from dataclasses import fields
from functools import partial

import numpy as np
import pytest

import zoo
from coterie.core import loop
from coterie.core.protocols import Chunk
from coterie.core.stats import Stats
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from many_parts import weights_of_many_digits


def source(X, part_rows, w=None):
    return MemorySource(X, w, chunk_rows=part_rows)


def fit(model, src, engine, n_init=1, max_iter=30):
    return loop.fit(model, src, engine, rng=np.random.default_rng(1), n_init=n_init, max_iter=max_iter)


def twice(X):
    rows = np.repeat(np.arange(X.shape[0]), 2)
    return X[rows]


def assert_alike(a, b, rtol=1e-9, without=""):
    for field in fields(b):
        if field.name != without:
            for x, y in zip(numbers(getattr(a, field.name)), numbers(getattr(b, field.name)), strict=True):
                np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max(), err_msg=field.name)


def numbers(value):
    """The arrays and numbers that statistics are made of, however they are nested."""
    return [leaf for each in value.leaves() for leaf in numbers(each)] if isinstance(value, Stats) else [value]


def assert_same(a, b):
    for x, y in zip(zoo.leaves(a), zoo.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def precision(X):
    return 1e-9 if X.dtype == np.float64 else 1e-4


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_statistics_add_up(model, X, part_rows):
    params = zoo.initial_params(model, X, part_rows)
    cut = X.shape[0] // 3
    whole, _ = model.e_step(params, Chunk(X, None, 0))
    first, _ = model.e_step(params, Chunk(X[:cut], None, 0))
    rest, _ = model.e_step(params, Chunk(X[cut:], None, 1))
    assert_alike(whole, first + rest, precision(X))


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_the_order_of_the_rows_does_not_matter(model, X, part_rows):
    params = zoo.initial_params(model, X, part_rows)
    shuffled = X[np.random.default_rng(2).permutation(X.shape[0])]
    straight, _ = model.e_step(params, Chunk(X, None, 0))
    mixed, _ = model.e_step(params, Chunk(shuffled, None, 0))
    assert_alike(straight, mixed, precision(X))


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_weight_two_is_the_row_twice(model, X, part_rows):
    params = zoo.initial_params(model, X, part_rows)
    heavy, _ = model.e_step(params, Chunk(X, np.full(X.shape[0], 2.0), 0))
    doubled, _ = model.e_step(params, Chunk(twice(X), None, 0))
    assert_alike(heavy, doubled, precision(X), without="moved")  # which counts rows, not their weight


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_weight_zero_is_no_row(model, X, part_rows):
    params = zoo.initial_params(model, X, part_rows)
    w = (np.arange(X.shape[0]) % 3 > 0).astype(float)
    ignored, _ = model.e_step(params, Chunk(X, w, 0))
    absent, _ = model.e_step(params, Chunk(X[np.flatnonzero(w)], None, 0))
    assert_alike(ignored, absent, precision(X), without="moved")


def never_rises(history, X):
    rounding = 1e-12 if X.dtype == np.float64 else 1e-6
    return len(history) > 2 and np.all(np.diff(history) <= rounding * np.abs(history[:-1]))


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_the_objective_never_rises_with_weights(model, X, part_rows):
    w = np.random.default_rng(3).exponential(size=X.shape[0])
    assert never_rises(np.array(fit(model, source(X, part_rows, w), Serial()).history), X)


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_a_fit_never_rises_and_returns_what_belongs_together(model, X, part_rows):
    """The objective is that of the parameters returned, and what a pass remembers is what `assign` says."""
    src = source(X, part_rows)
    found = fit(model, src, Serial())
    assert never_rises(np.array(found.history), X)
    stats, _ = model.e_step(found.params, Chunk(X, None, 0))
    assert found.objective == found.history[-1]
    assert found.objective == pytest.approx(model.objective(found.params, stats), rel=precision(X))
    remembered = src.join(Serial().map(partial(model.assign, found.params), src, found.memos))
    asked = src.join(Serial().map(partial(model.assign, found.params), src))
    np.testing.assert_array_equal(remembered, asked)


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_engines_agree_to_the_last_bit(model, X, part_rows):
    """Twenty parts: so many that the tree of their sums is no plain sum, and large enough for compiled kernels."""
    src = source(twice(X), X.shape[0] // 10, weights_of_many_digits(twice(X)))
    alone = fit(model, src, Serial(), max_iter=3)
    for engine in zoo.ENGINES:
        together = fit(model, src, *engine.values, max_iter=3)
        assert together.history == alone.history, engine.id
        assert_same(together.params, alone.params)


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_the_best_of_several_starts_is_kept(model, X, part_rows):
    rng = np.random.default_rng(1)
    src = source(X, part_rows)
    several = fit(model, src, Serial(), n_init=2, max_iter=2)
    ends = []
    for run, child in enumerate(rng.spawn(2)):
        *_, last = loop.Descent(model, src, Serial(), run, accelerate=False).iterations(child, max_iter=2)
        ends.append(last.objective)
    assert several.objective == min(ends)


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_labels_do_not_depend_on_how_the_rows_are_cut(model, X, part_rows):
    params = zoo.initial_params(model, X, part_rows)
    whole = model.assign(params, Chunk(X, None, 0))
    pieces = [model.assign(params, Chunk(X[i : i + 37], None, 0)) for i in range(0, X.shape[0], 37)]
    np.testing.assert_array_equal(whole, np.concatenate(pieces))


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_models_are_small_to_send(model, X, part_rows):
    assert len(pickle.dumps(model)) < 1000 + 32 * X.shape[1]  # no more than a few numbers a column


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("X", [zoo.LARGE, zoo.blobs(8000, 20, 30, spread=30.0)], ids=["mixed", "separated"])
def test_bounds_change_the_speed_not_the_result(X, dtype):
    src = source(X.astype(dtype), 2000)
    plain = fit(zoo.Lloyd(30, "forgy", bounds=False), src, Serial())
    bounded = fit(zoo.Lloyd(30, "forgy"), src, Serial())
    assert bounded.history == plain.history
    np.testing.assert_array_equal(bounded.params, plain.params)
    for a, b in zip(bounded.memos, plain.memos, strict=True):
        np.testing.assert_array_equal(a.labels, b.labels)
