"""`diagnose`: every check on one table, and on a fit of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import interrupts, machine
from coterie.core.arguments import as_rng, whole_number
from coterie.data import opened
from coterie.diagnosis import columns, forms, number, outliers, rows, shapes, sizes, tendency
from coterie.diagnosis.clusters import Clusters, check_model, clusters_of
from coterie.diagnosis.diagnosis import Diagnosis
from coterie.diagnosis.findings import Check, not_measured
from coterie.diagnosis.own import LEAST_ROWS, own_clusters
from coterie.diagnosis.starts import starts
from coterie.diagnosis.table import Table, open_table

OF_CLUSTERS = (
    "elongated_clusters",
    "heavy_tails",
    "unequal_spread",
    "unequal_sizes",
    "tiny_clusters",
    "hollow_clusters",
    "too_many_clusters",
    "too_few_clusters",
    "boundary_rows",
    "unstable_starts",
    "missed_optimum",
)


def diagnose(
    X: Any,
    model: Any = None,
    *,
    sample_weight: Any = None,
    sample_size: int = 10_000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Diagnosis:
    """What K-means, and clustering at large, is known to suffer from: measured, told in a sentence, with a remedy.

    Before a fit: missing values, columns in units that do not compare, constant and repeated columns, equal rows,
    outliers, distances that are all alike, rows without clusters. After it: clusters that are long, hollow, bent,
    nested, of unequal width or weight, tiny or with heavy tails; starts that disagree; too many clusters or too few.

    Every check compares a number with what chance explains, or with a rule that its docstring derives. All of them are
    hints: none is always right, and none sees every fault.

    Parameters
    ----------
    X : array, frame, path, LazyFrame or Dask array (n, d)
        The rows, dense. Those with NaN are counted, and left out of all other checks.
    model : fitted estimator, labels (n,), or None
        Whose clusters to look at: those a fitted model, of this library or another, predicts for `X` (of trees and
        `BalancedKMeans`, those of the fit, if `X` are its rows); or labels, of which -1 is in no cluster. What cannot
        predict must have been fitted to these rows, in this order. None: K-means, with the number of clusters from 2 to
        20 whose silhouette is best; none where `one_cluster` finds nothing to part. Rows are seen as the model sees
        them (`metric_weights`, unit length).
        Checks of what a model does not assume, such as round clusters of a mixture with full covariances, are
        measured and say nothing.
    sample_weight : array (n,), optional
        How much each row counts. Rows of weight 0 are not there. Weights count in means, variances, shares and fits,
        and in which rows are drawn; tests of numbers of rows take each row for one.
    sample_size : int, default=10_000
        Rows drawn for all checks that look at rows one by one. Missing values, spreads and equal rows are of all rows.
    random_state : None, int, RandomState or Generator
        Chance: which rows are drawn.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.

    Returns
    -------
    Diagnosis
        `findings`, `checks`, `ok`, `table()`, `to_dict()`; `print` shows it all.

    Notes
    -----
    Three passes over all n rows, then work on the sample: about 30 fits of K-means to 2,000 to 10,000 rows, a tree of
    2,000, silhouettes of 2,000.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 8])
    >>> coterie.diagnose(X, random_state=0).ok
    True
    >>> found = coterie.diagnose(X * [1, 1000], random_state=0)
    >>> found["unscaled_columns"].finding.severity
    'serious'
    """
    sample_size = whole_number("sample_size", sample_size, 100)
    check_model(model)
    seed, X = int(as_rng(random_state).integers(2**62)), opened(X)
    with machine.one_blas_thread, interrupts.outermost():
        table = open_table(X, sample_weight, model, sample_size, _chance(seed, "sample"), n_jobs)
        checks, clusters = _all_checks(X, sample_weight, model, table, seed, n_jobs)
    return Diagnosis(
        rows=table.n,
        columns=len(table.names),
        sample=len(table.rows),
        clusters="" if clusters is None else clusters.told,
        n_clusters=None if clusters is None else clusters.k,
        checks={check.name: check for check in checks},
    )


def _all_checks(
    X: Any, sample_weight: Any, model: Any, table: Table, seed: int, n_jobs: int | None
) -> tuple[list[Check], Clusters | None]:
    missing = columns.missing_values(table)
    if table.n == 0:
        return [missing], None
    parts = forms.parts_of(table, _chance(seed, "parts"), n_jobs)
    one = tendency.one_cluster(table, parts is not None, _chance(seed, "one"), n_jobs)
    clusters, reason = _clusters(X, sample_weight, model, table, one, seed, n_jobs)
    return [
        missing,
        *_of_columns(table, clusters),
        rows.duplicated_rows(table),
        outliers.outliers(table, clusters),
        rows.concentration(table, _chance(seed, "concentration")),
        tendency.evenly_spread(table, _chance(seed, "even")),
        one,
        *forms.missed_pieces(clusters, parts, table, _chance(seed, "pieces")),
        *([not_measured(name, reason) for name in OF_CLUSTERS] if clusters is None else _of(clusters, seed, n_jobs)),
    ], clusters


def _of_columns(table: Table, clusters: Clusters | None) -> list[Check]:
    return [
        columns.unscaled_columns(table, clusters),
        columns.dominating_column(table, clusters),
        columns.constant_columns(table),
        columns.correlated_columns(table),
    ]


def _clusters(
    X: Any, sample_weight: Any, model: Any, table: Table, one: Check, seed: int, n_jobs: int | None
) -> tuple[Clusters | None, str]:
    """The clusters to look at; None, and why, where there are none."""
    if model is not None:
        found = clusters_of(model, X, table, sample_weight)
        return (found, "") if found.k else (None, "no row is in a cluster")
    if len(table.X) < LEAST_ROWS or not table.spread.any():
        return None, f"needs {LEAST_ROWS} rows that are not all equal, or a model"
    if one.finding is not None:
        return None, "no second cluster to look at; give a model to look at its own"
    return own_clusters(table, _chance(seed, "own"), n_jobs), ""


def _of(clusters: Clusters, seed: int, n_jobs: int | None) -> list[Check]:
    """Checks of clusters."""
    axes = shapes.axes_of(clusters, _chance(seed, "axes"))
    return [
        shapes.elongated_clusters(clusters, axes),
        shapes.heavy_tails(clusters, axes),
        sizes.unequal_spread(clusters, axes),
        sizes.unequal_sizes(clusters),
        sizes.tiny_clusters(clusters),
        forms.hollow_clusters(clusters, _chance(seed, "hollow")),
        number.too_many_clusters(clusters, _chance(seed, "too many")),
        number.too_few_clusters(clusters, axes, _chance(seed, "too few")),
        number.boundary_rows(clusters, _chance(seed, "boundary"), n_jobs),
        *starts(clusters, _chance(seed, "starts"), n_jobs),
    ]


def _chance(seed: int, what: str) -> np.random.Generator:
    """Each check has its own: what one draws changes nothing for another."""
    return np.random.default_rng([seed, *what.encode()])
