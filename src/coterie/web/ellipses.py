"""Ellipses of covariance matrices."""

from typing import Any

import numpy as np


def ellipses_of(centers: Any, covariances: Any, deviations: float = 2.0) -> list[list[float]]:
    r"""Return ellipses of covariances (k, 2, 2), each as [cx, cy, a, b, angle].

    An ellipse is :math:`\{\mu + r\,\Sigma^{1/2} u : |u| = 1\}`.
    `a` is the longer half axis, and `angle` its direction in radians.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.web import ellipses_of
    >>> ellipses_of(np.zeros((1, 2)), [np.diag([4.0, 1.0])], deviations=1.0)
    [[0.0, 0.0, 2.0, 1.0, 0.0]]
    """
    ellipses = []
    for (cx, cy), spread in zip(
        np.asarray(centers, dtype=np.float64), np.asarray(covariances, dtype=np.float64), strict=True
    ):
        difference, covariance = (spread[0, 0] - spread[1, 1]) / 2, spread[0, 1]
        mean, radius = (spread[0, 0] + spread[1, 1]) / 2, float(np.hypot(difference, covariance))
        a, b = (deviations * float(np.sqrt(max(value, 0.0))) for value in (mean + radius, mean - radius))
        ellipses.append([float(cx), float(cy), a, b, 0.5 * float(np.arctan2(covariance, difference))])
    return ellipses
