"""Rows that change cluster one at a time, by what that is worth when the means follow [1]_.

Rows that are equal move together, as one row of their weight would.

.. [1] Telgarsky & Vattani (2010), Hartigan's method: k-means clustering without Voronoi, AISTATS.
"""

from __future__ import annotations

import numpy as np


def best_moves(
    squares: np.ndarray,  # in (n, k) distances to the means
    labels: np.ndarray,  # in (n,)
    counts: np.ndarray,  # in (n,)
    weight: np.ndarray,  # in (k,)
    slack: np.ndarray | float,  # in (n,) of the distances
) -> tuple[np.ndarray, np.ndarray]:
    """Where each row had best go (n,), and by how much that lowers the sum of squares when the means follow (n,).

    A row of weight w that leaves a mean of weight W takes W w / (W - w) times its square with it, and brings
    W w / (W + w) times its square. It gains nothing (-inf) where it does not count or is alone in its cluster.
    """
    rows = np.arange(len(labels))
    rest = weight[labels] - counts
    free = (labels >= 0) & (counts > 0) & (rest > 1e-12 * weight[labels])
    squares = np.where(weight > 0, squares, 0.0)  # an empty cluster is wherever its first row is
    leave = weight[labels] / np.where(free, rest, 1) * squares[rows, labels]
    join = weight / (weight + counts[:, None] + (weight == 0)) * squares
    join[rows, labels] = np.inf
    target = join.argmin(axis=1)
    gain = np.full(len(labels), -np.inf)
    gain[free] = counts[free] * (leave - join[rows, target] - 4 * slack)[free]
    return target, gain


def exchanged(
    labels: np.ndarray,  # in (m,)
    counts: np.ndarray,  # in (m,)
    diagonal: np.ndarray,  # in (m,) k(x, x)
    block: np.ndarray,  # in (m, m) products of the rows with each other
    sums: np.ndarray,  # in (m, k) products with the rows of each cluster, added up by counts
    weight: np.ndarray,  # in (k,)
    lengths: np.ndarray,  # in (k,) squared, of the sums of the rows of each cluster
    slack: float,  # in  rounding of a squared distance, relative to its terms
) -> np.ndarray:
    """New labels: each row in turn goes where it lowers the sum of squares most, and the means follow at once."""
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


def first_of(alike: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The first row that counts among those alike (n,), from the first of all; where none counts, that one."""
    rows, first = np.flatnonzero(counts > 0), np.arange(len(alike))
    found = np.full(len(alike), len(alike))
    np.minimum.at(found, alike[rows], rows)
    return np.where(found < len(alike), found, first)[alike]


def weight_together(labels: np.ndarray, counts: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The weight of all equal rows at the first of them, 0 at the others, and where they are not in one cluster."""
    apart = np.bincount(first, (labels != labels[first]) & (counts > 0), len(first)) > 0
    return np.where(apart, 0.0, np.bincount(first, counts, len(first)))


def together(labels: np.ndarray, rows: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The labels, with all rows that equal one of `rows` where that is."""
    moved = np.zeros(len(labels), bool)
    moved[rows] = True
    return np.where(moved[first] & (labels >= 0), labels[first], labels)
