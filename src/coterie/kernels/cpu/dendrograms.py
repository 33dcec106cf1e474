"""Pairs of leaves of a tree: how high they meet, and how far apart the ends of its subtrees can be led."""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_finite

PAIR = 2  # leaves whose lines grow together: a row of distances is read once for both


@jit
def cophenetic_rows(
    parent,  # in   (2 n - 1,)
    sibling,  # in   (2 n - 1,)
    size,  # in   (2 n - 1,)
    first,  # in   (2 n - 1,) where the leaves of a node begin, from left to right
    height,  # in   (n - 1,)
    start,  # in   the first leaf
    stop,  # in   and the one after the last
    upper,  # in   whether later leaves alone are looked at
    line,  # work (n,)
    out,  # out  (all pairs,) of a leaf with all leaves, or with the later ones, leaf after leaf
):
    """The heights at which leaves from `start` to `stop` meet the others."""
    n, at = line.shape[0], 0
    root = parent.shape[0] - 1
    for leaf in range(start, stop):
        line[first[leaf]] = 0.0
        node = leaf
        while node != root:
            beside = sibling[node]
            node = parent[node]
            meeting = height[node - n]
            for t in range(first[beside], first[beside] + size[beside]):
                line[t] = meeting
        for other in range(leaf + 1 if upper else 0, n):
            out[at] = line[first[other]]
            at += 1


@jit_finite
def _relax(
    lines,  # in   (2, n)
    D,  # in   (n, n)
    begin,  # in
    end,  # in
    low,  # in
    high,  # in
    best,  # i/o  (2, n)
):
    """``best[:, j] = min over k of lines[:, k] + D[k, j]``, k from `begin` to `end` and j from `low` to `high`.

    Slices, and no more than two of each kind, are what the compiler makes vector code of.
    """
    one, two = best[0, low:high], best[1, low:high]
    for k in range(begin, end - 1, 2):
        p, q, r, s = lines[0, k], lines[1, k], lines[0, k + 1], lines[1, k + 1]
        here, next_to = D[k, low:high], D[k + 1, low:high]
        for j in range(one.shape[0]):
            d, e = here[j], next_to[j]
            one[j] = min(one[j], min(p + d, r + e))
            two[j] = min(two[j], min(q + d, s + e))
    if (end - begin) % 2:
        p, q, last = lines[0, end - 1], lines[1, end - 1], D[end - 1, low:high]
        for j in range(one.shape[0]):
            one[j] = min(one[j], p + last[j])
            two[j] = min(two[j], q + last[j])


@jit
def join_ends(
    D,  # in   (n, n) distances of the leaves, in the order of the tree
    a,  # in   where the left part begins
    a_mid,  # in   where its right half begins; a if it is a leaf
    b,  # in   where the right part begins
    b_mid,  # in   where its right half begins; b if it is a leaf
    c,  # in   where it ends
    start,  # in   leaves of the left part to look at
    stop,  # in
    M,  # i/o  (n, n) the shortest line from leaf to leaf, through all leaves of the subtree in which they meet
    work,  # work (3, 2, n)
):
    """Fills M between leaves `start` to `stop` of the left part and all of the right part, and its mirror image."""
    lines, across, through = work[0], work[1], work[2]
    i = start
    while i < stop:
        second = i >= a_mid
        count = min(PAIR, stop - i, (b if second else a_mid) - i)
        begin, end = (a, a_mid) if second and b - a > 1 else (a_mid, b)
        for row in range(PAIR):
            leaf = i + min(row, count - 1)
            for k in range(begin, end):
                lines[row, k] = M[leaf, k]
            for m in range(b, c):
                across[row, m] = np.inf
                through[row, m] = np.inf
        _relax(lines, D, begin, end, b, c, across)
        if c - b == 1:
            _relax(across, M, b, c, b, c, through)
        else:
            _relax(across, M, b, b_mid, b_mid, c, through)
            _relax(across, M, b_mid, c, b, b_mid, through)
        for row in range(count):
            for j in range(b, c):
                M[i + row, j] = through[row, j]
                M[j, i + row] = through[row, j]
        i += count
