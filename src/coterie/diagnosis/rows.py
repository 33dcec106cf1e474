"""Rows: equal ones, and distances that are all alike."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from coterie.diagnosis.findings import Check, judge, not_measured, percent
from coterie.diagnosis.table import Table
from coterie.preparation import DUPLICATE_SHARE

ALL_ALIKE = 50.0  # columns: distances of so many independent ones vary by a tenth of their mean
ROWS_FOR_DISTANCES = 500


def duplicated_rows(table: Table) -> Check:
    """Share of rows equal to an earlier one, by 64 bits of each. O(n d + n log n).

    Numbers that were measured hardly ever repeat; where a twentieth of the rows do, they are counts, codes or copies.
    """
    if table.n < 2:
        return not_measured("duplicated_rows", "needs two rows")
    share = table.copies / table.n
    return judge(
        "duplicated_rows",
        share,
        DUPLICATE_SHARE,
        table.n,
        share > DUPLICATE_SHARE,
        "warning" if share > 0.5 else "note",
        f"{table.copies:,} of {table.n:,} rows ({percent(share)}) equal an earlier one: {table.n - table.copies:,} are "
        "different.",
        "If they are copies by mistake, drop them. If not, fit the different rows with their counts as sample_weight: "
        "the same clusters for less work.",
        distinct=table.n - table.copies,
    )


def concentration(table: Table, rng: np.random.Generator) -> Check:
    r"""Intrinsic dimension :math:`\mu^2 / (2 \sigma^2)` of the distances between 500 rows. O(500² d).

    That of d independent normal columns is d. Their distances vary by :math:`1 / \sqrt{2 d}` of their mean: at 50 by a
    tenth, so that the nearest of a thousand rows is two thirds as far as the average one. Clusters that distances can
    see make them vary more, and the number smaller.

    Chávez, Navarro, Baeza-Yates & Marroquín (2001), Searching in metric spaces, ACM Computing Surveys 33.
    """
    if len(table.X) < 10 or not table.spread.any():
        return not_measured("concentration", "needs ten rows that are not all equal")
    drawn = table.draw(ROWS_FOR_DISTANCES, rng)
    distances = pdist(table.X[drawn])
    if not distances.any():
        return not_measured("concentration", "needs rows that are not nearly all equal")
    spread = float(distances.std())
    varying = int(np.count_nonzero(table.spread))
    value = min(float(distances.mean() ** 2 / (2 * spread**2)) if spread > 0 else np.inf, 1e9)
    contrast = spread / float(distances.mean())
    return judge(
        "concentration",
        value,
        ALL_ALIKE,
        len(drawn),
        value > ALL_ALIKE and varying > 1,
        "warning",
        f"All distances are nearly alike: they vary by {percent(contrast)} of their mean, as those of {value:,.0f} "
        f"independent columns do, in {len(drawn):,} rows. Near and far hardly differ.",
        "Keep fewer columns (sklearn.decomposition.PCA, or those that matter), use SphericalKMeans where directions "
        "carry the meaning (texts, embeddings), or a GaussianMixture with covariance_type='EII' or 'diag'.",
        contrast=contrast,
    )
