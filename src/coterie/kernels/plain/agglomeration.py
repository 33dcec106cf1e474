"""Unions of clusters in model-based hierarchical clustering."""

import numpy as np


def union_terms(
    i: int, others: np.ndarray, weight: np.ndarray, mean: np.ndarray, scatter: np.ndarray, ridge: float
) -> np.ndarray:
    """Terms of the objective for cluster i together with each of the `others` (m,): n log |(W + ridge I) / n|.

    Clusters have a weight n (clusters,), a mean (clusters, d) and a scatter W (clusters, d, d).
    """
    d = mean.shape[1]
    size = weight[i] + weight[others]
    dx = mean[others] - mean[i]
    share = weight[i] * weight[others] / size
    union = scatter[others]
    union += scatter[i] + ridge * np.eye(d)
    union += (share[:, None] * dx)[:, :, None] * dx[:, None, :]
    return size * (np.linalg.slogdet(union)[1] - d * np.log(size))
