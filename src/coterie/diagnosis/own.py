"""The clusters a diagnosis looks at where none are given: those of K-means, with a number that it chooses."""

from __future__ import annotations

import numpy as np

from coterie.diagnosis.clusters import Clusters
from coterie.diagnosis.number import too_few_clusters
from coterie.diagnosis.shapes import axes_of
from coterie.diagnosis.table import Array, Table, distinct
from coterie.kmeans.kmeans import KMeans
from coterie.metrics import silhouette_score

LEAST_ROWS = 20
ROWS = 2000
MOST_CLUSTERS = 20


def own_clusters(table: Table, rng: np.random.Generator, n_jobs: int | None) -> Clusters:
    """K-means with the number, from 2 to 20, of best mean silhouette on 2,000 rows.

    Of numbers that leave clusters with a second hump only if there are no others: silhouettes alone like to take two
    clusters that are close together for one. About 20 fits of 2,000 rows, and one of the sample.
    """
    drawn, seed = table.draw(ROWS, rng), int(rng.integers(2**31))
    X, w = table.X[drawn], table.w[drawn]
    scores = {}
    for k in range(2, min(MOST_CLUSTERS, len(drawn) // 5, distinct(X)) + 1):
        labels = KMeans(k, n_init=3, random_state=seed, n_jobs=n_jobs).fit(X, sample_weight=w).labels_
        scores[k] = silhouette_score(X, labels, sample_weight=w, n_jobs=n_jobs)
    best = sorted(scores, key=scores.__getitem__, reverse=True) or [1]
    tried = (_fitted(table, k, seed, n_jobs) for k in best)
    return next((found for found in tried if not _has_second_hump(found, rng)), _fitted(table, best[0], seed, n_jobs))


def _fitted(table: Table, k: int, seed: int, n_jobs: int | None) -> Clusters:
    model = KMeans(k, n_init=4, random_state=seed, n_jobs=n_jobs).fit(table.X, sample_weight=table.w)
    codes: Array = model.labels_.astype(np.int64)
    return Clusters(table, codes, [str(j) for j in range(k)], f"K-means, K = {k} by silhouette")


def _has_second_hump(clusters: Clusters, rng: np.random.Generator) -> bool:
    return too_few_clusters(clusters, axes_of(clusters, rng), rng).finding is not None
