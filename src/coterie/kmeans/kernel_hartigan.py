"""Hartigan's method for kernel K-means: move single rows if that lowers the objective after the means are updated [1]_.

Equal rows move together, like one row with their total weight.

.. [1] Telgarsky & Vattani (2010), Hartigan's method: k-means clustering without Voronoi, AISTATS.
"""

import numpy as np


def best_moves(
    squares: np.ndarray,  # in (n, k) squared distances to the means
    labels: np.ndarray,  # in (n,)
    counts: np.ndarray,  # in (n,)
    weight: np.ndarray,  # in (k,)
    slack: np.ndarray | float,  # in (n,) rounding of the distances
) -> tuple[np.ndarray, np.ndarray]:
    """Best target cluster of each row (n,), and the decrease of the sum of squares if the row moves there (n,).

    A row of weight w that leaves a mean of weight W removes W w / (W - w) times its squared distance. It adds W w / (W
    + w) times its squared distance to the new mean. The gain is -inf for a row of weight zero and for a row that is
    alone in its cluster.
    """
    rows = np.arange(len(labels))
    remaining = weight[labels] - counts
    can_move = (labels >= 0) & (counts > 0) & (remaining > 1e-12 * weight[labels])
    squares = np.where(weight > 0, squares, 0.0)  # the mean of an empty cluster is its first row
    leave = weight[labels] / np.where(can_move, remaining, 1) * squares[rows, labels]
    join = weight / (weight + counts[:, None] + (weight == 0)) * squares
    join[rows, labels] = np.inf
    target = join.argmin(axis=1)
    gain = np.full(len(labels), -np.inf)
    gain[can_move] = counts[can_move] * (leave - join[rows, target] - 4 * slack)[can_move]
    return target, gain


def move_rows(
    labels: np.ndarray,  # in (m,)
    counts: np.ndarray,  # in (m,)
    diagonal: np.ndarray,  # in (m,) k(x, x)
    block: np.ndarray,  # in (m, m) kernel matrix of these rows
    sums: np.ndarray,  # in (m, k) weighted sums of the kernel values with the rows of each cluster
    weight: np.ndarray,  # in (k,)
    lengths: np.ndarray,  # in (k,) squared lengths of the sums of the rows of each cluster
    slack: float,  # in  rounding of a squared distance, relative to its terms
) -> np.ndarray:
    """New labels: each row in turn moves to its best cluster, and the means are updated after each move."""
    labels, sums, weight, lengths = labels.copy(), sums.copy(), weight.copy(), lengths.copy()
    for i, w in enumerate(counts):
        safe = np.where(weight > 0, weight, 1)
        cross, norms = 2 * sums[i] / safe, lengths / safe**2
        rounding = slack * (np.abs(cross).max() + np.abs(norms).max())
        squares = (diagonal[i] + norms - cross)[None]
        target, gain = best_moves(squares, labels[i : i + 1], counts[i : i + 1], weight, rounding)
        if not gain[0] > 0:
            continue
        a, b = labels[i], target[0]
        lengths[a] += w * (w * diagonal[i] - 2 * sums[i, a])
        lengths[b] += w * (w * diagonal[i] + 2 * sums[i, b])
        sums[:, a] -= w * block[:, i]
        sums[:, b] += w * block[:, i]
        weight[a] -= w
        weight[b] += w
        labels[i] = b
    return labels


def first_weighted_rows(first_equal: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """First row of positive weight among the equal rows of each row (n,); the first of all if none has weight."""
    rows, first = np.flatnonzero(counts > 0), np.arange(len(first_equal))
    first_weighted = np.full(len(first_equal), len(first_equal))
    np.minimum.at(first_weighted, first_equal[rows], rows)
    return np.where(first_weighted < len(first_equal), first_weighted, first)[first_equal]


def duplicate_weights(labels: np.ndarray, counts: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Total weight of equal rows at the first of them, and 0 at the others and if they are in different clusters."""
    is_split = np.bincount(first, (labels != labels[first]) & (counts > 0), len(first)) > 0
    return np.where(is_split, 0.0, np.bincount(first, counts, len(first)))


def move_duplicates(labels: np.ndarray, rows: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Labels after all rows that equal one of `rows` have moved to its cluster."""
    moved = np.zeros(len(labels), bool)
    moved[rows] = True
    return np.where(moved[first] & (labels >= 0), labels[first], labels)
