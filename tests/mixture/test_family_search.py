"""The search for the start of mixtures of families that are not Gaussian mixtures."""

import numpy as np
import pytest

from coterie import Mixture
from coterie.core.nested_arrays import select
from coterie.core.protocols import Chunk
from coterie.families import Poisson, StudentT
from coterie.mixture.family_em import MixtureEM
from coterie.mixture.family_trials import FamilyTrials
from coterie.mixture.rearrange import cross, redivide, relocate, split_and_merge
from families.cases import learned

pytestmark = pytest.mark.whole_search
RATES = np.array([[1.0, 20.0], [20.0, 1.0], [20.0, 20.0], [60.0, 60.0]])


def counts(n=200, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(RATES), size=n)
    return rng.poisson(RATES[labels]).astype(float), labels


def family_trials(X, family, k, known=None):
    model = MixtureEM(k, learned(family, X))
    return FamilyTrials(model, Chunk(X, np.ones(len(X)), 0, known), np.random.default_rng(0))


@pytest.mark.parametrize("family", [Poisson(), StudentT()], ids=lambda family: family.name)
def test_new_starts_are_probabilities(family):
    trials = family_trials(counts()[0], family, 4)
    parents = trials.first(trials.random_starts(6))
    for move in (relocate, redivide, cross):
        starts = move(trials, parents, 9)
        assert starts.shape == (9, 200, 4)
        np.testing.assert_allclose(starts.sum(axis=2), 1.0, rtol=1e-9)
    splits = split_and_merge(trials, select(parents, [0]), 9)
    assert len(splits) == 9
    np.testing.assert_allclose(splits.sum(axis=2), 1.0, rtol=1e-9)


def test_the_first_move_merges_what_is_one_cluster_and_splits_what_is_two():
    X, labels = counts()
    wrong = labels.copy()
    wrong[labels == 1] = 0  # two clusters in one component,
    wrong[labels == 3] = np.where(np.arange((labels == 3).sum()) % 2, 1, 3)  # and one in two
    trials = family_trials(X, Poisson(), 4)
    start, true = ((each[:, None] == np.arange(4)).astype(float)[None] for each in (wrong, labels))
    start = trials.advance(trials.first(start), 5)[0]
    moved = trials.first(split_and_merge(trials, start, 1))
    assert trials.advance(moved, 20)[1] == pytest.approx(trials.advance(trials.first(true), 20)[1], abs=0.1)


@pytest.mark.parametrize("method", ["k-means++", "random_from_data"])
def test_known_components_start_at_their_known_rows(method):
    X, labels = counts()
    known = np.where((labels == 3) & (np.arange(200) < 60), 0, -1)
    trials = family_trials(X, Poisson(), 4, known)
    resp = trials.starts(method, 20)
    assert (resp[:, labels == 3, 0].mean(axis=1) > 0.5).all()
    assert (trials.first(resp).parts.rate[:, 0] > 30).all()


def test_splits_find_clusters_that_random_starts_miss():
    """Twelve clusters of very different counts: an average row has larger counts than most."""
    rng = np.random.default_rng(0)
    X = rng.poisson(np.repeat(10.0 ** np.linspace(1, 4, 12), 40)[:, None], (480, 2)).astype(float)
    for seed in range(3):
        model = Mixture(12, family="poisson", search="thorough", random_state=seed).fit(X)
        assert np.bincount(model.labels_, minlength=12).min() >= 35
