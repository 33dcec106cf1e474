"""Dunn's index with every choice of its two distances, against loops over the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.metrics import dunn_score
from coterie.metrics.dunn import INTER, INTRA
from many_parts import many_strips

rng = np.random.default_rng(4)
LABELS = np.concatenate([np.arange(4), rng.integers(0, 4, 246)])
X = rng.normal(size=(250, 3)) + 4 * rng.normal(size=(4, 3))[LABELS]
WEIGHTS = rng.integers(0, 3, 250)


@pytest.fixture(autouse=True)
def in_strips(monkeypatch):
    many_strips(monkeypatch, 30 * 250)


def by_hand(X, labels, metric, inter, intra):
    groups = [X[labels == label] for label in np.unique(labels)]
    means = np.stack([group.mean(axis=0) for group in groups])
    gaps, widths = [], []
    for i, one in enumerate(groups):
        D = pairwise(one, metric=metric)
        n = len(one)
        about = 2 * pairwise(one, means[i : i + 1], metric=metric).mean()
        widths.append({"complete": D.max(), "average": D.sum() / max(1, n * (n - 1)), "centroid": about}[intra])
        for j, other in enumerate(groups):
            if i != j:
                D = pairwise(one, other, metric=metric)
                to = pairwise(means[i : i + 1], means[j : j + 1], metric=metric)[0, 0]
                gaps.append({"single": D.min(), "complete": D.max(), "average": D.mean(), "centroid": to}[inter])
    return min(gaps) / max(widths)


@pytest.mark.parametrize("inter", INTER)
@pytest.mark.parametrize("intra", INTRA)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_every_choice_is_that_of_a_loop(inter, intra, metric):
    how = {"metric": metric, "intercluster": inter, "intracluster": intra}
    want = by_hand(X, LABELS, metric, inter, intra)
    assert dunn_score(X, LABELS, **how) == pytest.approx(want, rel=1e-10)
    assert dunn_score(X.astype(np.float32), LABELS, **how) == pytest.approx(want, rel=1e-4)
    order = rng.permutation(250)
    assert dunn_score(X[order], np.array(list("dbca"))[LABELS[order]], **how) == pytest.approx(want, rel=1e-10)
    again = by_hand(np.repeat(X, WEIGHTS, axis=0), np.repeat(LABELS, WEIGHTS), metric, inter, intra)
    assert dunn_score(X, LABELS, sample_weight=WEIGHTS, **how) == pytest.approx(again, rel=1e-10)
    assert dunn_score(X, LABELS, n_jobs=1, **how) == dunn_score(X, LABELS, n_jobs=3, **how)
    if "centroid" not in (inter, intra):
        how["metric"] = "precomputed"
        assert dunn_score(pairwise(X, metric=metric), LABELS, **how) == pytest.approx(want, rel=1e-10)


def test_limits():
    assert dunn_score([[0.0], [0.0], [1.0]], [0, 0, 1]) == np.inf
    assert dunn_score([[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]) == 0.0
    assert dunn_score([[0.0], [1.0], [3.0]], [0, 0, 1], intracluster="average") == 2.0


def test_invalid_input_is_an_error():
    with pytest.raises(InputError, match=r"so far apart that their distances overflow|cannot represent"):
        dunn_score(np.tile(X / np.abs(X).max() * 3e38, 20).astype(np.float32), LABELS, metric="manhattan")
    with pytest.raises(ParameterError, match="intercluster must be 'single' or"):
        dunn_score(X, LABELS, intercluster="ward")
    with pytest.raises(ParameterError, match="intracluster must be 'complete' or"):
        dunn_score(X, LABELS, intracluster="single")
    with pytest.raises(ParameterError, match="'centroid' needs numeric rows"):
        dunn_score(pairwise(X), LABELS, metric="precomputed", intercluster="centroid")
    with pytest.raises(InputError, match="labels are all 0"):
        dunn_score(X, np.zeros(250, int))
    with pytest.raises(InputError, match="only one cluster has rows with positive sample_weight"):
        dunn_score(X, LABELS, sample_weight=LABELS == 1)
