"""The trace of a fit, as data."""

from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

import coterie
from coterie.core.arrays import Array
from coterie.core.protocols import Chunk, CovarianceForm, EStepKind, Posterior, SoftAssignment
from coterie.core.scale import UNIT, Scale


@dataclass(frozen=True)
class Step:
    """The state of a fit after half an iteration.

    Attributes
    ----------
    kind : {'start', 'assign', 'update', 'E', 'M'}
        Type of the half step: assignment of rows ("assign", "E"), or update of centers or components ("update", "M").
    iteration : int
        Number of updates so far.
    params : object
        Parameters of the model, in its own format.
    centers : array of shape (k, d)
        Centers or means. For mixtures without means, the mean of the rows of each component.
    sizes : array of shape (k,)
        Total weight of the rows in each cluster; 0 at the start.
    labels : array of shape (m,) or None
        Cluster of each row in `Trace.rows`; None before the first assignment.
    changed : int or None
        Number of all rows whose cluster changed since the previous iteration; None at the first assignment.
    objective : float
        Objective after this half step, which the fit minimises, or maximises for mixtures. For mixtures, it is the
        log-likelihood, plus the log density of the prior if there is one. For variational Bayes, it is the evidence
        lower bound (ELBO).
    bound : float or None
        For mixtures, the lower bound of the log-likelihood by Jensen's inequality, including the prior. A (soft) E-step
        raises it to the log-likelihood, and an M-step raises it further.
    caption : str
        Short description of the half step.
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
    assign_params: Any = field(default=None, repr=False)  # parameters that assign the rows; None at the start
    places: Array | None = field(default=None, repr=False)  # (k,) number in this trace of each component in `params`


@dataclass(eq=False)
class Trace:
    """A fit after every half iteration, with a sample of its rows.

    Notebooks show it as a player. `save` writes it as an HTML page, GIF or MP4.

    Attributes
    ----------
    model : estimator
        The fitted estimator, identical to the result of `fit`.
    steps : list of Step
        Half steps of the best restart. If it has more than 240 iterations or 64 MB of parameters, the first iterations
        are complete, and of the later ones only pairs at increasing distances are recorded.
    objective : str
        Name of the objective.
    better : {'lower', 'higher'}
        Whether the fit minimises or maximises the objective.
    rows : array of shape (m, d)
        At most 5,000 of the rows, as the model transforms them: for example to unit length by `SphericalKMeans`.
        Missing values are replaced by the mean of their column.
    columns : list of str
        Names of the columns.
    n : int
        Number of rows of the fit.
    filled : bool
        Whether `rows` has missing values that were replaced.
    scale : tuple of two int
        Exponents of the powers of two by which rows and weights were divided before the fit, because their squares
        would leave the range of floating-point numbers. Rows, centers and objectives of the trace are in these units;
        the fitted attributes of `model` are in the units of X. (0, 0) if nothing was divided.
    """

    model: Any
    steps: list[Step] = field(repr=False)
    objective: str
    better: str
    rows: Array = field(repr=False)
    columns: list[str] = field(repr=False)
    n: int
    filled: bool = False
    scale: Scale = UNIT
    _fitted: Any = field(default=None, repr=False)  # the model with the methods of the steps
    _chunk: Chunk | None = field(default=None, repr=False)  # `rows` as this model expects them

    @property
    def objectives(self) -> Array:
        """Objective after every step (m,)."""
        return np.array([step.objective for step in self.steps])

    @property
    def bounds(self) -> Array:
        """Lower bound of the log-likelihood after every step (m,); NaN if there is none."""
        return np.array([np.nan if step.bound is None else step.bound for step in self.steps])

    @property
    def soft(self) -> bool:
        """Whether rows have a degree of membership in several clusters."""
        return self._share_method is not None

    @property
    def _share_method(self) -> str | None:
        """Name of the method of the model that returns the shares of rows."""
        if isinstance(self._fitted, EStepKind) and self._fitted.e_step_kind == "hard":
            return None
        if isinstance(self._fitted, Posterior):
            return "probabilities"
        return "memberships" if isinstance(self._fitted, SoftAssignment) else None

    def shares(self, step: Step) -> Array | None:
        """Return responsibilities or memberships of `rows` at a step (m, k); None for hard clusters or at the start."""
        if self._share_method is None or step.assign_params is None:
            return None
        method = getattr(self._fitted, self._share_method)
        shares = np.asarray(method(step.assign_params, self._chunk), dtype=np.float64)
        return shares if step.places is None else shares[:, np.argsort(step.places)]

    @property
    def form(self) -> str | None:
        """Form of the covariances in `params`: 'full', 'tied', 'diag' or 'spherical'; None if there are none."""
        return self._fitted.form if isinstance(self._fitted, CovarianceForm) else None

    def to_dict(self) -> dict[str, Any]:
        """Return all steps as numbers, strings and lists that JSON can hold, without rows and parameters."""
        return {
            "kind": "trace", "model": type(self.model).__name__,
            "objective": {"name": self.objective, "better": self.better}, "columns": list(self.columns),
            "rows": self.n, "shown": len(self.rows), "steps": [_step_dict(step) for step in self.steps],
        }  # fmt: skip

    def animate(self, columns: Any = None) -> Any:
        """Return an animation of the trace, see `coterie.plots.animate`."""
        return coterie.plots.animate(self, columns=columns)

    def save(
        self, path: str | PathLike[str], *, columns: Any = None, fps: float = 2.0, overwrite: bool = False
    ) -> None:
        """Write the animation as .html (a player), .gif or .mp4, see `coterie.plots.Animation.save`."""
        self.animate(columns).save(path, fps=fps, overwrite=overwrite)

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        return self.animate()._repr_html_()


def _step_dict(step: Step) -> dict[str, Any]:
    return {
        "step": step.kind, "iteration": step.iteration, "caption": step.caption, "centers": step.centers.tolist(),
        "sizes": step.sizes.tolist(), "changed": step.changed, "objective": _finite(step.objective),
        "bound": None if step.bound is None else _finite(step.bound),
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
