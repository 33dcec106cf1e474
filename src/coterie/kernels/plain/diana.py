"""Divisive analysis in NumPy, everything made anew at every step; the compiled kernel says what it is."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TIE = 1e-12


def divide(D: Array, least: float, split: Array, height: Array, cluster: Array) -> int:
    D = D.astype(np.float64)
    cluster[:] = 0
    parts, wide = [np.arange(len(D))], [D.max()]
    for s in range(len(split)):
        c = max((c for c in range(s + 1) if len(parts[c]) > 1), key=lambda c: (wide[c], -c))
        if wide[c] < least:
            return s
        split[s], height[s] = c, wide[c]
        leave = _splinter(D[np.ix_(parts[c], parts[c])])
        parts.append(parts[c][leave])
        parts[c] = parts[c][~leave]
        wide.append(D[np.ix_(parts[-1], parts[-1])].max())
        wide[c] = D[np.ix_(parts[c], parts[c])].max()
        cluster[parts[-1]] = s + 1
    return len(split)


def _splinter(D: Array) -> Array:
    total, leave = D.sum(axis=1), np.zeros(len(D), bool)
    leave[np.flatnonzero(total >= (1 - TIE) * total.max())[0]] = True
    there = D[:, leave].sum(axis=1)
    while (left := len(D) - leave.sum()) > 1:
        here = (total - there) / (left - 1)
        more = np.where(leave, -np.inf, here - there / leave.sum())
        best = int(more.argmax())
        if more[best] <= TIE * here[best]:
            break
        leave[best] = True
        there = there + D[:, best]
    return leave
