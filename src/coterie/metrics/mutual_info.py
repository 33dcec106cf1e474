"""Mutual information."""

from __future__ import annotations

from typing import Any

from coterie.metrics.contingency import contingency_table, mutual_information, table_of_matrix


def mutual_info_score(
    labels_true: Any, labels_pred: Any, *, contingency: Any = None, sample_weight: Any = None
) -> float:
    r"""Compute the mutual information of two labellings, in nats.

    .. math:: I = \sum_{ij} p_{ij} \log \frac{p_{ij}}{p_i p_j}

    The score is from 0, for independent labellings, to the smaller of their entropies. It increases with the number of
    clusters, even for random labels: use `adjusted_mutual_info_score` for comparisons.

    Parameters
    ----------
    labels_true, labels_pred : array (n,)
        Two labellings of the same rows: integers, strings or other hashable values. Their order does not matter.
    contingency : array or sparse matrix (classes, clusters), optional
        Result of `contingency_matrix`. The labels and `sample_weight` are then ignored.
    sample_weight : array (n,), optional
        Sample weights.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n) operations.

    References
    ----------
    .. [1] Shannon (1948), A mathematical theory of communication, Bell Syst. Tech. J. 27.

    Examples
    --------
    >>> from coterie.metrics import mutual_info_score
    >>> round(mutual_info_score([0, 0, 1, 1], ["a", "a", "b", "b"]), 4)
    0.6931
    """
    if contingency is not None:
        return mutual_information(table_of_matrix(contingency))
    return mutual_information(contingency_table(labels_true, labels_pred, sample_weight))
