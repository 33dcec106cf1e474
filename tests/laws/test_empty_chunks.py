"""An empty chunk gives zero statistics: a part without rows changes no result, wherever it stands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

import zoo
from coterie import seeding
from coterie.core import loop, online
from coterie.core.protocols import Chunk
from coterie.data.memory import MemorySource
from coterie.data.summary import summarize
from coterie.engines.local import Serial, Threads
from coterie.kmeans.lloyd import Lloyd


@dataclass(frozen=True)
class WithEmptyParts(MemorySource):
    """Rows in memory, with parts without rows: the first, two in the middle, the last."""

    def _bounds(self):
        bounds = super()._bounds()
        middle = bounds[len(bounds) // 2]
        return sorted([*bounds, 0, middle, middle, bounds[-1]])


def sources(X, part_rows):
    """The same rows with and without empty parts; so few parts that their sums are added one after the other."""
    part_rows = max(part_rows, -(-X.shape[0] // 4))
    return MemorySource(X, chunk_rows=part_rows), WithEmptyParts(X, chunk_rows=part_rows)


def assert_same(a, b):
    for x, y in zip(zoo.leaves(a), zoo.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_an_empty_chunk_gives_zero_statistics(model, X, part_rows):
    params = zoo.initial_params(model, X, part_rows)
    some, _ = model.e_step(params, Chunk(X[:50], None, 0))
    for w in (None, np.zeros(0)):
        empty = Chunk(X[:0], w, 0)
        stats, memo = model.e_step(params, empty)
        again, _ = model.e_step(params, empty, memo)
        for each in (*zoo.leaves(stats), *zoo.leaves(again)):
            assert not np.any(each)
        assert_same(some + stats, some)


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_an_empty_chunk_gets_empty_answers(model, X, part_rows):
    params = zoo.initial_params(model, X, part_rows)
    empty = Chunk(X[:0], None, 0)
    assert model.assign(params, empty).shape == (0,)
    _, memo = model.e_step(params, empty)
    assert model.assign(params, empty, memo).shape == (0,)
    for name in ("distances", "probabilities", "log_densities", "uncertainty", "entropy"):
        answer = getattr(model, name, None)
        if answer is not None:
            one = answer(params, Chunk(X[:1], None, 0))
            assert answer(params, empty).shape == (0, *one.shape[1:]), name


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_empty_parts_change_no_bit_of_a_pass_nor_of_a_repair(model, X, part_rows):
    params = zoo.initial_params(model, X, part_rows)
    results = []
    for source in sources(X, part_rows):
        stats, memos = Serial().scan(partial(model.e_step, params), source, model.initial_memos(source))
        made = model.repair(model.m_step(params, stats), stats, source, Serial(), memos)
        results.append((stats, made if isinstance(made, tuple) else (made,)))
    assert_same(results[0], results[1])


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_a_model_starts_on_a_source_with_empty_parts(model, X, part_rows):
    rows = X[: min(X.shape[0], 1200)]
    _, source = sources(rows, part_rows)
    fits = [loop.fit(model, source, each, rng=np.random.default_rng(3), max_iter=1) for each in (Serial(), Threads(2))]
    assert np.isfinite(fits[0].objective)
    assert fits[0].history == fits[1].history


@pytest.mark.parametrize("k", [3, 20])
@pytest.mark.parametrize("X", [zoo.SMALL, zoo.SINGLE, zoo.COUNTS], ids=["dense", "float32", "sparse"])
def test_an_empty_part_has_no_costliest_row(X, k):
    """Twenty centers at one row leave nineteen clusters without rows, which start anew at the costliest."""
    model = Lloyd(k)
    centers = np.repeat(X[:1].toarray() if hasattr(X, "toarray") else X[:1], k, axis=0)
    made = []
    for source in sources(X, 1):
        stats, memos = Serial().scan(partial(model.e_step, centers), source, model.initial_memos(source))
        made.append(model.repair(centers, stats, source, Serial(), memos))
    assert len(np.unique(made[0], axis=0)) == k
    np.testing.assert_array_equal(made[0], made[1])


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("X", [zoo.SMALL, zoo.SINGLE, zoo.COUNTS], ids=["dense", "float32", "sparse"])
@pytest.mark.parametrize("method", seeding.METHODS)
def test_every_seeding_method_takes_empty_parts(method, X, weighted):
    w = np.random.default_rng(0).integers(1, 4, X.shape[0]).astype(float) if weighted else None
    source = replace(sources(X, 1)[1], w=w)
    chosen = X[:2].toarray() if hasattr(X, "toarray") else X[:2]
    for before in (None, chosen):
        centers = seeding.start(method, source, Serial(), np.random.default_rng(4), 5, 1.0, before)
        assert centers.shape == (5, X.shape[1])
        assert np.isfinite(centers).all()


@pytest.mark.parametrize("X", [zoo.SMALL, zoo.SINGLE, zoo.COUNTS], ids=["dense", "float32", "sparse"])
def test_a_summary_does_not_see_empty_parts(X):
    plain, with_empty = sources(X, 1)
    a, b = (summarize(source, Serial()) for source in (plain, with_empty))
    assert_same(tuple(a), tuple(b))


def test_a_summary_of_missing_values_does_not_see_empty_parts():
    plain, with_empty = sources(zoo.HOLES, 1)
    a, b = (summarize(source, Serial(), allow_missing=True) for source in (plain, with_empty))
    assert_same(tuple(a), tuple(b))


@pytest.mark.parametrize("model, X, part_rows", [each for each in zoo.MODELS if hasattr(each.values[0], "carry")])
def test_an_empty_batch_changes_nothing_online(model, X, part_rows):
    first, second, nothing = np.arange(300), np.arange(300, 600), np.arange(0)
    results = []
    for batches in ([first, second], [nothing, first, nothing, nothing, second, nothing]):
        state = online.State(zoo.initial_params(model, X, part_rows), None)
        for batch in batches:
            state, _ = online.step(model, state, Chunk(X[batch], None, 0))
        results.append(zoo.leaves((state.params,)))
    assert_same(tuple(results[0]), tuple(results[1]))
