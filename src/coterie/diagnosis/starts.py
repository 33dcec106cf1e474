"""What the start decides: K-means from several, beside each other and beside the fit that was given."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.diagnosis.clusters import Clusters
from coterie.diagnosis.findings import Check, judge, not_measured, percent
from coterie.diagnosis.table import Array, distinct
from coterie.kmeans.kmeans import KMeans
from coterie.metrics import adjusted_rand_score

STARTS = 10
ROWS = 5000
AGREED = 0.9
WORSE = 0.01


class Runs(NamedTuple):
    """K-means from ten starts, on some of the rows."""

    X: Array  # (m, d)
    w: Array  # (m,)
    codes: Array  # (m,) the clusters looked at
    inertias: Array  # (10,)
    agreement: Array  # (10,) adjusted Rand index with the best of them

    @property
    def above_best(self) -> Array:
        """How much more than the least each sum of squares is (10,)."""
        return self.over(self.inertias)

    def over(self, squares: Any) -> Any:
        return np.minimum(squares / max(self.inertias.min(), 1e-300), 1e9) - 1


def starts(clusters: Clusters, rng: np.random.Generator, n_jobs: int | None) -> list[Check]:
    """Ten single starts of K-means on 5,000 rows: how alike their labels are, and whether one beats the fit given."""
    names = ("unstable_starts", "missed_optimum")
    if not (clusters.takes_round and clusters.takes_equal):
        return [not_measured(name, f"is about K-means, not {clusters.told}") for name in names]
    runs = _ten_runs(clusters, rng, n_jobs)
    if runs is None:
        return [not_measured(name, "needs two clusters, and more different rows than clusters") for name in names]
    return [unstable_starts(clusters, runs), missed_optimum(clusters, runs)]


def unstable_starts(clusters: Clusters, runs: Runs) -> Check:
    """Mean adjusted Rand index with the best start.

    Below 0.9 about one pair of rows in ten that belong together for one start do not for another.
    """
    agreement, above = float(runs.agreement.mean()), runs.above_best
    return judge(
        "unstable_starts",
        agreement,
        AGREED,
        len(runs.X),
        agreement < AGREED,
        "warning",
        f"Other starts, other clusters: {STARTS} starts of K-means with K = {clusters.k} agree with the best by "
        f"a mean adjusted Rand index of {agreement:.2f}, and {np.count_nonzero(above > WORSE)} end more than 1% above "
        f"its sum of squares (the worst {percent(above.max())}; {len(runs.X):,} rows).",
        "KMeans(search='fast'), which goes on where restarts stop; and another n_clusters, for starts disagree most "
        "where K does not fit the data.",
        agreement=runs.agreement.tolist(),
        above_best=above.tolist(),
    )


def missed_optimum(clusters: Clusters, runs: Runs) -> Check:
    """Sum of squares of the clusters looked at above that of the best start.

    1 % is worth a word, and 2 k / m more, by which k means of m rows flatter themselves beside those of other rows.
    """
    name = "missed_optimum"
    if not clusters.least_squares:
        return not_measured(name, f"{clusters.told} did not seek the least sum of squares")
    value, allowed = float(runs.over(_squares(runs))), WORSE + 2 * clusters.k / len(runs.X)
    return judge(
        name,
        value,
        allowed,
        len(runs.X),
        value > allowed,
        "warning",
        f"The sum of squares of these clusters ({clusters.told}) is {percent(max(value, 0.0))} above that of the best "
        f"of {STARTS} starts of K-means on {len(runs.X):,} rows.",
        "KMeans(search='fast'), or a larger n_init.",
    )


def _ten_runs(clusters: Clusters, rng: np.random.Generator, n_jobs: int | None) -> Runs | None:
    drawn = clusters.table.draw(ROWS, rng)
    drawn = drawn[clusters.codes[drawn] >= 0]
    X, w, k = clusters.table.X[drawn], clusters.table.w[drawn], clusters.k
    if k < 2 or distinct(X) <= k:
        return None
    models = [
        KMeans(k, n_init=1, algorithm="lloyd", random_state=int(seed), n_jobs=n_jobs).fit(X, sample_weight=w)
        for seed in rng.integers(2**31, size=STARTS)
    ]
    inertias = np.array([model.inertia_ for model in models])
    best = models[int(inertias.argmin())].labels_
    agreement = np.array([adjusted_rand_score(best, model.labels_) for model in models])
    return Runs(X, w, clusters.codes[drawn], inertias, agreement)


def _squares(runs: Runs) -> float:
    """Weighted sum of squares about the means of the clusters looked at."""
    total = 0.0
    for j in np.unique(runs.codes):
        rows, w = runs.X[runs.codes == j], runs.w[runs.codes == j]
        total += float(w @ ((rows - w @ rows / w.sum()) ** 2).sum(axis=1))
    return total
