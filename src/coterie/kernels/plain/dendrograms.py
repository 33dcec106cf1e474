"""Pairs of leaves of a dendrogram, in NumPy. See `kernels.cpu.dendrograms`."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def cophenetic_rows(
    parent: Array,
    sibling: Array,
    size: Array,
    first: Array,
    height: Array,
    start: int,
    stop: int,
    line: Array,
    out: Array,
) -> None:
    """Two leaves are merged by the last of the merges whose two clusters meet between their positions."""
    n, offset = len(line), 0
    begins = np.maximum(first, first[sibling])[:-1]  # of the right one of two siblings
    merge = np.zeros(n, np.int64)
    merge[begins] = parent[:-1] - n
    for leaf in range(start, stop):
        position = first[leaf]
        line[position] = 0
        line[position + 1 :] = height[np.maximum.accumulate(merge[position + 1 :])]
        line[:position] = height[np.maximum.accumulate(merge[position:0:-1])][::-1]
        row = line[first[leaf + 1 : n]]
        out[offset : offset + len(row)] = row
        offset += len(row)


def path_lengths(
    D: Array,
    a: int,
    a_mid: int,
    b: int,
    b_mid: int,
    c: int,
    start: int,
    stop: int,
    M: Array,
    work: Array,
) -> None:
    for i in range(start, stop):
        left = slice(a, a_mid) if i >= a_mid and b - a > 1 else slice(a_mid, b)
        across = (M[i, left, None] + D[left, b:c]).min(axis=0)
        for others, right in ((slice(b, b_mid), slice(b_mid, c)), (slice(b_mid, c), slice(b, b_mid))):
            if c - b == 1:
                others = right = slice(b, c)
            if right.start < right.stop:
                M[i, right] = (across[others.start - b : others.stop - b, None] + M[others, right]).min(axis=0)
    M[b:c, start:stop] = M[start:stop, b:c].T
