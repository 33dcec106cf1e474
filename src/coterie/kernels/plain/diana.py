"""Divisive analysis (DIANA) in NumPy; all sums are computed again at each step. See `kernels.cpu.diana`."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TIE = 1e-12  # relative differences below this are rounding


def divide(D: Array, min_diameter: float, split: Array, height: Array, cluster: Array) -> int:
    D = D.astype(np.float64)
    cluster[:] = 0
    members, diameter = [np.arange(len(D))], [D.max()]
    for s in range(len(split)):
        c = max((c for c in range(s + 1) if len(members[c]) > 1), key=lambda c: (diameter[c], -c))
        if diameter[c] < min_diameter:
            return s
        split[s], height[s] = c, diameter[c]
        splinter = _splinter(D[np.ix_(members[c], members[c])])
        members.append(members[c][splinter])
        members[c] = members[c][~splinter]
        diameter.append(D[np.ix_(members[-1], members[-1])].max())
        diameter[c] = D[np.ix_(members[c], members[c])].max()
        cluster[members[-1]] = s + 1
    return len(split)


def _splinter(D: Array) -> Array:
    """Mask (n,) of the objects that leave a cluster with distances `D` (n, n)."""
    total, splinter = D.sum(axis=1), np.zeros(len(D), bool)
    splinter[np.flatnonzero(total >= (1 - TIE) * total.max())[0]] = True
    to_splinter = D[:, splinter].sum(axis=1)
    while (n_rest := len(D) - splinter.sum()) > 1:
        to_rest = (total - to_splinter) / (n_rest - 1)
        gain = np.where(splinter, -np.inf, to_rest - to_splinter / splinter.sum())
        best = int(gain.argmax())
        if gain[best] <= TIE * to_rest[best]:
            break
        splinter[best] = True
        to_splinter = to_splinter + D[:, best]
    return splinter
