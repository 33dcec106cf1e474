"""The way of a fit as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from coterie.core.protocols import Chunk

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Step:
    """A fit after half a step.

    Attributes
    ----------
    kind : {'start', 'assign', 'update', 'E', 'M'}
        Rows have joined clusters ("assign", "E"), or centers and components have followed them ("update", "M").
    iteration : int
        Updates taken.
    params : as the model has them
    centers : array (k, d)
        Centers or means; of mixtures that have none, the mean row of each component.
    sizes : array (k,)
        Weight of the rows of each cluster; nothing at the start.
    labels : array (m,) or None
        The cluster of every row shown; None before the first.
    changed : int or None
        How many of all rows are in another cluster than an iteration ago; None where there was none.
    objective : float
        What the fit makes small, or of mixtures large, after this half step. Of mixtures it is the log-likelihood (with
        the log density of the prior, if there is one), of beliefs the lower bound of the log evidence.
    bound : float or None
        Of mixtures, Jensen's bound of the log-likelihood, with the prior: it rises to the log-likelihood in a (soft)
        E-step, and above the old one in an M-step.
    caption : str
        What happened, in a sentence.
    """

    kind: str
    iteration: int
    params: Any = field(repr=False)
    centers: Array = field(repr=False)
    sizes: Array = field(repr=False)
    labels: Array | None = field(repr=False)
    changed: int | None
    objective: float
    bound: float | None
    caption: str
    by: Any = field(default=None, repr=False)  # the parameters that rows are divided by; None: they are not yet
    places: Array | None = field(
        default=None, repr=False
    )  # (k,) the number that each of the model's components has here


@dataclass(eq=False)
class Trace:
    """A fit, half step by half step, with some of its rows to be shown.

    A notebook shows it as a player; `save` writes that as a page, or a GIF or MP4.

    Attributes
    ----------
    model : estimator
        As `fit` leaves it, to the last bit.
    steps : list of `Step`
        Of the best start. Beyond 240 iterations, or 64 MB of parameters, the first half of as many is kept, and of the
        later ones pairs.
    objective : str
        What `Step.objective` is called.
    better : {'lower', 'higher'}
    rows : array (m, d)
        Up to 5,000 of the rows, as the model sees them: of unit length for `SphericalKMeans`; where a value is missing,
        with the mean of its column.
    columns : list of str
    n : int
        Rows there are.
    filled : bool
        Whether values of these rows are missing.
    """

    model: Any
    steps: list[Step] = field(repr=False)
    objective: str
    better: str
    rows: Array = field(repr=False)
    columns: list[str] = field(repr=False)
    n: int
    filled: bool = False
    _fitted: Any = field(default=None, repr=False)  # the model whose steps these are
    _chunk: Chunk | None = field(default=None, repr=False)  # the rows shown, as that wants them

    @property
    def objectives(self) -> Array:
        """The objective after every step (m,)."""
        return np.array([step.objective for step in self.steps])

    @property
    def bounds(self) -> Array:
        """Jensen's bound after every step (m,); NaN where there is none."""
        return np.array([np.nan if step.bound is None else step.bound for step in self.steps])

    @property
    def soft(self) -> bool:
        """Whether rows belong to several clusters at a time."""
        return self._verb is not None

    @property
    def _verb(self) -> str | None:
        if getattr(self._fitted, "e_step_kind", "soft") == "hard":
            return None
        return next((verb for verb in ("probabilities", "memberships") if hasattr(self._fitted, verb)), None)

    def shares(self, step: Step) -> Array | None:
        """How much of every row shown each cluster has at a step (m, k); None if rows have one cluster, or none yet."""
        if self._verb is None or step.by is None:
            return None
        found = np.asarray(getattr(self._fitted, self._verb)(step.by, self._chunk), dtype=np.float64)
        if step.places is not None:
            found = found[:, np.argsort(step.places)]
        return found

    @property
    def form(self) -> str | None:
        """How `params` keep covariances, where they do: 'full', 'tied', 'diag' or 'spherical'."""
        return getattr(self._fitted, "form", None)

    def to_dict(self) -> dict[str, Any]:
        """All steps as lists, numbers and texts: what JSON can hold. Rows and parameters stay here."""
        return {
            "kind": "trace",
            "model": type(self.model).__name__,
            "objective": {"name": self.objective, "better": self.better},
            "columns": list(self.columns),
            "rows": self.n,
            "shown": len(self.rows),
            "steps": [_plain(step) for step in self.steps],
        }

    def animate(self, columns: Any = None) -> Any:
        """A player of it, as `coterie.plots.animate` makes."""
        from coterie.plots.animation import animate

        return animate(self, columns=columns)

    def save(
        self, path: str | PathLike[str], *, columns: Any = None, fps: float = 2.0, overwrite: bool = False
    ) -> None:
        """Write it as a page that plays it (.html), or as .gif or .mp4, `fps` steps a second."""
        self.animate(columns).save(path, fps=fps, overwrite=overwrite)

    def _repr_html_(self) -> str:
        """How notebooks show it."""
        return self.animate()._repr_html_()


def _plain(step: Step) -> dict[str, Any]:
    return {
        "step": step.kind,
        "iteration": step.iteration,
        "caption": step.caption,
        "centers": step.centers.tolist(),
        "sizes": step.sizes.tolist(),
        "changed": step.changed,
        "objective": _finite(step.objective),
        "bound": None if step.bound is None else _finite(step.bound),
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
