"""What one labelling tells about another."""

from __future__ import annotations

from typing import Any

from coterie.metrics.contingency import contingency, mutual_information


def mutual_info_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Mutual information of two labellings, in nats.

    .. math:: I = \sum_{ij} p_{ij} \log \frac{p_{ij}}{p_i p_j}

    From 0, for labellings that say nothing about each other, to the lesser of their entropies. It grows with the
    number of clusters, even for labels drawn at random: to compare, use `adjusted_mutual_info_score`.

    Parameters
    ----------
    labels_true, labels_pred : labels (n,)
        Two labellings of the same rows, of any kind; which is which makes no difference.
    sample_weight : array (n,), optional

    Notes
    -----
    Costs O(n).

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
