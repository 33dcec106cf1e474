"""Too many clusters, or too few: humps between neighbours, and within clusters."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from coterie.diagnosis.clusters import Clusters
from coterie.diagnosis.dip import dip_test
from coterie.diagnosis.findings import Check, count, judge, listed, not_measured, percent
from coterie.diagnosis.shapes import Axes
from coterie.metrics import silhouette_samples

ERROR = 0.01
ONE_HUMP = 0.5
MISPLACED = 0.05
ROWS = 1000  # of a dip test
LEAST_ROWS = 50  # of one that is to show that there is no valley
ROWS_FOR_SILHOUETTES = 2000


def too_many_clusters(clusters: Clusters, rng: np.random.Generator) -> Check:
    """Dip tests of neighbours along the line of their means: the largest p-value.

    Two pieces of one hump make one hump, whose dip is less than the median of that of even rows (p > 0.5; normal rows
    have p near 1); a valley between two clusters makes it large. For every cluster its nearest neighbour is looked at.
    """
    name = "too_many_clusters"
    pairs = _neighbours(clusters)
    tests = {}
    for i, j in pairs:
        both = _side_by_side(clusters, i, j, rng)
        if len(both) >= LEAST_ROWS:
            tests[i, j] = dip_test(clusters.table.X[both] @ (clusters.means[j] - clusters.means[i]))
    if not tests:
        return not_measured(name, f"needs two neighbours of {LEAST_ROWS} rows together")
    merged = sorted((pair for pair in tests if tests[pair].p > ONE_HUMP), key=lambda pair: -tests[pair].p)
    worst = max(tests, key=lambda pair: tests[pair].p)
    told = [f"{clusters.names[i]} and {clusters.names[j]}" for i, j in merged]
    return judge(
        name,
        tests[worst].p,
        ONE_HUMP,
        sum(test.n for test in tests.values()),
        bool(merged),
        "warning",
        f"There is no valley between clusters {listed(told, 3)}: along the line of their means rows make one hump "
        f"(dip {tests[worst].value:.3f}, p = {tests[worst].p:.2g}; {clusters.told}).",
        f"A smaller n_clusters: {count(len(merged), 'pair')} of neighbours may be one cluster. If the cluster is long, "
        "GaussianMixture keeps it whole.",
        pairs=[[clusters.names[i], clusters.names[j]] for i, j in merged],
    )


def too_few_clusters(clusters: Clusters, axes: dict[int, Axes], rng: np.random.Generator) -> Check:
    """Dip tests of every cluster along its two longest axes: the least p-value, times the number of tests."""
    name = "too_few_clusters"
    tests = {
        (j, axis): dip_test(_some(a.scores[:, axis], rng))
        for j, a in axes.items()
        for axis in range(min(2, len(a.variances)))
    }
    if not tests:
        return not_measured(name, "needs a cluster of 30 rows")
    least = ERROR / len(tests)
    split = sorted({j for (j, _), test in tests.items() if test.p < least})
    worst = min(tests, key=lambda pair: tests[pair].p)
    return judge(
        name,
        min(1.0, tests[worst].p * len(tests)),
        ERROR,
        sum(test.n for test in tests.values()),
        bool(split),
        "warning",
        f"{count(len(split), 'cluster')} of {clusters.k} ({listed([clusters.names[j] for j in split])}) may be "
        f"several. Cluster {clusters.names[worst[0]]} has more than one hump along its "
        f"{('longest', 'second')[worst[1]]} axis (dip {tests[worst].value:.3f}, p = {tests[worst].p:.2g}; "
        f"{clusters.told}).",
        "A larger n_clusters; KMeans(search='fast') if K is right and a start has merged two.",
        clusters=[clusters.names[j] for j in split],
    )


def boundary_rows(clusters: Clusters, rng: np.random.Generator, n_jobs: int | None) -> Check:
    """Share of rows with a silhouette below 0: nearer, on average, to the rows of another cluster. O(2000² d)."""
    name = "boundary_rows"
    drawn = clusters.table.draw(ROWS_FOR_SILHOUETTES, rng)
    drawn = drawn[clusters.codes[drawn] >= 0]
    sizes = np.bincount(clusters.codes[drawn])
    if np.count_nonzero(sizes) < 2 or sizes.max() < 2:
        return not_measured(name, "needs two clusters, one of two rows")
    silhouettes = silhouette_samples(clusters.table.X[drawn], clusters.codes[drawn], n_jobs=n_jobs)
    w = clusters.table.w[drawn]
    share, mean = float(w @ (silhouettes < 0) / w.sum()), float(w @ silhouettes / w.sum())
    return judge(
        name,
        share,
        MISPLACED,
        len(drawn),
        share > MISPLACED and clusters.takes_round,
        "warning" if share > 0.2 else "note",
        f"{percent(share)} of {len(drawn):,} rows are nearer to another cluster than to their own (silhouettes below "
        f"0; the mean of all is {mean:.2f}; {clusters.told}).",
        "GaussianMixture or FuzzyCMeans, which give shares in several clusters instead of one label; or another "
        "n_clusters.",
        mean_silhouette=mean,
    )


def _neighbours(clusters: Clusters) -> list[tuple[int, int]]:
    """Every cluster with the one whose mean is nearest, each pair once."""
    if clusters.k < 2:
        return []
    apart = cdist(clusters.means, clusters.means)
    np.fill_diagonal(apart, np.inf)
    return sorted({(min(i, int(j)), max(i, int(j))) for i, j in enumerate(apart.argmin(axis=1))})


def _side_by_side(clusters: Clusters, i: int, j: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of two clusters, of the larger no more than four times those of the smaller, else its valley drowns."""
    few, many = sorted((clusters.members[i], clusters.members[j]), key=len)
    few = clusters.table.draw(ROWS // 2, rng, few)
    return np.concatenate([few, clusters.table.draw(min(4 * len(few), ROWS - len(few)), rng, many)])


def _some(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """At most `ROWS` of them."""
    return values if len(values) <= ROWS else rng.choice(values, ROWS, replace=False)
