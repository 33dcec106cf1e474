"""Divisive analysis (DIANA, Kaufman & Rousseeuw 1990): the cluster with the largest diameter is split repeatedly.

Objects leave the cluster one by one for a splinter group. Members of a cluster are contiguous in `member`, in ascending
order. A split updates sums of distances by those of the objects that left, and diameters by bounds of the largest
distance of each member.
"""

import numpy as np

from coterie.kernels.cpu.jit import jit

MAX_SHRINKAGE = 4096.0  # a sum that decreased by this factor has lost digits, and is computed again
TIE = 1e-12  # relative differences below this are rounding


@jit
def _distance_sums(D, member, begin, end, sums, base):
    """Sum of the distances of each member to its cluster."""
    for t in range(begin, end):
        i = member[t]
        total = 0.0
        for u in range(begin, end):
            total += D[i, member[u]]
        sums[i] = base[i] = total


@jit
def _diameter(D, member, begin, end, cluster, farthest, farthest_object):
    """The largest distance in a cluster: bounds are recomputed from the largest on, until one is exact."""
    if end - begin == 1:
        return 0.0
    while True:
        i = member[begin]
        for t in range(begin + 1, end):
            if farthest[member[t]] > farthest[i]:
                i = member[t]
        if cluster[farthest_object[i]] == cluster[i]:
            return farthest[i]
        farthest[i] = -1.0
        for t in range(begin, end):
            j = member[t]
            if j != i and D[i, j] > farthest[i]:
                farthest[i], farthest_object[i] = D[i, j], j


@jit
def _move_to_splinter(D, member, begin, end, mover, to_splinter, is_splinter):
    """Move an object to the splinter group."""
    is_splinter[mover] = True
    for t in range(begin, end):
        to_splinter[member[t]] += D[mover, member[t]]


@jit
def _splinter(D, member, begin, end, sums, to_splinter, is_splinter):
    """Select the splinter group: first the object with the largest mean distance, then those nearer to the group.

    Returns its size; `to_splinter` (n,) are the sums of distances to it.
    """
    largest = 0.0
    for t in range(begin, end):
        i = member[t]
        to_splinter[i], is_splinter[i] = 0.0, False
        largest = max(largest, sums[i])
    seed = -1
    for t in range(begin, end):
        if seed < 0 and sums[member[t]] >= (1 - TIE) * largest:
            seed = member[t]
    _move_to_splinter(D, member, begin, end, seed, to_splinter, is_splinter)
    n_splinter, n_rest = 1, end - begin - 1
    while n_rest > 1:
        best, max_gain, scale = -1, 0.0, 0.0
        for t in range(begin, end):
            i = member[t]
            if not is_splinter[i]:
                to_rest = (sums[i] - to_splinter[i]) / (n_rest - 1)
                gain = to_rest - to_splinter[i] / n_splinter
                if best < 0 or gain > max_gain:
                    best, max_gain, scale = i, gain, to_rest
        if max_gain <= TIE * scale:
            break
        _move_to_splinter(D, member, begin, end, best, to_splinter, is_splinter)
        n_splinter, n_rest = n_splinter + 1, n_rest - 1
    return n_splinter


@jit
def _partition(member, begin, end, n_splinter, is_splinter, work):
    """Move the splinter group behind the other members, both in ascending order."""
    position, count = begin, 0
    for t in range(begin, end):
        i = member[t]
        if is_splinter[i]:
            work[count] = i
            count += 1
        else:
            member[position] = i
            position += 1
    for t in range(n_splinter):
        member[position + t] = work[t]


@jit
def divide(
    D,  # in   (n, n)
    min_diameter,  # in   clusters with a smaller diameter are not split
    split,  # out  (k - 1,) cluster that is split; the splinter group of split s becomes cluster s + 1
    height,  # out  (k - 1,) its diameter
    cluster,  # out  (n,) cluster of each object after all splits
):
    """Split up to k - 1 times; return the number of splits."""
    n, k = D.shape[0], len(split) + 1
    member, work = np.arange(n), np.empty(n, np.int64)
    begin, end, diameter = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k)
    sums, base, to_splinter, is_splinter = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.bool_)
    farthest, farthest_object = np.full(n, np.inf), np.zeros(n, np.int64)
    for i in range(n):
        cluster[i] = 0
        farthest[i] = -1.0
        for j in range(n):
            if j != i and D[i, j] > farthest[i]:
                farthest[i], farthest_object[i] = D[i, j], j
    end[0] = n
    _distance_sums(D, member, 0, n, sums, base)
    diameter[0] = _diameter(D, member, 0, n, cluster, farthest, farthest_object)
    for s in range(k - 1):
        c = -1
        for other in range(s + 1):
            if end[other] - begin[other] > 1 and (c < 0 or diameter[other] > diameter[c]):
                c = other
        if diameter[c] < min_diameter:
            return s
        split[s], height[s] = c, diameter[c]
        n_splinter = _splinter(D, member, begin[c], end[c], sums, to_splinter, is_splinter)
        _partition(member, begin[c], end[c], n_splinter, is_splinter, work)
        begin[s + 1], end[s + 1] = end[c] - n_splinter, end[c]
        end[c] -= n_splinter
        is_inaccurate = False
        for t in range(begin[c], end[c]):
            i = member[t]
            sums[i] -= to_splinter[i]
            is_inaccurate = is_inaccurate or sums[i] * MAX_SHRINKAGE < base[i]
        if is_inaccurate:
            _distance_sums(D, member, begin[c], end[c], sums, base)
        for t in range(begin[s + 1], end[s + 1]):
            i = member[t]
            sums[i] = base[i] = to_splinter[i]
            cluster[i] = s + 1
        diameter[c] = _diameter(D, member, begin[c], end[c], cluster, farthest, farthest_object)
        diameter[s + 1] = _diameter(D, member, begin[s + 1], end[s + 1], cluster, farthest, farthest_object)
    return k - 1
