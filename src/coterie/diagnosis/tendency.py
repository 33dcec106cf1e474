"""Whether there are clusters at all."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from coterie.diagnosis.dip import Dip, dip_test
from coterie.diagnosis.findings import Check, judge, not_measured
from coterie.diagnosis.hopkins import hopkins
from coterie.diagnosis.table import Array, Table, distinct
from coterie.selection import gap_statistic

LEVEL = 0.01
EVEN = 0.05
ROWS = 1000
LEAST_ROWS = 50  # below which a test of the number of modes has no power
LEAST_FOR_PROBES = 100  # a tenth of which are probed
VIEWERS = 20
MOST_COLUMNS = 5  # of a box that is not all edge: H is Beta(m, m) away from edges
GAP_ROWS = 500
GAP_KS = (1, 2, 3, 5, 8)
REFERENCES = 10


def evenly_spread(table: Table, rng: np.random.Generator) -> Check:
    """Chance of Hopkins' statistic for rows thrown evenly into the box of the sample. O(m log m) for few columns.

    Above 5 % the rows cannot be told from such. Columns are scaled, which leaves even rows even.
    """
    name = "evenly_spread"
    varying = table.spread > 0
    if len(table.X) < LEAST_FOR_PROBES or not varying.any():
        return not_measured(name, f"needs {LEAST_FOR_PROBES} rows that are not all equal")
    if varying.sum() > MOST_COLUMNS:
        return not_measured(name, f"is all about edges beyond {MOST_COLUMNS} columns")
    found = hopkins(table.X[:, varying] / table.spread[varying], rng)
    return judge(
        name,
        found.p,
        EVEN,
        len(table.X),
        found.p > EVEN,
        "serious",
        f"The rows cannot be told from rows thrown evenly into a box (Hopkins' statistic {found.value:.2f}; such rows "
        f"exceed it with a chance of {found.p:.2g}): nothing lies together.",
        "Clusters of these rows are a cut of even ground: KMeans makes compact pieces of similar size, if that is what "
        "you need. Otherwise look for other columns.",
        hopkins=found.value,
        probes=found.probes,
    )


def one_cluster(table: Table, parted: bool, rng: np.random.Generator, n_jobs: int | None) -> Check:
    """Least p-value of tests that would see a second cluster: the check speaks where none does, above 1 %.

    Dip tests of the first principal component, and of the distances from 20 rows to all others, which have one mode
    if there is one round cluster (Kalogeratos & Likas 2012, Dip-means, NeurIPS). Where they see nothing, and no empty
    space parts the rows, the gap statistic: whether K-means gains more by 2, 3, 5 or 8 clusters than it does on even
    rows in a box along the principal axes. p-values are multiplied by their number (Bonferroni). O(1000 d²), and at
    worst K-means of 11 tables of 500 rows.
    """
    name = "one_cluster"
    if len(table.X) < LEAST_ROWS or not table.spread.any():
        return not_measured(name, f"needs {LEAST_ROWS} rows that are not all equal")
    drawn = table.draw(ROWS, rng)
    X = table.X[drawn]
    along, viewed = dip_test(first_component(X)), _from_viewers(X, rng)
    p = min(1.0, 2 * min(along.p, len(viewed) * min(view.p for view in viewed)))
    if p > LEVEL and not parted:
        p = min(p, _gap_p(table, rng, n_jobs))
    return judge(
        name,
        p,
        LEVEL,
        len(drawn),
        p > LEVEL and not parted,
        "warning",
        f"The rows look like a single cluster, as the columns are scaled now: neither their main direction (dip "
        f"{along.value:.3f}), nor the distances from {len(viewed)} of them, nor the gap statistic show a second one "
        f"(p = {p:.2g}, {len(drawn):,} rows).",
        "Do not trust a number of clusters that no test supports. They may still show after scaling, or in other "
        "columns; or compare GaussianMixture(1) with GaussianMixture(2) by bic, for clusters that overlap.",
        dip=along.value,
        p_main_direction=along.p,
        split_viewers=sum(view.p <= LEVEL for view in viewed),
        viewers=len(viewed),
    )


def first_component(X: Array) -> Array:
    """Rows along the direction in which they vary most (n,)."""
    X = X - X.mean(axis=0)
    if X.shape[1] <= len(X):
        return X @ np.linalg.eigh(X.T @ X)[1][:, -1]
    return np.linalg.eigh(X @ X.T)[1][:, -1]


def _gap_p(table: Table, rng: np.random.Generator, n_jobs: int | None) -> float:
    """Chance that even rows fall as far in log W from K = 1 on as the data, for any of the K tried.

    The fall of one table more, beside the mean and deviation of B of them, follows Student's t with B - 1 degrees.
    """
    drawn = table.draw(GAP_ROWS, rng)
    ks = [k for k in GAP_KS if k <= distinct(table.X[drawn]) // 2]
    if len(ks) < 2:
        return 0.0  # rows on two or three places are clusters as they are
    found = gap_statistic(
        table.X[drawn],
        ks,
        n_references=REFERENCES,
        reference="pca",
        sample_weight=table.w[drawn],
        n_jobs=n_jobs,
        random_state=int(rng.integers(2**31)),
    )
    fall = found.reference_log_w[:, :1] - found.reference_log_w[:, 1:]
    own = found.log_w[0] - found.log_w[1:]
    deviation = np.maximum(fall.std(axis=0, ddof=1) * np.sqrt(1 + 1 / REFERENCES), 1e-12)
    farthest = ((own - fall.mean(axis=0)) / deviation).max(initial=-np.inf)
    return min(1.0, len(own) * float(student.sf(farthest, REFERENCES - 1)))


def _from_viewers(X: Array, rng: np.random.Generator) -> list[Dip]:
    viewers = rng.choice(len(X), min(VIEWERS, len(X)), replace=False)
    return [dip_test(np.delete(np.sqrt(((X - X[i]) ** 2).sum(axis=1)), i)) for i in viewers]
