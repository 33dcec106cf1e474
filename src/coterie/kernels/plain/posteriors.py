"""Responsibilities from log densities."""

import numpy as np

from coterie.kernels.plain.gaussian import Weights, posterior


def posteriors(
    scores: np.ndarray,
    offset: np.ndarray,
    w: Weights,
    e_step: str = "soft",
    known: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> tuple[np.ndarray, float, float]:
    """Responsibilities times weights (n, k), log-likelihood and bound.

    The log densities are `scores` (n, k), which may be overwritten, plus `offset` (k,). Terms that are the same for all
    components may be left out; the log-likelihood and bound are then without them. Other arguments as in `gaussian.em`.
    """
    r, per_row, bound = posterior(scores + offset, e_step, known, u)
    w = np.broadcast_to(np.ones(1) if w is None else w, len(r))
    return w[:, None] * r, float(w @ per_row), float(w @ bound)
