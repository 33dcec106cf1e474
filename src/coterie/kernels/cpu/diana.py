"""Divisive analysis: the widest cluster is split, by a splinter group that draws objects over one by one.

Members of a cluster are a run of `member`, in the order of their numbers. What a split changes is kept up to date, not
made anew: the sums of distances within a cluster by what left it, the diameter by bounds on every member's farthest.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_inner

LOST = 4096.0  # a sum that shrank by so much is taken anew: its digits went with what was subtracted
TIE = 1e-12  # differences of means below that share of them are rounding


@jit_inner
def _take_sums(D, member, begin, end, sums, base):
    """The distances of every member to the cluster, summed."""
    for t in range(begin, end):
        i = member[t]
        total = 0.0
        for u in range(begin, end):
            total += D[i, member[u]]
        sums[i] = base[i] = total


@jit_inner
def _diameter(D, member, begin, end, cluster, far, far_to):
    """The largest distance in a cluster: bounds are looked up anew from the largest on, until one is right."""
    if end - begin == 1:
        return 0.0
    while True:
        i = member[begin]
        for t in range(begin + 1, end):
            if far[member[t]] > far[i]:
                i = member[t]
        if cluster[far_to[i]] == cluster[i]:
            return far[i]
        far[i] = -1.0
        for t in range(begin, end):
            j = member[t]
            if j != i and D[i, j] > far[i]:
                far[i], far_to[i] = D[i, j], j


@jit_inner
def _draw(D, member, begin, end, mover, there, moved):
    """Moves an object to the splinter group."""
    moved[mover] = True
    for t in range(begin, end):
        there[member[t]] += D[mover, member[t]]


@jit_inner
def _splinter(D, member, begin, end, sums, there, moved):
    """Which members leave: first the one farthest from the rest on average, then all that are nearer to those gone.

    Returns how many; `there` are the sums of distances to them.
    """
    largest = 0.0
    for t in range(begin, end):
        i = member[t]
        there[i], moved[i] = 0.0, False
        largest = max(largest, sums[i])
    seed = -1
    for t in range(begin, end):
        if seed < 0 and sums[member[t]] >= (1 - TIE) * largest:
            seed = member[t]
    _draw(D, member, begin, end, seed, there, moved)
    gone, left = 1, end - begin - 1
    while left > 1:
        best, gain, scale = -1, 0.0, 0.0
        for t in range(begin, end):
            i = member[t]
            if not moved[i]:
                here = (sums[i] - there[i]) / (left - 1)
                more = here - there[i] / gone
                if best < 0 or more > gain:
                    best, gain, scale = i, more, here
        if gain <= TIE * scale:
            break
        _draw(D, member, begin, end, best, there, moved)
        gone, left = gone + 1, left - 1
    return gone


@jit_inner
def _part(member, begin, end, gone, moved, room):
    """Puts those who leave behind the others, each in the order of their numbers."""
    stay, leave = begin, 0
    for t in range(begin, end):
        i = member[t]
        if moved[i]:
            room[leave] = i
            leave += 1
        else:
            member[stay] = i
            stay += 1
    for t in range(gone):
        member[stay + t] = room[t]


@jit
def divide(
    D,  # in   (n, n)
    least,  # in   clusters of a smaller diameter are not split
    split,  # out  (k - 1,) which cluster is split: the rest keeps its number, split s makes cluster s + 1
    height,  # out  (k - 1,) its diameter
    cluster,  # out  (n,) the cluster of every object, after all splits
):
    """Splits all objects k - 1 times at most; how many times it did."""
    n, k = D.shape[0], len(split) + 1
    member, room = np.arange(n), np.empty(n, np.int64)
    begin, end, wide = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k)
    sums, base, there, moved = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.bool_)
    far, far_to = np.full(n, np.inf), np.zeros(n, np.int64)
    for i in range(n):
        cluster[i] = 0
        far[i] = -1.0
        for j in range(n):
            if j != i and D[i, j] > far[i]:
                far[i], far_to[i] = D[i, j], j
    end[0] = n
    _take_sums(D, member, 0, n, sums, base)
    wide[0] = _diameter(D, member, 0, n, cluster, far, far_to)
    for s in range(k - 1):
        c = -1
        for other in range(s + 1):
            if end[other] - begin[other] > 1 and (c < 0 or wide[other] > wide[c]):
                c = other
        if wide[c] < least:
            return s
        split[s], height[s] = c, wide[c]
        gone = _splinter(D, member, begin[c], end[c], sums, there, moved)
        _part(member, begin[c], end[c], gone, moved, room)
        begin[s + 1], end[s + 1] = end[c] - gone, end[c]
        end[c] -= gone
        lost = False
        for t in range(begin[c], end[c]):
            i = member[t]
            sums[i] -= there[i]
            lost = lost or sums[i] * LOST < base[i]
        if lost:
            _take_sums(D, member, begin[c], end[c], sums, base)
        for t in range(begin[s + 1], end[s + 1]):
            i = member[t]
            sums[i] = base[i] = there[i]
            cluster[i] = s + 1
        wide[c] = _diameter(D, member, begin[c], end[c], cluster, far, far_to)
        wide[s + 1] = _diameter(D, member, begin[s + 1], end[s + 1], cluster, far, far_to)
    return k - 1
