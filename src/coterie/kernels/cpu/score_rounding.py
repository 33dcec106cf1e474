"""Rounding of the scores of rows and centers.

Row x and center c are relative to the origin, in units. With u = 2^-24 or 2^-53 and e = (d + 4) u, the
error of a score is at most e (|x| |c| + |c|^2 / 2), and so at most e (|x|^2 / 2 + |c|^2), because 2 |x| |c| is at most
|x|^2 + |c|^2. The term of |c|^2 is subtracted from |c|^2 / 2 in advance: then `score - e |x|^2 / 2` is a lower bound
for every center, and a center far from the origin affects its own scores only. The definition rounds in float64: its
relative error f = (d + 4) 2^-53 of a squared distance is at most f (2 |x|^2 + 2 |c|^2), and is added to both terms.
"""

from collections import namedtuple

import numpy as np

from coterie.kernels.cpu.jit import jit

Rounding = namedtuple(
    "Rounding",
    (
        "score",  # relative error of a score and of a squared norm
        "norm",  # two scores are certain if they differ by more than norm |x|^2 + half |c|^2 / 2 + tiny,
        "half",  # where c is the better center
        "quick",  # the same with quick (score + |x|^2) instead of half |c|^2 / 2, which is at most as large
        "square",  # relative difference of two squared distances that is certain
        "tiny",  # bound of the underflow of scores and squares
    ),
)


@jit
def bound_rounding(X):
    """Bounds of rounding errors in the dtype of X, and the factor of |c|^2 in the scores, which is about 1 / 2."""
    d, number = X.shape[1], X.dtype.type
    e, f = (d + 4) * 2.0 ** (-24 if X.itemsize == 4 else -53), (d + 4) * 2.0**-53
    tiny = (d + 4) * 2.0 ** (-124 if X.itemsize == 4 else -1020)
    margin = 1.01 * (1.0 + 32.0 * e)  # for terms of second order, and the rounding of the bounds themselves
    if e > 2.0**-7:  # so many columns that the margin is not sufficient: all rows are ambiguous
        margin = np.inf
    e, f = margin * e, margin * f
    rounding = Rounding(
        number(e), number(e + 2.0 * f), number(4.0 * (e + f)), number(8.0 * (e + f)), number(4.0 * e), number(tiny)
    )
    return rounding, 0.5 - (e + f) if e < 0.5 else 0.5


@jit
def tolerance(s, p):
    """The largest difference of the two best scores of row `p` that rounding can explain."""
    if not s.best[p] < np.inf:
        return s.best[p]
    return s.rounding.norm * s.norm[p] + s.rounding.half * s.half[s.index[p]] + s.rounding.tiny
