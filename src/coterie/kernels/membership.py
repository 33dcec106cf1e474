"""The membership matrix of labels."""

from typing import Any

import numpy as np
from scipy import sparse


def membership(labels: Any, k: int, w: Any = None) -> Any:
    """The sparse matrix (k, n) whose entry (j, i) is the weight of row i if its label is j, and 0 otherwise.

    Its product with rows (n, d) is the weighted sum of the rows of each cluster (k, d).
    """
    n = len(labels)
    return sparse.csr_array((np.ones(n) if w is None else w, labels, np.arange(n + 1)), shape=(n, k)).T
