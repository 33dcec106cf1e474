"""A perfect fit: each distinct row is a cluster. What the criteria of `choose_k` say about that number of clusters.

In a table of a few rows that are repeated often, such as codes of a survey, these clusters are a result. In a table
whose rows nearly all differ, one cluster for each row is none.
"""

import math
from collections.abc import Callable

import numpy as np

from coterie.core.arrays import Array
from coterie.selection.votes import ADVICE, Vote, single_choice

MIN_REPEATS = 5  # times that a distinct row occurs on average, at least
MAX_DISTINCT = 10  # of ks='auto': more distinct rows are more often rounded numbers than categories
BY_VARIANCE = ("calinski_harabasz", "davies_bouldin", "dunn", "gap")  # infinite or 0 without variance within clusters
REPRODUCED = ("prediction_strength", "valleys", "stability")  # any part of the rows has the same clusters, or fewer


def perfect_fit_vote(criterion: str, ks: Array, k: int, evaluate: Callable[[], Vote]) -> Vote:
    """Vote of a criterion if K = k is a perfect fit; `evaluate` computes its usual vote."""
    if criterion == "tendency":
        return single_choice(criterion, ks, None, "not needed: every row is equal to the center of its cluster")
    if criterion in REPRODUCED:
        return single_choice(criterion, ks, k, "each cluster is one distinct row, also in parts of the table")
    vote = evaluate()
    if criterion in BY_VARIANCE:
        return single_choice(criterion, ks, k, f"best possible value at {k}: no variance is left within clusters")
    if criterion in ADVICE:
        return vote.without(f"not counted: the likelihood of {k} components has no maximum")
    return vote


def is_full_grid(X: Array) -> bool:
    """Whether the distinct rows are all combinations of the values of columns, or equally spaced values of one column.

    So are counts, answers on a scale, and independent columns of few values. They show no separate groups.
    """
    values = [column for column in map(np.unique, X.T) if len(column) > 1]
    if math.prod(len(column) for column in values) != len(np.unique(X, axis=0)):
        return False
    steps = np.diff(values[0])
    return len(values) > 1 or (len(steps) > 1 and bool(np.allclose(steps, steps[0], rtol=1e-6, atol=0.0)))
