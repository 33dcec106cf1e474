"""Pairs of leaves of a dendrogram: cophenetic distances, and path lengths for optimal leaf orders."""

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_finite

PAIR = 2  # leaves that are processed together, so that a row of distances is read once for both


@jit
def cophenetic_rows(
    parent,  # in   (2 n - 1,)
    sibling,  # in   (2 n - 1,)
    size,  # in   (2 n - 1,)
    first,  # in   (2 n - 1,) position of the first leaf of each node, from left to right
    height,  # in   (n - 1,)
    start,  # in   first leaf
    stop,  # in   leaf after the last one
    line,  # work (n,)
    out,  # out  (pairs,) of each leaf with the later ones
):
    """Cophenetic distances of the leaves `start` to `stop`: heights at which they are merged with later leaves."""
    n, at = line.shape[0], 0
    root = parent.shape[0] - 1
    for leaf in range(start, stop):
        line[first[leaf]] = 0.0
        node = leaf
        while node != root:
            sibling_node = sibling[node]
            node = parent[node]
            merge_height = height[node - n]
            for t in range(first[sibling_node], first[sibling_node] + size[sibling_node]):
                line[t] = merge_height
        for other in range(leaf + 1, n):
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
    """``best[:, j] = min over k of lines[:, k] + D[k, j]``, for k from `begin` to `end` and j from `low` to `high`.

    The compiler makes vector code of this only with slices, and with at most two of each kind.
    """
    one, two = best[0, low:high], best[1, low:high]
    for k in range(begin, end - 1, 2):
        p, q, r, s = lines[0, k], lines[1, k], lines[0, k + 1], lines[1, k + 1]
        current, following = D[k, low:high], D[k + 1, low:high]
        for j in range(one.shape[0]):
            d, e = current[j], following[j]
            one[j] = min(one[j], min(p + d, r + e))
            two[j] = min(two[j], min(q + d, s + e))
    if (end - begin) % 2:
        p, q, last = lines[0, end - 1], lines[1, end - 1], D[end - 1, low:high]
        for j in range(one.shape[0]):
            one[j] = min(one[j], p + last[j])
            two[j] = min(two[j], q + last[j])


@jit
def path_lengths(
    D,  # in   (n, n) distances of the leaves, in the order of the tree
    a,  # in   start of the left part
    a_mid,  # in   start of its right half; a if it is a leaf
    b,  # in   start of the right part
    b_mid,  # in   start of its right half; b if it is a leaf
    c,  # in   end of the right part
    start,  # in   leaves of the left part to process
    stop,  # in
    M,  # i/o  (n, n) shortest path between two leaves through all leaves of their smallest common subtree
    work,  # work (3, 2, n)
):
    """Write M between leaves `start` to `stop` of the left part and all of the right part, and the transpose.

    One step of the optimal leaf ordering of Bar-Joseph et al. (2001).
    """
    lines, across, through = work[0], work[1], work[2]
    i = start
    while i < stop:
        is_right_half = i >= a_mid
        count = min(PAIR, stop - i, (b if is_right_half else a_mid) - i)
        begin, end = (a, a_mid) if is_right_half and b - a > 1 else (a_mid, b)
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
