"""Core distances, mutual reachability and neighbourhoods from tables of distances."""

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_finite, jit_reassociating
from coterie.kernels.cpu.linkage import root

BLOCK = 64  # columns whose minimum is compared with the limit at once


@jit_finite
def _minimum(distances, start, stop):
    low = distances[start]
    for j in range(start + 1, stop):
        low = min(low, distances[j])
    return low


@jit
def core_distances(D, weight, min_weight, out):
    """The smallest radius around each row of `D` (m, n) within which the columns have the minimum weight.

    The nearest columns are in a sorted list, which is cut as soon as it has the minimum weight.
    """
    n = D.shape[1]
    value, mass = np.empty(n + 1, D.dtype), np.empty(n + 1)
    for i in range(len(D)):
        distances, count, total, limit = D[i], 0, 0.0, np.inf
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            if _minimum(distances, start, stop) >= limit:
                continue
            for j in range(start, stop):
                if distances[j] >= limit or weight[j] == 0:
                    continue
                k = count
                while k > 0 and value[k - 1] > distances[j]:
                    value[k], mass[k] = value[k - 1], mass[k - 1]
                    k -= 1
                value[k], mass[k] = distances[j], weight[j]
                count, total = count + 1, total + weight[j]
                while count > 1 and total - mass[count - 1] >= min_weight:
                    count, total = count - 1, total - mass[count - 1]
                if total >= min_weight:
                    limit = value[count - 1]
        out[i] = limit


@jit
def nearest_lists(
    D,  # i/o (m, n) distances of rows to all rows; those to themselves become infinite
    rows,  # in   (m,)
    index,  # out  (m, k) int32, the nearest other rows by increasing distance
    value,  # out  (m, k) distances
):
    """The k nearest other rows of each row."""
    n, k = D.shape[1], index.shape[1]
    for i in range(len(rows)):
        distances = D[i]
        distances[rows[i]] = np.inf
        for t in range(k):
            index[i, t], value[i, t] = -1, np.inf
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            if _minimum(distances, start, stop) >= value[i, k - 1]:
                continue
            for j in range(start, stop):
                if distances[j] < value[i, k - 1]:
                    insert(index[i], value[i], j, distances[j])


@jit
def insert(index, value, j, distance):
    """Insert a row into a sorted list (k,), and drop the last one."""
    t = len(value) - 1
    while t > 0 and value[t - 1] > distance:
        value[t], index[t] = value[t - 1], index[t - 1]
        t -= 1
    value[t], index[t] = distance, j


@jit_finite
def _lowest_outside(distances, core, tree, own, start, stop):
    """Minimum over the columns of other trees of the larger of distance and core distance."""
    low = np.inf
    for j in range(start, stop):
        reach = max(distances[j], core[j])
        low = min(low, np.inf if tree[j] == own else reach)
    return low


@jit
def nearest_outside(
    D,  # in   (m, n) distances of rows to all rows
    rows,  # in   (m,)
    core,  # in   (n,)
    tree,  # in   (n,)
    near,  # out  (m,) the row of another tree with the smallest mutual reachability distance
    reach,  # out  (m,) this distance
):
    """The nearest row of another tree, by mutual reachability."""
    n = D.shape[1]
    for i in range(len(rows)):
        row, distances = rows[i], D[i]
        own, best, place = tree[row], np.inf, -1
        for start in range(0, n, BLOCK):
            low = _lowest_outside(distances, core, tree, own, start, min(start + BLOCK, n))
            if low < best:
                best, place = low, start
        near[i], reach[i] = -1, np.inf
        for j in range(place, min(place + BLOCK, n)) if place >= 0 else range(0):
            if tree[j] != own and max(distances[j], core[j]) == best:
                near[i], reach[i] = j, max(best, core[row])
                break


@jit
def nearest_reachable(D, core_of_rows, core, tolerance, index, value):
    """The column with the smallest mutual reachability distance to each row; of equal ones the first of the nearest."""
    for i in range(len(D)):
        best, distance = np.inf, np.inf
        for j in range(D.shape[1]):
            best = min(best, max(D[i, j], core[j], core_of_rows[i]))
        for j in range(D.shape[1]):
            if max(D[i, j], core[j], core_of_rows[i]) <= best * (1.0 + tolerance):
                distance = min(distance, D[i, j])
        for j in range(D.shape[1]):
            reach = max(D[i, j], core[j], core_of_rows[i])
            if D[i, j] <= distance * (1.0 + tolerance) and reach <= best * (1.0 + tolerance):
                index[i] = j
                break
        value[i] = best


@jit_reassociating
def weights_within(D, weight, eps, out):
    """The weight of the columns within the distance `eps` of each row of `D` (m, n)."""
    for i in range(len(D)):
        total = 0.0
        for j in range(D.shape[1]):
            total += weight[j] if D[i, j] <= eps else 0.0
        out[i] = total


@jit
def connect_within(D, first, eps, parent):
    """Connect the rows of the table with its columns within `eps`, by union-find; row and column 0 are row `first`."""
    for i in range(len(D)):
        for j in range(D.shape[1]):
            if D[i, j] <= eps:
                a, b = root(parent, first + i), root(parent, first + j)
                parent[max(a, b)] = min(a, b)


@jit
def lowest_label_within(D, labels, eps, out):
    """The lowest label of the columns within `eps` of each row of `D` (m, n); -1 if all of them have the label -1."""
    for i in range(len(D)):
        lowest = -1
        for j in range(D.shape[1]):
            if D[i, j] <= eps and labels[j] >= 0 and (lowest < 0 or labels[j] < lowest):
                lowest = labels[j]
        out[i] = lowest
