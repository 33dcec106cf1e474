"""The label of a row does not depend on the rows that are predicted with it, also if rounding alone could decide.

Few rows have other kernels than many, which add in another order. A palindrome is as far from a row as from the same
row backwards, in exact arithmetic, but the computed distances differ in their last digits.
"""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from coterie import DBSCAN, HDBSCAN, AgglomerativeClustering, DivisiveClustering, KMedoids
from coterie.core.protocols import Chunk
from coterie.families import Exponential, VonMisesFisher
from coterie.families.exponential import Rates
from coterie.families.von_mises_fisher import Directions
from coterie.mixture.family_em import Mix
from short_searches import short_searches
from zoo import family_mixture, mixture

ALONE, TOGETHER = 60, 4000
METRICS = ("euclidean", "manhattan", "cosine", "correlation", "canberra", "braycurtis", "gower", "dtw")
LINKAGES = ("ward", "single", "complete", "average", "weighted", "centroid")
ESTIMATORS = [
    *(KMedoids(4, metric=metric, random_state=0) for metric in METRICS),
    *(AgglomerativeClustering(4, linkage=linkage) for linkage in LINKAGES),
    DivisiveClustering(4),
    HDBSCAN(min_cluster_size=5),
    coterie.KMeans(4, n_init=1, random_state=0),
    coterie.KMedians(4, random_state=0),
    coterie.KMedians(4, metric="l2", random_state=0),
    coterie.SphericalKMeans(4, random_state=0),
    coterie.FuzzyCMeans(4, random_state=0),
]


def tables(d, dtype, n=TOGETHER):
    """Rows around two centers and the same rows backwards, and palindromes."""
    rng = np.random.default_rng(d)
    rows = rng.random((2, 2 * d))[np.arange(60) % 2] + 0.05 * rng.normal(size=(60, 2 * d))
    half = rng.random((n, d))
    return np.abs(np.vstack([rows, rows[:, ::-1]])).astype(dtype), np.hstack([half, half[:, ::-1]]).astype(dtype)


def check(assign, X):
    together = assign(X)
    np.testing.assert_array_equal(assign(X[:ALONE]), together[:ALONE])
    np.testing.assert_array_equal([assign(X[i : i + 1])[0] for i in range(ALONE)], together[:ALONE])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [4, 11])
@pytest.mark.parametrize("model", ESTIMATORS, ids=str)
def test_the_label_of_a_row_does_not_depend_on_other_rows(model, d, dtype):
    rows, X = tables(d, dtype, 400 if getattr(model, "metric", None) == "dtw" else TOGETHER)
    with short_searches():
        check(model.fit(rows).predict, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("structure", ["EII", "VVI", "VVV", "EEE"])
def test_the_component_of_a_row_does_not_depend_on_other_rows(structure, dtype):
    rows, X = tables(11, dtype)
    model = mixture(2, structure, rows)
    center = rows[:1].astype(np.float64)
    k, d = 2, rows.shape[1]
    shape = {"spherical": np.ones(k), "diag": np.ones((k, d)), "tied": np.eye(d), "full": np.stack([np.eye(d)] * k)}
    c = model.components(np.full(k, 0.5), np.vstack([center, center[:, ::-1]]), 0.3 * shape[model.form])
    check(lambda part: model.assign(c, Chunk(part, None, 0)), X)


@pytest.mark.parametrize("name", ["exponential", "von_mises_fisher"])
def test_the_component_of_a_family_does_not_depend_on_other_rows(name):
    rows, X = tables(11, np.float64)
    center = np.vstack([rows[:1], rows[:1, ::-1]])
    if name == "exponential":
        family, parts = Exponential(), Rates(1 / center)
    else:
        family, parts = VonMisesFisher(), Directions(center / np.linalg.norm(rows[0]), np.full(2, 300.0))
    model = family_mixture(2, family, rows)
    check(lambda part: model.assign(Mix(np.full(2, 0.5), parts), Chunk(part, None, 0)), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [30, 1500, 5000])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("step", [0.1, 0.3, 1 / 3])
def test_rows_at_the_radius_of_dbscan_are_neighbours(step, metric, n, dtype):
    """Rows of a grid, and its step as the radius: neighbours in the grid are neighbours, whatever the rounding."""
    places = np.random.default_rng(0).integers(0, 6, size=(n, 2))
    X = (step * places).astype(dtype)
    model = DBSCAN(eps=step, min_samples=4, metric=metric).fit(X)
    exact = DBSCAN(eps=1.0, min_samples=4, metric=metric).fit(places.astype(np.float64))
    np.testing.assert_array_equal(model.labels_, exact.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal([model.predict(X[i : i + 1])[0] for i in range(30)], model.labels_[:30])
    tree = HDBSCAN(min_cluster_size=4, min_samples=4, metric=metric).fit(X)
    core = np.isin(np.arange(n), model.core_sample_indices_)
    np.testing.assert_array_equal(tree.cut(step), np.where(core, model.labels_, -1))
