"""A perfect fit: each distinct row is a cluster. What the criteria of `choose_k` say about that number of clusters.

In a table of a few rows that are repeated often, such as codes of a survey, these clusters are a result. In a table
whose rows nearly all differ, one cluster for each row is none.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from coterie.core.arrays import Array
from coterie.selection.votes import ADVICE, Vote, single_choice

MIN_REPEATS = 5  # times that a distinct row occurs on average, at least
MAX_DISTINCT = 10  # of ks='auto': more distinct rows are more often rounded numbers than categories
STEP_ERROR = 1e-6  # difference of a value from a whole number of steps
GROUPS_APART = 2.5  # distance between groups of rows of a grid, in distances within groups, at least
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


def is_grid(X: Array) -> bool:
    """Whether the distinct rows look like values of a scale, and not like separate groups.

    So do all combinations of the values of columns, and rows most of which are one step of their scale from another, in
    one column. Counts, answers on a scale, rounded numbers, and independent columns of few values are such rows.
    """
    rows = np.unique(X, axis=0)
    values = [column for column in map(np.unique, rows.T) if len(column) > 1]
    is_product = len(values) > 1 and math.prod(len(column) for column in values) == len(rows)
    return is_product or (any(len(column) > 2 for column in values) and _has_steps(rows))


def _has_steps(rows: Array) -> bool:
    """Whether columns are whole multiples of a step, and most rows are a step from another, in one column only."""
    low = rows.min(axis=0)
    steps = np.array([np.diff(np.unique(column)).min(initial=np.inf) for column in rows.T])
    cells = (rows - low) / steps
    whole = np.round(cells)
    if np.abs(cells - whole).max() > STEP_ERROR:
        return False
    n_steps = np.abs(whole[:, None] - whole).sum(axis=-1)
    return bool((n_steps == 1).any(axis=1).mean() > 0.5)


def has_groups(X: Array) -> bool:
    """Whether the distinct rows of a grid form groups of several rows that are far apart."""
    if not is_grid(X):
        return False
    tree = linkage(np.unique(X, axis=0), "single")
    heights = tree[:, 2]
    is_apart = heights[1:] > GROUPS_APART * heights[:-1]
    groups = (np.bincount(fcluster(tree, height, "distance"))[1:] for height in heights[:-1][is_apart])
    return any(sizes.min() > 1 for sizes in groups)
