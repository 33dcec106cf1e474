"""Mean silhouettes of several clusterings of the same rows, whose distances are computed once for many of them.

Rows that are together in every clustering form a *cell*. The sum of the distances of a row to a cluster is the sum over
the cells of the cluster, so one pass over all pairs of rows serves all clusterings. Many small cells make the pass
longer, because the kernel pads each to whole vectors: clusterings then share several passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.distances.euclidean import Euclidean
from coterie.metrics.labelled_rows import LabelledRows
from coterie.metrics.labels import labels_of_rows
from coterie.metrics.silhouette import check_silhouettes, labelled_rows, mean_silhouette
from coterie.metrics.silhouette_exact import MAX_PADDING, distance_sums, from_sums

MAX_CELL_SUMS = 1 << 22  # maximum number of sums of one pass, one for each row and cell


class Cells(NamedTuple):
    """Rows that are together in all of these clusterings."""

    members: list[int]  # indices of the clusterings
    codes: Array  # (n,) cell of each row
    padded: int  # number of rows of a pass
    k: int

    def with_clusters(self, index: int, codes: Array, k: int, ops: Any, itemsize: int) -> Cells:
        """The cells after one more clustering."""
        both = self.codes * k + codes
        is_used = np.bincount(both, minlength=self.k * k) > 0
        cells = (np.cumsum(is_used) - 1)[both]
        counts = np.bincount(cells)
        return Cells([*self.members, index], cells, ops.padded_size(counts, itemsize), len(counts))


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
    rows = [first, *(check_silhouettes(_with_labels(first, labels)) for labels in labelings[1:])]
    with machine.one_blas_thread:
        distance = first.distance
        if not (isinstance(distance, Euclidean) and type(distance).between is Euclidean.between and distance.root):
            return [mean_silhouette(labelled, n_jobs) for labelled in rows]
        scores = np.empty(len(rows))
        ops = kernels.select("silhouette", *first.rows.shape)
        for cells in _passes(rows, ops):
            scores[cells.members] = _scores(cells, [rows[i] for i in cells.members], ops, n_jobs)
    return [float(score) for score in scores]


def _with_labels(labelled: LabelledRows, labels: Any) -> LabelledRows:
    encoded = labels_of_rows(labels, len(labelled))
    return replace(labelled, codes=encoded.codes, k=encoded.k)


def _passes(rows: list[LabelledRows], ops: Any) -> list[Cells]:
    """Clusterings in the order in which they are given, in passes that take less time than separate ones."""
    n, itemsize, passes = len(rows[0]), rows[0].rows.itemsize, list[Cells]()
    for index, labelled in enumerate(rows):
        alone = Cells([], np.zeros(n, np.int64), 0, 1).with_clusters(index, labelled.codes, labelled.k, ops, itemsize)
        if passes:
            cells = passes[-1]
            shared = cells.with_clusters(index, labelled.codes, labelled.k, ops, itemsize)
            if (
                shared.padded**2 <= cells.padded**2 + alone.padded**2
                and shared.padded <= MAX_PADDING * n
                and shared.padded * shared.k <= MAX_CELL_SUMS
            ):
                passes[-1] = shared
                continue
        passes.append(alone)
    return passes


def _scores(cells: Cells, rows: list[LabelledRows], ops: Any, n_jobs: int | None) -> list[float]:
    """Mean silhouettes of clusterings that share a pass."""
    if len(rows) == 1:
        return [mean_silhouette(rows[0], n_jobs)]
    sums, position = distance_sums(ops, replace(rows[0], codes=cells.codes, k=cells.k), cells.padded, n_jobs)
    by_row, everything, scores = sums[:, position], np.arange(len(rows[0])), []
    for labelled in rows:
        is_member = np.zeros((labelled.k, cells.k))
        is_member[labelled.codes, cells.codes] = 1.0
        values = from_sums((is_member @ by_row).T, labelled, everything)
        scores.append(float(values @ labelled.weights / labelled.weights.sum()))
    return scores
