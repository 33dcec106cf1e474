"""Pairs of leaves of a tree, in NumPy; the compiled kernels say what they are."""

from __future__ import annotations

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
    upper: bool,
    line: Array,
    out: Array,
) -> None:
    """Between two places of the order lie the gaps of all merges on the way; the last of these is where leaves meet."""
    n, at = len(line), 0
    begins = np.maximum(first, first[sibling])[:-1]  # of the right one of two siblings
    gap = np.zeros(n, np.int64)
    gap[begins] = parent[:-1] - n
    for leaf in range(start, stop):
        place = first[leaf]
        line[place] = 0
        line[place + 1 :] = height[np.maximum.accumulate(gap[place + 1 :])]
        line[:place] = height[np.maximum.accumulate(gap[place:0:-1])][::-1]
        row = line[first[leaf + 1 if upper else 0 : n]]
        out[at : at + len(row)] = row
        at += len(row)


def join_ends(
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
        before = slice(a, a_mid) if i >= a_mid and b - a > 1 else slice(a_mid, b)
        across = (M[i, before, None] + D[before, b:c]).min(axis=0)
        for others, here in ((slice(b, b_mid), slice(b_mid, c)), (slice(b_mid, c), slice(b, b_mid))):
            if c - b == 1:
                others = here = slice(b, c)
            if here.start < here.stop:
                M[i, here] = (across[others.start - b : others.stop - b, None] + M[others, here]).min(axis=0)
    M[b:c, start:stop] = M[start:stop, b:c].T
