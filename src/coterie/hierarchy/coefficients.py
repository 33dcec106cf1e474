"""How clear the structure is that a tree shows."""

from __future__ import annotations

from typing import Any

from coterie.core.errors import InputError
from coterie.hierarchy.tree import as_tree


def banner_coefficient(Z: Any) -> float:
    r"""The agglomerative coefficient of a tree of merges, and the divisive one of a tree of splits.

    .. math:: \frac{1}{n} \sum_i \Bigl(1 - \frac{h(i)}{h}\Bigr)

    Here :math:`h(i)` is the height at which leaf :math:`i` is first merged, or at last split off, and :math:`h` the
    height of the whole tree: 0 for no structure, near 1 for tight clusters far apart. It grows with n, so that tables
    of different size cannot be compared by it. The `ac` of R's `agnes`, and the `dc` of `diana` [1]_.

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
        raise InputError("Z has no merge above height 0: without any distance there is no structure to judge")
    return float(1 - (tree.height[tree.parent[:n] - n] / highest).mean())
