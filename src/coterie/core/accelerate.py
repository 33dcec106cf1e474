"""Acceleration of EM: extrapolate the statistics, so that fewer passes lead to the same fixed point."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from coterie.core.protocols import Params
from coterie.errors import CheckpointError

STEP_SHARE = 0.8  # share of the step of SQUAREM: full steps often overshoot, and each rejected step costs a pass
MAX_TRIES = 3  # extrapolated steps tried before a plain one, each about half as long as the one before


class Squarem:
    """Squared extrapolation (SQUAREM) [1]_, in the space of the statistics.

    One iteration maps the statistics s, from which the parameters were estimated, to g(s). Two successive steps,
    r = g(s) - s and r + v, show how fast steps shrink. They extrapolate to s - 2 a r + a^2 v, with a = -|r| / |v|.
    Statistics are extrapolated rather than parameters, because the M-step then keeps the constraints of the model.
    The loop takes the plain step where the extrapolated one is worse, so the objective never rises.

    The model needs two more methods. `model.to_vector(params, stats)` converts statistics computed with `params` to
    one vector that does not depend on `params`. `model.from_vector(params, vector)` converts back; it returns None if
    no rows could have these statistics.

    .. [1] Varadhan & Roland (2008), Simple and globally convergent methods for accelerating the convergence of any EM
       algorithm, Scand. J. Statist. 35.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.trail: list[np.ndarray[Any, Any]] = []  # vectors of successive statistics
        self.stretch = np.inf  # estimated number of plain steps left: 1 / (1 - rate)

    def tries(self, params: Params, stats: Any) -> Iterator[Any]:
        """Extrapolated statistics, the longest step first, until the objective improves; then take a plain step."""
        self.trail.append(self.model.to_vector(params, stats))
        if len(self.trail) < 3:
            return
        s, g, gg = self.trail
        r = g - s
        v = gg - g - r
        self.stretch = max(1.0, float(np.linalg.norm(r)) / max(float(np.linalg.norm(v)), np.finfo(np.float64).tiny))
        a = -STEP_SHARE * self.stretch
        for _ in range(MAX_TRIES):
            if a > -1.01:
                break
            vector = s - 2 * a * r + a * a * v
            ahead = self.model.from_vector(params, vector)
            if ahead is not None:
                self.trail = [vector]
                yield ahead
            a = (a - 1) / 2
        self.trail = [gg]

    def restore(self, trail: list[np.ndarray[Any, Any]], stretch: float, like: np.ndarray[Any, Any]) -> None:
        """Restore the state of an interrupted fit, whose vectors must have the shape of `like`."""
        if len(trail) > 2 or any(vector.shape != like.shape for vector in trail) or not stretch >= 1:
            raise CheckpointError(
                "the statistics in the checkpoint do not match its parameters: delete the file to start a new fit"
            )
        self.trail, self.stretch = trail, stretch

    def reset(self) -> None:
        """Start a new extrapolation, because the parameters were not estimated from the last statistics alone."""
        self.trail = []
