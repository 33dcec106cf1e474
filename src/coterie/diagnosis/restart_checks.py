"""Checks of the initialisation: K-means runs from random initialisations, compared with each other and with the fit."""

from typing import Any, NamedTuple

import numpy as np

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.data.memory import MemorySource
from coterie.diagnosis.findings import Check, measured, not_measured, percent, with_finding
from coterie.diagnosis.partition import Partition
from coterie.diagnosis.sample import count_distinct
from coterie.kmeans.kmeans import KMeans
from coterie.metrics import adjusted_rand_score, inertia

RESTARTS = 10
ROWS = 5000
MIN_AGREEMENT = 0.9
MAX_EXCESS = 0.01


class Restarts(NamedTuple):
    """Ten runs of K-means on a sample of the rows."""

    X: Array  # (m, d)
    w: Array  # (m,)
    codes: Array  # (m,) the clusters that are checked
    inertias: Array  # (10,)
    agreement: Array  # (10,) adjusted Rand index with the best run

    def excess(self, inertia: Any) -> Any:
        """Return by which share `inertia` exceeds the best inertia, without the noise of rounding."""
        return np.round(np.minimum(inertia / max(self.inertias.min(), 1e-300), 1e9) - 1, 12)


def restart_checks(clusters: Partition, rng: np.random.Generator, n_jobs: int | None) -> list[Check]:
    """Run K-means ten times on 5,000 rows, each with one initialisation, and check the agreement and the inertia."""
    names = ("unstable_starts", "missed_optimum")
    if not (clusters.assumes_round and clusters.assumes_equal):
        return [not_measured(name, f"applies to K-means only, not to {clusters.source}") for name in names]
    restarts = _run_restarts(clusters, rng, n_jobs)
    if restarts is None:
        return [not_measured(name, "needs two clusters, and more distinct rows than clusters") for name in names]
    return [unstable_starts(clusters, restarts), missed_optimum(clusters, restarts, n_jobs)]


def unstable_starts(clusters: Partition, restarts: Restarts) -> Check:
    """Mean adjusted Rand index with the best run.

    Below 0.9, about one in ten pairs of rows that are together in one run are apart in another.
    """
    agreement, excess = float(restarts.agreement.mean()), restarts.excess(restarts.inertias)
    n_worse = int(np.count_nonzero(excess > MAX_EXCESS))
    return with_finding(
        measured("unstable_starts", agreement, MIN_AGREEMENT, len(restarts.X)),
        agreement < MIN_AGREEMENT,
        "warning",
        f"The clusters depend on the initialisation: {RESTARTS} runs of K-means with K = {clusters.k} agree with the "
        f"best run by a mean adjusted Rand index of only {agreement:.2f} ({count(len(restarts.X), 'row')}). The "
        f"inertia of {count(n_worse, 'run')} is more than 1% above the best, by up to {percent(excess.max())}.",
        "Use KMeans(search='fast'), which improves on the result of restarts. Or try another n_clusters: runs disagree "
        "most if K does not fit the data.",
        agreement=restarts.agreement.tolist(),
        above_best=excess.tolist(),
    )


def missed_optimum(clusters: Partition, restarts: Restarts, n_jobs: int | None) -> Check:
    """Inertia of the checked clusters relative to a better solution.

    The rows of the restarts only show whether to look for one: k means of m rows fit these rows better than means of
    other rows do, so their threshold is 1 % plus 2 k / m. A finding needs a solution for all rows.
    """
    name, k = "missed_optimum", clusters.k
    if not clusters.minimises_inertia:
        return not_measured(name, f"{clusters.source} does not minimise the inertia")
    value = float(restarts.excess(inertia(restarts.X, restarts.codes, sample_weight=restarts.w)))
    threshold = MAX_EXCESS + 2 * k / len(restarts.X)
    if value <= threshold or clusters.all_codes is None:
        return measured(name, min(value, threshold), threshold, len(restarts.X))
    if not isinstance(clusters.sample.source, MemorySource):
        return not_measured(name, "a claim needs a better solution for all rows, and these are not in memory")
    rows = clusters.sample.source.subset(np.flatnonzero(clusters.all_codes >= 0))
    codes = clusters.all_codes[clusters.all_codes >= 0]
    better = KMeans(k, search="fast", random_state=clusters.random_state, n_jobs=n_jobs)
    better.fit(rows.X, sample_weight=rows.w)
    value = inertia(rows.X, codes, sample_weight=rows.w, n_jobs=n_jobs) / max(better.inertia_, 1e-300) - 1
    return with_finding(
        measured(name, min(value, 1e9), MAX_EXCESS, len(codes)),
        value > MAX_EXCESS,
        "warning",
        f"The inertia of these clusters is {percent(value)} above the inertia of KMeans(search='fast'), on all "
        f"{count(len(codes), 'row')}.",
        f"Use KMeans({k}, search='fast', random_state={clusters.random_state}).",
    )


def _run_restarts(clusters: Partition, rng: np.random.Generator, n_jobs: int | None) -> Restarts | None:
    index = clusters.sample.draw(ROWS, rng)
    index = index[clusters.codes[index] >= 0]
    X, w, k = clusters.sample.X[index], clusters.sample.w[index], clusters.k
    if k < 2 or count_distinct(X) <= k:
        return None
    models = [
        KMeans(k, n_init=1, algorithm="lloyd", random_state=int(seed), n_jobs=n_jobs).fit(X, sample_weight=w)
        for seed in rng.integers(2**31, size=RESTARTS)
    ]
    inertias = np.array([model.inertia_ for model in models])
    best = models[int(inertias.argmin())].labels_
    agreement = np.array([adjusted_rand_score(best, model.labels_) for model in models])
    return Restarts(X, w, clusters.codes[index], inertias, agreement)
