"""Agglomerative and divisive coefficients."""

from __future__ import annotations

from typing import Any

from coterie.errors import InputError
from coterie.hierarchy.tree import as_tree


def banner_coefficient(Z: Any) -> float:
    r"""Compute the agglomerative coefficient of a tree of merges, or the divisive coefficient of a tree of splits.

    .. math:: \frac{1}{n} \sum_i \Bigl(1 - \frac{h(i)}{h}\Bigr)

    :math:`h(i)` is the height of the first merge of leaf :math:`i` (or of its last split), and :math:`h` the height of
    the whole tree. 0 means no structure; values near 1 mean compact clusters far apart. The coefficient increases with
    n: do not use it to compare data sets of different sizes. It is `ac` of R's `agnes`, and `dc` of `diana` [1]_.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.

    Returns
    -------
    float

    References
    ----------
    .. [1] L. Kaufman, P. J. Rousseeuw (1990), Finding groups in data, chapters 5 and 6, Wiley.
       https://doi.org/10.1002/9780470316801

    Examples
    --------
    >>> from coterie.hierarchy import banner_coefficient
    >>> banner_coefficient([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 10.0, 4]])
    0.85
    """
    tree = as_tree(Z)
    n = tree.n_leaves
    highest = tree.height.max(initial=0.0)
    if highest == 0:
        raise InputError("Z has no merge above height 0: the coefficient needs at least one positive height")
    return float(1 - (tree.height[tree.parent[:n] - n] / highest).mean())
