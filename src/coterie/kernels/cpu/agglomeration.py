"""Unions of clusters in model-based hierarchical clustering, with unions in the lanes; see `plain.agglomeration`."""

import numpy as np

from coterie.kernels.cpu import read_only
from coterie.kernels.cpu.jit import jit

LANES = 16  # unions whose matrices are factorised together
PIVOTS = 8  # pivots that are multiplied before the logarithm


def union_terms(
    i: int, others: np.ndarray, weight: np.ndarray, mean: np.ndarray, scatter: np.ndarray, ridge: float
) -> np.ndarray:
    terms, matrices = np.empty(len(others)), np.empty((*scatter.shape[1:], LANES))
    write_terms(i, read_only(others), read_only(weight), read_only(mean), read_only(scatter), ridge, matrices, terms)
    return terms


@jit
def write_terms(
    i,
    others,  # in  (m,) clusters
    weight,  # in  (n,)
    mean,  # in  (n, d)
    scatter,  # in  (n, d, d)
    ridge,
    matrices,  # buffer (d, d, LANES)
    terms,  # out (m,)
):
    d = mean.shape[1]
    log_det, product = np.empty(LANES), np.empty(LANES)
    for first in range(0, others.shape[0], LANES):
        count = min(LANES, others.shape[0] - first)
        for lane in range(LANES):  # the last union is repeated in the remaining lanes
            j = others[first + min(lane, count - 1)]
            share = weight[i] * weight[j] / (weight[i] + weight[j])
            for r in range(d):
                difference = share * (mean[j, r] - mean[i, r])
                for c in range(r + 1):
                    matrices[r, c, lane] = scatter[i, r, c] + scatter[j, r, c] + difference * (mean[j, c] - mean[i, c])
                matrices[r, r, lane] += ridge
        log_det[:], product[:] = 0.0, 1.0
        for p in range(d):
            for lane in range(LANES):
                product[lane] *= matrices[p, p, lane]
            if p % PIVOTS == PIVOTS - 1 or p == d - 1:
                for lane in range(count):
                    log_det[lane] += np.log(product[lane])
                product[:] = 1.0
            eliminate(matrices, p)
        for lane in range(count):
            size = weight[i] + weight[others[first + lane]]
            terms[first + lane] = size * (log_det[lane] - d * np.log(size))


@jit
def eliminate(
    matrices,  # i/o (d, d, LANES) lower triangles
    p,
):
    """Subtract multiples of the row of pivot `p` from the rows below."""
    factor = np.empty(LANES)
    for r in range(p + 1, matrices.shape[0]):
        for lane in range(LANES):
            factor[lane] = matrices[r, p, lane] / matrices[p, p, lane]
        for c in range(p + 1, r + 1):
            for lane in range(LANES):
                matrices[r, c, lane] -= factor[lane] * matrices[c, p, lane]
