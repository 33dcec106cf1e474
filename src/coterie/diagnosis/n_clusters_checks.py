"""Checks of the number of clusters: modes across neighbouring clusters and within clusters, and silhouettes."""

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from coterie.core.formatting import count
from coterie.diagnosis.dip import dip_test
from coterie.diagnosis.findings import Check, join_names, measured, not_measured, percent, verb, with_finding
from coterie.diagnosis.sample import Partition
from coterie.diagnosis.shape_checks import PrincipalAxes
from coterie.metrics import silhouette_samples

LEVEL = 0.01
UNIMODAL_P = 0.5
MAX_MISPLACED = 0.05
ROWS = 1000  # of a dip test
MIN_ROWS = 50  # of a dip test that is to show that there is one mode
ROWS_FOR_SILHOUETTES = 2000
MOVE_CENTERS = "Use {}, which moves centers from where there are too many of them to where there are too few."


def too_many_clusters(clusters: Partition, rng: np.random.Generator) -> Check:
    """Largest p-value of dip tests of neighbouring clusters, along the line through their means.

    Two halves of one mode together have one mode: their dip is below the median for uniform rows (p > 0.5; for normal
    rows, p is near 1). A gap between two clusters makes the dip large. Each cluster is tested with its nearest
    neighbour.
    """
    name = "too_many_clusters"
    tests = {}
    for i, j in _nearest_pairs(clusters):
        # At most four times as many rows from the larger cluster: otherwise it would hide a gap.
        small, large = sorted((clusters.members[i], clusters.members[j]), key=len)
        small = clusters.sample.draw(ROWS // 2, rng, small)
        large = clusters.sample.draw(min(4 * len(small), ROWS - len(small)), rng, large)
        index = np.concatenate([small, large])
        if len(index) >= MIN_ROWS:
            tests[i, j] = dip_test(clusters.sample.X[index] @ (clusters.means[j] - clusters.means[i]))
    if not tests:
        return not_measured(name, f"needs two neighbouring clusters with at least {MIN_ROWS} rows together")
    unimodal = sorted((pair for pair in tests if tests[pair].p > UNIMODAL_P), key=lambda pair: -tests[pair].p)
    worst = max(tests, key=lambda pair: tests[pair].p)
    pairs = [f"{clusters.names[i]} and {clusters.names[j]}" for i, j in unimodal]
    return with_finding(
        measured(name, tests[worst].p, UNIMODAL_P, sum(test.n for test in tests.values())),
        bool(unimodal),
        "warning",
        f"There is no gap between clusters {join_names(pairs, 3)}: along the line through their means, the rows have "
        f"only one mode (dip {tests[worst].value:.3f}, p = {tests[worst].p:.2g}).",
        f"Use a smaller n_clusters: {count(len(unimodal), 'pair')} of neighbouring clusters may "
        f"{verb(len(unimodal), 'be', 'each be')} a single cluster. If this cluster is elongated, use GaussianMixture, "
        "which does not split it.",
        pairs=[[clusters.names[i], clusters.names[j]] for i, j in unimodal],
    )


def too_few_clusters(clusters: Partition, axes: dict[int, PrincipalAxes], rng: np.random.Generator) -> Check:
    """Smallest p-value of dip tests of each cluster along its two longest axes, times the number of tests."""
    name = "too_few_clusters"
    tests = {
        (j, axis): dip_test(a.scores[:, axis] if a.n <= ROWS else rng.choice(a.scores[:, axis], ROWS, replace=False))
        for j, a in axes.items()
        for axis in range(min(2, len(a.variances)))
    }
    if not tests:
        return not_measured(name, "needs a cluster with at least 30 rows")
    level = LEVEL / len(tests)
    multimodal = sorted({j for (j, _), test in tests.items() if test.p < level})
    worst = min(tests, key=lambda pair: tests[pair].p)
    return with_finding(
        measured(name, min(1.0, tests[worst].p * len(tests)), LEVEL, sum(test.n for test in tests.values())),
        bool(multimodal),
        "warning",
        f"{len(multimodal):,} of {count(clusters.k, 'cluster')} "
        f"({join_names([clusters.names[j] for j in multimodal])}) may contain several clusters. Cluster "
        f"{clusters.names[worst[0]]} has more than one mode along its {('longest', 'second longest')[worst[1]]} axis "
        f"(dip {tests[worst].value:.3f}, p = {tests[worst].p:.2g}).",
        "Use a larger n_clusters. If K is right, use KMeans(search='thorough'): a poor initialisation may have merged "
        "two clusters.",
        clusters=[clusters.names[j] for j in multimodal],
    )


def without_contradiction(too_many: Check, too_few: Check) -> tuple[Check, Check]:
    """The two checks, with one finding if both have one: centers are in the wrong places, whatever their number."""
    many, few = too_many.finding, too_few.finding
    if many is None or few is None:
        return too_many, too_few
    pairs = [" and ".join(pair) for pair in many.details["pairs"]]
    finding = replace(
        few,
        sentence=f"{few.sentence} But there is no gap between clusters {join_names(pairs, 3)}. So the centers may be "
        "in the wrong places, and it is not clear whether there are too few or too many clusters.",
        remedy=MOVE_CENTERS.format("KMeans(search='thorough')") + " Then compare numbers of clusters with choose_k.",
        details=few.details | many.details,
    )
    reason = "see too_few_clusters: there, other clusters may contain several"
    return replace(too_many, finding=None, reason=reason), replace(too_few, finding=finding)


def boundary_rows(clusters: Partition, rng: np.random.Generator, n_jobs: int | None) -> Check:
    """Share of rows with a negative silhouette: on average, they are nearer to the rows of another cluster.

    O(2000² d).
    """
    name = "boundary_rows"
    index = clusters.sample.draw(ROWS_FOR_SILHOUETTES, rng)
    index = index[clusters.codes[index] >= 0]
    sizes = np.bincount(clusters.codes[index])
    if np.count_nonzero(sizes) < 2 or sizes.max() < 2:
        return not_measured(name, "needs two clusters, one of them with at least two rows")
    silhouettes = silhouette_samples(clusters.sample.X[index], clusters.codes[index], n_jobs=n_jobs)
    w = clusters.sample.w[index]
    share, mean = float(w @ (silhouettes < 0) / w.sum()), float(w @ silhouettes / w.sum())
    return with_finding(
        measured(name, share, MAX_MISPLACED, len(index)),
        share > MAX_MISPLACED and clusters.assumes_round,
        "warning" if share > 0.2 else "note",
        f"{percent(share)} of {count(len(index), 'row')} are nearer to another cluster than to their own (silhouette "
        f"below 0). The mean silhouette is {mean:.2f}.",
        "Use GaussianMixture or FuzzyCMeans, which give each row a degree of membership in every cluster. Or try "
        "another n_clusters.",
        mean_silhouette=mean,
    )


def _nearest_pairs(clusters: Partition) -> list[tuple[int, int]]:
    """Return each cluster with the cluster whose mean is nearest, each pair once."""
    if clusters.k < 2:
        return []
    distances = cdist(clusters.means, clusters.means)
    np.fill_diagonal(distances, np.inf)
    return sorted({(min(i, int(j)), max(i, int(j))) for i, j in enumerate(distances.argmin(axis=1))})
