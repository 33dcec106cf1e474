"""k-means||: few passes, the right probabilities, and centers as good as those of k-means++."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

from coterie import KMeans, MiniBatchKMeans
from coterie.core.protocols import Chunk
from coterie.data import as_source
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial, Threads
from coterie.seeding import greedy, scalable
from coterie.seeding.costs import SQUARES
from coterie.seeding.scalable import Arrivals, arrivals

rng = np.random.default_rng(0)
LARGE = rng.normal(size=(4000, 6))
CORNERS = rng.normal(size=(40, 6)) * 50
BLOBS = np.repeat(CORNERS, 60, axis=0) + rng.normal(size=(2400, 6))


def seed(X, k, seed=0, w=None, part_rows=None, engine=Serial(), method=scalable, **options):  # noqa: B008
    source = MemorySource(X, w, chunk_rows=part_rows)
    return method(source, engine, np.random.default_rng(seed), k, 1.0, **options)


def squares(X, centers):
    return ((X[:, None] - centers) ** 2).sum(-1)


def potential(X, centers):
    return squares(X, centers).min(1).sum()


class Counting(Serial):
    def __init__(self):
        object.__setattr__(self, "passes", 0)

    def _run(self, *args):
        object.__setattr__(self, "passes", self.passes + 1)
        return super()._run(*args)


# quality


@pytest.mark.parametrize("X, k", [(LARGE, 20), (BLOBS, 40), (rng.standard_t(2, size=(3000, 4)), 30)])
def test_centers_are_as_good_as_those_of_plusplus(X, k):
    ours = [potential(X, seed(X, k, s)) for s in range(12)]
    theirs = [potential(X, greedy(Chunk(X, None, 0), np.random.default_rng(s), k, 1.0)) for s in range(12)]
    assert np.mean(ours) <= np.mean(theirs)  # means of candidates in place of rows


@pytest.mark.parametrize("part_rows", [97, None], ids=["parts", "whole"])
def test_every_one_of_forty_distant_groups_gets_its_center(part_rows):
    for s in range(10):
        assert sorted(squares(seed(BLOBS, 40, s, part_rows=part_rows), CORNERS).argmin(1)) == list(range(40))


def test_more_rounds_are_made_while_the_potential_falls():
    """Every distance is a thousand times the one before: a round finds the farthest, which hide all others."""
    line = 1000.0 ** np.arange(8)
    X = np.concatenate([np.zeros(2000), line, -line])[:, None]
    for s in range(5):
        engine = Counting()
        found = seed(X, 17, s, engine=engine)
        assert sorted(found.ravel()) == sorted([0.0, *line, *-line])
        assert 5 < engine.passes < 16


def test_passes_are_the_round_and_two():
    for X, k in ((LARGE, 100), (BLOBS, 40)):
        engine = Counting()
        seed(X, k, part_rows=500, engine=engine)
        assert engine.passes == 3


# probabilities


def drawn(X, square, w, s, wanted=3.0, part_rows=2):
    """Values that one round samples for given squared distances."""

    def step(chunk):
        return arrivals(square[chunk.first : chunk.first + len(chunk.X)], s, wanted, SQUARES, chunk)

    return Serial().sum(step, MemorySource(X, w, chunk_rows=part_rows)).rows.ravel()


VALUES = np.arange(5.0)[:, None]
SQUARE = np.array([0.0, 1.0, 2.0, 5.0, 30.0])
RUNS = 2000


def shares(X, square, w=None, part_rows=2):
    counts = np.zeros(5)
    for s in range(RUNS):
        counts[np.unique(drawn(X, square, w, s, part_rows=part_rows)).astype(int)] += 1
    return counts / RUNS


@pytest.mark.parametrize("part_rows", [1, 2, 5])
@pytest.mark.parametrize("w", [None, np.array([1.0, 1.0, 3.0, 0.0, 0.5])], ids=["", "weighted"])
def test_rows_are_sampled_with_the_documented_probability(w, part_rows):
    mass = SQUARE * (1 if w is None else w)
    wanted = 1 - np.exp(-3 * mass / mass.sum())
    found = shares(VALUES, SQUARE, w, part_rows)
    assert np.all(found[mass == 0] == 0)
    assert np.abs(found - wanted).max() < 4 * np.sqrt(0.25 / RUNS)


def test_weight_two_is_the_row_twice():
    heavy = shares(VALUES, SQUARE, np.full(5, 2.0))
    twice = shares(np.repeat(VALUES, 2, axis=0), np.repeat(SQUARE, 2), part_rows=3)
    assert np.abs(heavy - twice).max() < 4 * np.sqrt(2 * 0.25 / RUNS)


def test_rows_are_sampled_independently():
    together = np.array([np.isin([3.0, 4.0], drawn(VALUES, SQUARE, None, s, part_rows=1)) for s in range(RUNS)])
    counts = [[np.sum((together == [a, b]).all(axis=1)) for b in (0, 1)] for a in (0, 1)]
    assert stats.fisher_exact(counts).pvalue > 1e-3


def test_rows_that_arrive_late_are_removed_when_chunks_are_added():
    a = Arrivals(1.0, np.array([0.5, 2.9]), VALUES[:2], np.array([1.0, 2.0]), 3.0)
    b = Arrivals(2.0, np.array([0.9, 1.4]), VALUES[2:4], np.array([3.0, 4.0]), 3.0)
    assert (a + b).rows.ravel().tolist() == [0.0, 2.0]
    assert (a + b).weight.tolist() == [1.0, 3.0]
    assert (a + b).potential == 3.0


def test_rows_without_weight_are_never_chosen():
    w = np.arange(len(LARGE)) % 2 * rng.exponential(size=len(LARGE))
    for far, dtype in ((1e6, np.float64), (1e30, np.float32)):
        X = LARGE.astype(dtype)
        X[::2] += dtype(far)
        assert np.abs(seed(X, 30, w=w)).max() < 10


# any source, any engine


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_threads_gives_the_same_bits(dtype):
    X, w = LARGE.astype(dtype), rng.exponential(size=len(LARGE))
    alone = seed(X, 25, w=w, part_rows=150)
    assert alone.dtype == dtype
    for n_jobs in (1, 2, 5):
        np.testing.assert_array_equal(seed(X, 25, w=w, part_rows=150, engine=Threads(n_jobs)), alone)


def test_equal_blocks_of_a_dask_array_give_the_same_bits():
    da = pytest.importorskip("dask.array")
    from coterie.data.dask import DaskSource
    from coterie.engines.dask import Dask

    w = rng.exponential(size=len(LARGE))
    lazy = DaskSource(da.from_array(LARGE, chunks=(1000, -1)), da.from_array(w, chunks=1000))
    there = scalable(lazy, Dask(), np.random.default_rng(0), 25, 1.0)
    np.testing.assert_array_equal(there, seed(LARGE, 25, w=w, part_rows=1000))


def test_sparse_rows_give_what_dense_rows_give():
    X = sparse.random_array((3000, 40), density=0.1, rng=rng, format="csr")
    np.testing.assert_allclose(seed(X, 12, part_rows=700), seed(X.toarray(), 12, part_rows=700), rtol=1e-9, atol=1e-12)


def test_rows_on_disk_give_what_rows_in_memory_give(tmp_path):
    np.save(tmp_path / "rows.npy", LARGE)
    here = seed(LARGE, 12)
    there = scalable(as_source(tmp_path / "rows.npy"), Serial(), np.random.default_rng(0), 12, 1.0)
    np.testing.assert_array_equal(there, here)


# few rows, few centers


def test_as_many_centers_as_rows_are_the_rows():
    X = np.cumsum(rng.exponential(size=30) ** 4)[:, None]
    for s in range(5):
        assert sorted(seed(X, 30, s).ravel()) == sorted(X.ravel())


def test_fewer_distinct_rows_than_centers_repeat_one():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [0.0, 3.0]], 10, axis=0)
    for k in (3, 4, 9):
        centers = seed(X, k, part_rows=7)
        assert centers.shape == (k, 2)
        assert len(np.unique(centers, axis=0)) == 3


def test_one_center_is_near_the_mean():
    assert np.abs(seed(LARGE, 1)).max() < 2
    assert seed(np.ones((5, 2)), 1).tolist() == [[1, 1]]


def test_rows_of_any_scale():
    base = seed(LARGE, 12)
    for unit in (2.0**-80, 2.0**80):
        source = MemorySource(LARGE * unit)
        np.testing.assert_array_equal(scalable(source, Serial(), np.random.default_rng(0), 12, unit), base * unit)


# beside other centers


def test_new_centers_are_far_from_the_chosen_ones():
    for s in range(5):
        beside = seed(BLOBS, 15, s, chosen=CORNERS[:25])
        assert sorted(squares(beside, CORNERS).argmin(1)) == list(range(25, 40))


def test_chosen_centers_are_included_if_there_are_few_rows():
    X = np.repeat(VALUES, 3, axis=0)
    found = seed(X, 3, chosen=VALUES[:2])
    assert sorted(found.ravel()) == [2.0, 3.0, 4.0]
    assert seed(X, 5, chosen=VALUES[:2]).shape == (5, 1)


def test_chosen_centers_stay_while_the_others_move():
    """Of rows between 0 and 1 those above (c - 0.2) / 2 are nearer to c than to -0.2, and their mean is c = 0.6."""
    X = np.linspace(0, 1, 4001)[:, None]
    found = [seed(X, 1, s, chosen=np.array([[-0.2]])).item() for s in range(20)]
    assert np.mean(found) == pytest.approx(0.6, abs=0.06)  # 0.75 if both moved


# the estimators


@pytest.mark.parametrize("model", [KMeans, MiniBatchKMeans])
def test_estimators_support_this_initialisation(model):
    found = model(40, init="k-means||", random_state=0).fit(BLOBS)
    assert sorted(squares(found.cluster_centers_, CORNERS).argmin(1)) == list(range(40))


def test_frozen_centers_stay():
    found = KMeans(40, init="k-means||", frozen_centers=CORNERS[:7], random_state=0).fit(BLOBS)
    np.testing.assert_array_equal(found.cluster_centers_[:7], CORNERS[:7])
    assert sorted(squares(found.cluster_centers_, CORNERS).argmin(1)) == list(range(40))
