"""Passes over parts in other processes: whatever is lost on the way, the result has the bits of threads."""

from __future__ import annotations

import gc
import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import zoo
from coterie import KMeans, SphericalKMeans
from coterie.core import loop
from coterie.core.protocols import EStep
from coterie.core.stats import WeightedSums
from coterie.data.memory import MemorySource
from coterie.engines import passes
from coterie.engines.local import Threads
from coterie.engines.passes import HeldParts, Order
from coterie.errors import ClusterError
from coterie.kmeans.kernel_lloyd import KernelLloyd
from coterie.kmeans.lloyd import Lloyd
from fake_cluster import FakeCluster
from many_parts import many_parts, weights_of_many_digits

SLOW = pytest.mark.slow
DENSE = [
    pytest.param(*p.values[:2], id=p.id, marks=[SLOW] if i % 3 else [])  # a third of the models in every run
    for i, p in enumerate(zoo.MODELS)
    if isinstance(p.values[1], np.ndarray) and not isinstance(p.values[0], KernelLloyd)
]


def fit(model, X, engine, max_iter=4):
    source = MemorySource(X, weights_of_many_digits(X), chunk_rows=len(X) // 11 + 1)
    rng = np.random.default_rng(1)
    result = loop.fit(model, source, engine, rng=rng, n_init=1, max_iter=max_iter)
    labels = np.concatenate(engine.map(partial(model.assign, result.params), source, result.memos))
    return result, labels


def assert_same(theirs, ours):
    assert theirs[0].history == ours[0].history
    for a, b in zip(zoo.leaves(theirs[0].params), zoo.leaves(ours[0].params), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(theirs[1], ours[1])


@pytest.mark.parametrize("model, X", DENSE)
def test_lost_rows_memos_and_replies_change_no_bit(model, X):
    assert_same(fit(model, X, FakeCluster(("memo", "repeat", "worker"), seed=3)), fit(model, X, Threads(1)))


@pytest.mark.parametrize("fault", ["memo", "repeat", "worker"])
@pytest.mark.parametrize(
    "start",
    ["k-means++", "k-means||", *(pytest.param(s, marks=SLOW) for s in ("farthest", "forgy", "random_partition"))],
)
def test_a_start_survives_each_fault(start, fault):
    model, ours = Lloyd(6, start), fit(Lloyd(6, start), zoo.SMALL, Threads(1), max_iter=20)
    losses = 0
    for seed in range(3):
        engine = FakeCluster((fault,), seed)
        source = MemorySource(zoo.SMALL, weights_of_many_digits(zoo.SMALL), chunk_rows=len(zoo.SMALL) // 11 + 1)
        result = loop.fit(model, source, engine, rng=np.random.default_rng(1), n_init=1, max_iter=20)
        assert result.history == ours[0].history
        losses += engine.place(source).n_lost
    assert losses > 3


def test_workers_that_end_again_and_again_are_an_error_with_advice(monkeypatch):
    class Ends(FakeCluster):
        def _new_placement(self, source):
            placement = super()._new_placement(source)
            monkeypatch.setattr(placement, "ask", lambda order, parts: dict.fromkeys(parts))
            return placement

    with pytest.raises(ClusterError, match=r"ended 6 times in one pass.*more memory.*`checkpoint`"):
        fit(Lloyd(3), zoo.SMALL, Ends())


def test_memos_that_are_no_longer_used_are_dropped():
    source, engine, model = MemorySource(zoo.SMALL, chunk_rows=100), FakeCluster(), Lloyd(3)
    step = EStep(model.e_step, zoo.SMALL[:3])
    memos = None
    for _ in range(5):
        _, memos = engine.scan(step, source, memos)
    gc.collect()
    engine.sum(partial(_count, 1), source)
    held = engine.place(source).held.values()
    assert all(len(each.memos) == 1 for each in held)


def test_a_source_that_is_gone_frees_its_parts():
    gc.collect()
    before = len(passes._placements)
    source, engine = MemorySource(zoo.SMALL, chunk_rows=100), FakeCluster()
    engine.sum(partial(_count, 1), source)
    assert len(passes._placements) == before + 1
    del source
    gc.collect()
    assert len(passes._placements) == before


def test_an_error_in_a_fit_frees_its_parts():
    def fail(progress):
        raise RuntimeError("stop")

    before = len(passes._placements)
    with pytest.raises(RuntimeError, match="stop") as caught:  # the traceback keeps the frames, and so the source
        KMeans(3, engine=FakeCluster(), callback=fail, random_state=0).fit(zoo.SMALL)
    assert caught.tb is not None
    assert len(passes._placements) == before


def test_a_copy_of_held_parts_has_no_memos():
    """Dask can write them to disk: what comes back must not be taken for the state after the last pass."""
    held = HeldParts({0: "key"})
    held.memos[3] = {0: "memo"}
    copy = pickle.loads(pickle.dumps(held))
    assert copy.places == {0: "key"}
    assert copy.memos == {}


def test_a_step_that_fails_leaves_no_half_changed_memo():
    def fail(chunk, memo):
        memo.append("changed")
        raise RuntimeError

    held = HeldParts({0: "chunk"})
    held.memos[1] = {0: []}
    with pytest.raises(RuntimeError):
        held.run(Order(fail, True, read=1, write=2), None, lambda chunk: chunk, 1)
    reply = held.run(Order(lambda chunk, memo: (1, memo), True, read=1, write=2), None, lambda chunk: chunk, 1)
    assert reply.lost_memos == [0]


@pytest.mark.parametrize(
    "estimator", [KMeans(4), SphericalKMeans(4), KMeans(4, metric_weights=[1.0, 2.0, 0.0])], ids=str
)
def test_rows_in_memory_are_sent_and_labels_come_back(estimator, monkeypatch):
    many_parts(monkeypatch, zoo.SMALL)
    ours, theirs = (
        clone(estimator).set_params(engine=engine, init="k-means||", random_state=0).fit(zoo.SMALL)
        for engine in ("threads", FakeCluster())
    )
    np.testing.assert_array_equal(theirs.cluster_centers_, ours.cluster_centers_)
    np.testing.assert_array_equal(theirs.labels_, ours.labels_)
    np.testing.assert_array_equal(theirs.predict(zoo.SMALL), ours.labels_)


def _count(factor, chunk):
    return WeightedSums(factor * len(chunk.X), chunk.X.sum(axis=0))
