"""Fewer passes to the same fixed point, by extrapolating statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coterie.core.errors import CheckpointError
from coterie.core.protocols import Params

CAUTION = 0.8  # of the step that squared extrapolation would take: full steps overshoot, and cost a pass to take back
TRIES = 3  # steps tried before a plain one, each half as bold


class Squarem:
    """Squared extrapolation [1]_, in the space of the statistics.

    One iteration takes the statistics s, from which the parameters were made, to g(s). Two successive steps,
    r = g(s) - s and r + v, tell how fast they shrink; s - 2 a r + a^2 v, with a = -|r| / |v|, is where they lead.
    Statistics rather than parameters are extrapolated: whatever the M-step makes of them keeps the model's constraints.
    The loop takes the plain step where this one would be worse, so the objective never rises.

    Beside what every model has, `model.to_vector(params, stats)` states statistics taken with `params` as one vector
    that does not depend on `params`, and `model.from_vector(params, vector)` goes back, to None where the vector is
    not one that rows could have.

    .. [1] Varadhan & Roland (2008), Simple and globally convergent methods for accelerating the convergence of any EM
       algorithm, Scand. J. Statist. 35.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.trail: list[np.ndarray[Any, Any]] = []  # what the parameters were made of, and what came of it
        self.stretch = np.inf  # plain steps that seem to be left: 1 / (1 - rate)

    def tries(self, params: Params, stats: Any) -> Iterator[Any]:
        """Statistics further ahead than `stats`, boldest first; the caller goes on with the first that are better.

        The end of the iteration means a plain step.
        """
        self.trail.append(self.model.to_vector(params, stats))
        if len(self.trail) < 3:
            return
        s, g, gg = self.trail
        r = g - s
        v = gg - g - r
        self.stretch = max(1.0, float(np.linalg.norm(r)) / max(float(np.linalg.norm(v)), np.finfo(np.float64).tiny))
        a = -CAUTION * self.stretch
        for _ in range(TRIES):
            if a > -1.01:
                break
            vector = s - 2 * a * r + a * a * v
            ahead = self.model.from_vector(params, vector)
            if ahead is not None:
                self.trail = [vector]
                yield ahead
            a = (a - 1) / 2
        self.trail = [gg]

    def go_on(self, trail: list[np.ndarray[Any, Any]], stretch: float, like: np.ndarray[Any, Any]) -> None:
        """Go on with the trail of a fit that was cut short, whose vectors must be `like` this one."""
        if len(trail) > 2 or any(vector.shape != like.shape for vector in trail) or not stretch >= 1:
            raise CheckpointError(
                "the checkpoint's trail of statistics does not go with its parameters: delete the file to start anew"
            )
        self.trail, self.stretch = trail, stretch

    def forget(self) -> None:
        """To be called when parameters were made of something else."""
        self.trail = []
