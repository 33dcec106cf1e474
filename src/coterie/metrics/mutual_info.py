"""Mutual information."""

from __future__ import annotations

from typing import Any

from coterie.metrics.contingency import contingency, mutual_information


def mutual_info_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Compute the mutual information of two labellings, in nats.

    .. math:: I = \sum_{ij} p_{ij} \log \frac{p_{ij}}{p_i p_j}

    The score is from 0, for independent labellings, to the smaller of their entropies. It increases with the number of
    clusters, even for random labels: use `adjusted_mutual_info_score` for comparisons.

    Parameters
    ----------
    labels_true, labels_pred : array (n,)
        Two labellings of the same rows: integers, strings or other hashable values. Their order does not matter.
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
    return mutual_information(contingency(labels_true, labels_pred, sample_weight))
