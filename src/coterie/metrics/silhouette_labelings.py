"""Mean silhouettes of several clusterings of the same rows, for which each distance is computed once.

Rows that are together in every clustering form a *cell*. The sum of the distances of a row to a cluster is the sum over
the cells of the cluster, so most work does not depend on the number of clusterings.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.metrics.labelled_rows import LabelledRows, check_finite
from coterie.metrics.labels import labels_of_rows
from coterie.metrics.silhouette import check_silhouettes, labelled_rows, mean_silhouette

STRIP_BYTES = 1 << 22  # size of a table of distances of all rows to some, which is in the cache while they are added
LANES = 16  # strips are whole vectors
MIN_SHARED = 3  # number of clusterings from which cells are faster than one pass for each


class Cells(NamedTuple):
    """Cells of several clusterings. Clusters of all clusterings are numbered one after the other."""

    order: Array  # (n,) rows sorted by cell
    starts: Array  # (cells + 1,) position of the first row of each cell in `order`
    clusters: Array  # (cells, m) clusters of each cell, one for each clustering
    first: Array  # (m + 1,) first cluster of each clustering
    weight: Array  # (clusters,)


def silhouette_scores(
    X: Any,
    labelings: Sequence[Any],
    *,
    metric: Any = "euclidean",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    **metric_params: Any,
) -> list[float]:
    """``silhouette_score(X, labels)`` for each of the `labelings`, with the same options."""
    if not labelings:
        return []
    first = labelled_rows(X, labelings[0], metric, metric_params, sample_weight)
    clusterings = [first, *(check_silhouettes(_with_labels(first, labels)) for labels in labelings[1:])]
    with machine.one_blas_thread:
        if len(clusterings) < MIN_SHARED:
            return [mean_silhouette(labelled, n_jobs) for labelled in clusterings]
        return _mean_silhouettes(clusterings, n_jobs)


def _with_labels(labelled: LabelledRows, labels: Any) -> LabelledRows:
    encoded = labels_of_rows(labels, len(labelled))
    return replace(labelled, codes=encoded.codes, k=encoded.k)


def cells_of(clusterings: list[LabelledRows]) -> Cells:
    """The cells of clusterings of the same rows."""
    cell, k = clusterings[0].codes, clusterings[0].k
    for labelled in clusterings[1:]:
        both = cell.astype(np.int64) * labelled.k + labelled.codes
        is_used = np.bincount(both, minlength=k * labelled.k) > 0
        cell, k = (np.cumsum(is_used) - 1)[both], int(np.count_nonzero(is_used))
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=k))])
    first = np.concatenate([[0], np.cumsum([labelled.k for labelled in clusterings])])
    of_cells = [labelled.codes[order[starts[:-1]]] for labelled in clusterings]
    weight = np.concatenate([labelled.cluster_weight for labelled in clusterings])
    return Cells(order, starts, np.stack(of_cells, axis=1) + first[:-1], first, weight)


def _mean_silhouettes(clusterings: list[LabelledRows], n_jobs: int | None) -> list[float]:
    labelled, cells = clusterings[0], cells_of(clusterings)
    n, w = len(labelled), labelled.weights
    rows, sorted_w = labelled.rows[cells.order], w[cells.order]
    cluster = np.stack([other.codes for other in clusterings]) + cells.first[:-1, None]  # (m, n)
    ops = kernels.select("silhouette", n, n)
    rest = np.stack([other.rest_weight for other in clusterings])  # (m, n) weight of the other rows of the cluster

    def strip(start: int, stop: int) -> tuple[int, Array]:
        """`start`, and the silhouettes (m, stop - start) of the rows `start` to `stop`."""
        distances = labelled.table(rows, labelled.rows[np.arange(start, stop)])
        values = np.empty((len(cluster), stop - start))
        ops.silhouettes_of_cells(
            distances, sorted_w, cells.starts, cells.clusters, cells.first, cells.weight,
            np.ascontiguousarray(cluster[:, start:stop]), np.ascontiguousarray(rest[:, start:stop]), values,
        )  # fmt: skip
        check_finite(values)
        return start, values

    step = max(1, STRIP_BYTES // (n * labelled.dtype.itemsize * LANES)) * LANES
    calls = [(start, min(start + step, n)) for start in range(0, n, step)]
    total = np.zeros(len(clusterings))
    for start, values in machine.in_threads(strip, calls, n_jobs):
        total += values @ w[start : start + values.shape[1]]
    return [float(value) for value in total / w.sum()]
