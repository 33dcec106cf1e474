"""Random draws depend on the number of a row and not on its part, so other parts change only the rounding."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import zoo
from coterie import FuzzyCMeans, GaussianMixture, KMeans, MiniBatchKMeans, SphericalKMeans, seeding
from coterie.data import as_source
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.persistence.checkpoint_file import fingerprint
from coterie.seeding.costs import SQUARES
from coterie.seeding.scalable import _oversample
from many_parts import weights_of_many_digits

COUNTS = (1, 3, 7, 50)
X = zoo.SMALL
W = weights_of_many_digits(X)


def chunk_rows(n_parts):
    return -(-len(X) // n_parts)


def sources(**options):
    return [MemorySource(options.get("X", X), W, chunk_rows=chunk_rows(n)) for n in COUNTS]


def lazy(n_parts):
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(chunk_rows(n_parts), -1))


@pytest.mark.parametrize("start", ["forgy", "farthest"])
def test_other_parts_choose_the_same_rows(start):
    first, *others = (seeding.start(start, s, Serial(), np.random.default_rng(3), 9, 1.0) for s in sources())
    for centers in others:
        np.testing.assert_array_equal(centers, first)


@pytest.mark.parametrize("start", ["k-means||", "random_partition"])
def test_initial_means_of_other_parts_differ_by_rounding_only(start):
    first, *others = (seeding.start(start, s, Serial(), np.random.default_rng(3), 9, 1.0) for s in sources())
    for centers in others:
        np.testing.assert_allclose(centers, first, rtol=1e-11, atol=1e-12)


def test_the_candidates_of_scalable_k_means_are_the_same_rows_for_all_parts():
    start = X[:1]
    (first, _), *others = (
        _oversample(s, Serial(), np.random.default_rng(1), 9, 1.0, start, SQUARES) for s in sources()
    )
    assert len(first) > 12
    for candidates, _ in others:
        np.testing.assert_array_equal(candidates, first)


@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(6, random_state=0, max_iter=5),
        SphericalKMeans(5, random_state=0, search="none", max_iter=3),
        FuzzyCMeans(4, random_state=0, search="none", max_iter=3),
        GaussianMixture(3, random_state=0, e_step="stochastic", max_iter=3, init_params="random_from_data"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_default_fits_of_other_blocks_differ_by_rounding_only(estimator):
    results = []
    for count in (1, 7, 50):
        estimator.fit(lazy(count))
        results.append((np.asarray(estimator.labels_), estimator.score(X)))
    labels, score = results[0]
    for others, other_score in results[1:]:
        np.testing.assert_array_equal(others, labels)
        assert other_score == pytest.approx(score, rel=1e-10)


@pytest.mark.parametrize("is_large", [False, True])
def test_the_default_start_is_the_same_in_memory_and_in_blocks(monkeypatch, is_large):
    pytest.importorskip("dask.array")
    from coterie.engines.dask import Dask

    if is_large:
        monkeypatch.setattr(sys.modules["coterie.seeding.scalable"], "MAX_WORK", 0)
    centers = [
        seeding.start("auto", as_source(data), engine, np.random.default_rng(3), 9, 1.0)
        for data, engine in ((X, Serial()), (lazy(3), Dask()))
    ]
    np.testing.assert_allclose(*centers, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("rows", [X, X.astype(np.float32), sparse.csr_array(np.where(X > 0, X, 0))])
def test_the_fingerprint_of_rows_does_not_depend_on_the_parts_but_on_every_value(rows):
    prints = [fingerprint(KMeans(3), source, Serial()) for source in sources(X=rows)]
    assert all(each == prints[0] for each in prints)
    order = np.r_[1, 0, np.arange(2, len(X))]
    heavier = W.copy()
    heavier[-1] = np.nextafter(W[-1], 9.0)
    for changed in (
        MemorySource(rows[order], W),
        MemorySource(rows, heavier),
        MemorySource(rows, None),
        MemorySource(rows, W, y=np.arange(len(X))),
    ):
        assert fingerprint(KMeans(3), changed, Serial()) != prints[0]


@pytest.mark.parametrize("then", [7, None])
def test_a_checkpoint_moves_to_other_blocks_and_to_threads(tmp_path, then):
    def stop(progress):
        if progress.iteration == 2:
            raise RuntimeError

    path, options = tmp_path / "fit.safetensors", {"search": "none", "tol": 0, "random_state": 0}
    expected = KMeans(6, **options).fit(lazy(3))
    assert expected.n_iter_ > 3
    with pytest.raises(RuntimeError):
        KMeans(6, checkpoint=path, callback=stop, **options).fit(lazy(3))
    resumed = KMeans(6, checkpoint=path, **options).fit(X if then is None else lazy(then))
    np.testing.assert_array_equal(resumed.history_[:2], expected.history_[:2])
    np.testing.assert_array_equal(np.asarray(resumed.labels_), np.asarray(expected.labels_))
    assert resumed.inertia_ == pytest.approx(expected.inertia_, rel=1e-12)


@pytest.mark.parametrize(
    "estimator", [MiniBatchKMeans(4, init=X[:4]), GaussianMixture(3, random_state=0)], ids=["mini-batches", "em"]
)
def test_batches_of_lazy_rows_stay_where_they_are(estimator, monkeypatch):
    from coterie.data.dask import DaskSource

    picked, pick = [], DaskSource.pick

    def watched(self, rows):
        chunk = pick(self, rows)
        picked.append(len(chunk.X))
        return chunk

    there, here = clone(estimator).partial_fit(lazy(1)), clone(estimator).partial_fit(X)
    monkeypatch.setattr(DaskSource, "pick", watched)
    there, here = there.partial_fit(lazy(7)), here.partial_fit(X)
    assert sum(picked) <= 2  # the first row, about which sums are computed
    np.testing.assert_array_equal(np.asarray(there.labels_), here.labels_)
    assert there.score(X) == pytest.approx(here.score(X), rel=1e-10)


def test_the_first_batch_of_lazy_rows_is_a_start_for_mini_batches():
    model = MiniBatchKMeans(4, random_state=0).partial_fit(lazy(7))
    assert model.labels_.chunks == lazy(7).chunks[:1]
    assert model.counts_.sum() >= len(X)
