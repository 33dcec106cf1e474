"""The clusters that `diagnose` checks if no model is passed: K-means, with K chosen by silhouette."""

import numpy as np

from coterie.diagnosis.n_clusters_checks import too_few_clusters
from coterie.diagnosis.partition import Partition
from coterie.diagnosis.sample import Sample, count_distinct
from coterie.diagnosis.shape_checks import principal_axes
from coterie.kmeans.kmeans import KMeans
from coterie.metrics import silhouette_score

MIN_ROWS = 20
ROWS = 2000
MAX_CLUSTERS = 20


def default_clusters(sample: Sample, rng: np.random.Generator, n_jobs: int | None) -> Partition:
    """K-means with the K from 2 to 20 that has the best mean silhouette on 2,000 rows.

    Values of K that leave a cluster with two modes are used only if all do, because silhouettes alone tend to merge
    two clusters that are close together. About 20 fits of 2,000 rows, and one of the whole sample.
    """
    index, seed = sample.draw(ROWS, rng), int(rng.integers(2**31))
    X, w = sample.X[index], sample.w[index]
    scores = {}
    for k in range(2, min(MAX_CLUSTERS, len(index) // 5, count_distinct(X)) + 1):
        labels = KMeans(k, n_init=3, random_state=seed, n_jobs=n_jobs).fit(X, sample_weight=w).labels_
        scores[k] = silhouette_score(X, labels, sample_weight=w, n_jobs=n_jobs)
    best = sorted(scores, key=scores.__getitem__, reverse=True) or [1]
    for k in best:
        clusters = _fit(sample, k, seed, n_jobs)
        if too_few_clusters(clusters, principal_axes(clusters, rng), rng).finding is None:
            return clusters
    return _fit(sample, best[0], seed, n_jobs)


def _fit(sample: Sample, k: int, seed: int, n_jobs: int | None) -> Partition:
    model = KMeans(k, n_init=4, random_state=seed, n_jobs=n_jobs).fit(sample.X, sample_weight=sample.w)
    codes: np.ndarray = model.labels_.astype(np.int64)
    return Partition(sample, codes, [str(j) for j in range(k)], f"K-means with K = {k}, chosen by silhouette")
