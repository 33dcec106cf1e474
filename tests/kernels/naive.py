"""What the kernels mean, in loops a reader can check."""

from __future__ import annotations

import numpy as np


def dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def squares(X, centers):
    """Squared distances (n, k), added in the order of the columns, in float64."""
    X, centers = dense(X), dense(centers)
    total = np.zeros((len(X), len(centers)))
    for t in range(X.shape[1]):
        total += (X[:, t, None] - centers[None, :, t]) ** 2
    return total


def lloyd(X, w, centers):
    X, centers = dense(X), dense(centers)
    labels = squares(X, centers).argmin(axis=1)
    weight, sum_dx, cost = np.zeros(len(centers)), np.zeros(centers.shape), np.zeros(len(centers))
    for i, j in enumerate(labels):
        weight[j] += w[i]
        sum_dx[j] += w[i] * (X[i] - centers[j])
        cost[j] += w[i] * ((X[i] - centers[j]) ** 2).sum()
    return labels, weight, sum_dx, cost


def memberships(X, centers, m):
    u = np.zeros((X.shape[0], len(centers)))
    for i, row in enumerate(squares(X, centers)):
        if row.min() == 0:
            u[i] = (row == 0) / np.count_nonzero(row == 0)
        else:
            u[i] = 1 / ((row[:, None] / row[None, :]) ** (1 / (m - 1))).sum(axis=1)
    return u


def fuzzy(X, w, centers, m):
    """Sums of w u^m, of w u^m (x - c), and of w u^m |x - c|^2."""
    z = w[:, None] * memberships(X, centers, m) ** m
    X, centers = dense(X), dense(centers)
    sum_dx = [(z[:, [j]] * (X - center)).sum(axis=0) for j, center in enumerate(centers)]
    return z.sum(axis=0), np.array(sum_dx), (z * squares(X, centers)).sum()
