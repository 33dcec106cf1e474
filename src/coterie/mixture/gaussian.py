"""Gaussian mixtures as EM: posterior probabilities, then weighted means and covariances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.families import forms
from coterie.families.normal_prior import Penalty
from coterie.families.structures import FLOOR, Structure, covariances, needs_floor
from coterie.kernels.plain.gaussian import Gaussians, weighted_sums
from coterie.mixture import missing
from coterie.mixture.em import DEAD, EM, RESEEDS, Event, Worst
from coterie.seeding.plusplus import uniform

LOG_TWO_PI = float(np.log(2 * np.pi))


BY_FORM = "real K D D | real D D | real K D | real K"  # covariances of a structure: full, tied, diagonal, spherical
MODEL_STORED = {
    "n_components": "size<K>",
    "structure": "<covariance.Structure>",
    "penalty": "<prior.NormalPenalty>",
    "origin": "real D",
    "unit": "real D",
}


def has_covariances_of_structure(model: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether the covariances of a fitted mixture have the shape of its structure."""
    components, fitted = model["_components"], model["_fitted_model"]
    if not hasattr(fitted, "structure"):
        return True
    k, d = lengths["K"], lengths["D"]
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}.get(fitted.structure.form)
    return components.covariances.shape == components.factor.shape == shape


@stored(
    "gaussian_mixture.Components",
    weights="real K",
    means="real K D",
    covariances=BY_FORM,
    factor=BY_FORM,
    log_det="real K",
    orientation="none | real D D",
)
class Components(NamedTuple):
    """The parameters, and what densities need of them. Leading axes, if any, are of independent mixtures."""

    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, d)
    covariances: np.ndarray  # by form
    factor: np.ndarray  # by form: upper triangular U with U U' the inverse
    log_det: np.ndarray  # (k,) log |U|
    orientation: np.ndarray | None = None  # (d, d) the common axes of EVE and VVE
    steps: int = 0  # M-steps that led here
    reseeds: np.ndarray | int = 0  # (k,) times each component started anew
    events: tuple[Event, ...] = ()  # of the last step


@stored("statistics.GaussianMixture", weight="real K", sum_dx="real K D", sum_dxx=BY_FORM)
@dataclass(frozen=True)
class GaussianStats(Stats):
    """Sums about the means they were taken with, under the E-step's posterior r."""

    weight: Any  # (k,) of w r
    sum_dx: Any  # (k, d) of w r (x - m)
    sum_dxx: Any  # by form, of w r (x - m)(x - m)'
    log_likelihood: Any
    bound: Any  # J(q, parameters): the log-likelihood itself after a soft E-step


@stored("gaussian_mixture.Model", **MODEL_STORED)
@dataclass(frozen=True)
class GaussianEM(EM):
    r"""Maximises :math:`\sum_i w_i \log \sum_k \pi_k N(x_i; \mu_k, \Sigma_k)` plus the log density of a prior [1]_.

    All that the M-step needs are the weights, sums and scatters of the components under the posterior, and they add
    up over chunks: so every covariance structure runs on every engine.

    .. [1] Dempster, Laird & Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39.
    """

    n_components: int
    structure: Structure
    penalty: Penalty
    origin: np.ndarray  # (d,) the mean of the rows
    unit: np.ndarray  # (d,) their standard deviations
    start: Any = None  # Components, or a function of (model, source, engine, rng) that finds them
    e_step_kind: str = "soft"
    fixed: frozenset[str] = frozenset()  # of "weights", "means", "covariances"
    missing: bool = False
    tol: float = 1e-3
    precision: float = float(np.finfo(np.float64).eps)  # of the rows
    sweeps: int = 50  # rounds of rotations of one M-step, for EVE and VVE: the next goes on where it stopped

    @property
    def form(self) -> str:
        return self.structure.form

    @property
    def reg_covar(self) -> float:
        return float((self.penalty.floor / self.unit**2).max())

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Components:
        found = self.start if isinstance(self.start, Components) else self.start(self, source, engine, rng)
        return found._replace(steps=int(rng.integers(2**31)) if self.e_step_kind == "stochastic" else 0)

    # E-step

    def e_step(self, c: Components, chunk: Chunk, memo: Any = None) -> tuple[GaussianStats, Any]:
        u = uniform(c.steps, chunk.part, chunk.X.shape[0]) if self.e_step_kind == "stochastic" else None
        how = self.e_step_kind, chunk.y, u
        if self.missing:
            memo = memo or missing.patterns(chunk.X)
            return GaussianStats(*missing.em(chunk.X, chunk.w, self.gaussians(c), memo, *how)), memo
        sums = kernels.for_centers(chunk.X, self.n_components).em(chunk.X, chunk.w, self._standardized(c), *how)
        volume = self.log_unit * float(sums.weight.sum())
        return GaussianStats(*sums[:3], sums.log_likelihood - volume, sums.bound - volume), None

    def given(self, c: Components, chunk: Chunk) -> GaussianStats:
        """Statistics about the means of `c` under the posterior that `chunk.y` (n, k) is."""
        resp = chunk.y if chunk.w is None else chunk.w[:, None] * chunk.y
        X = np.where(np.isnan(chunk.X), self.origin, chunk.X) if self.missing else chunk.X
        return GaussianStats(*weighted_sums(X, resp, self.gaussians(c)), 0.0, 0.0)

    def gaussians(self, c: Components) -> Gaussians:
        with np.errstate(divide="ignore"):
            offset = np.log(c.weights) - 0.5 * len(self.origin) * LOG_TWO_PI + c.log_det
        return Gaussians(self.form, offset, c.means, c.factor, c.weights @ c.means)

    @property
    def log_unit(self) -> float:
        """Log volume of a cell one unit wide in each column: log densities of standardized rows are larger by it."""
        return 0.0 if self.missing else float(np.log(self.unit).sum())

    def _standardized(self, c: Components) -> Gaussians:
        """Components whose log densities are those of standardized rows: they round alike at any scale of the rows."""
        gaussians = self.gaussians(c)
        return gaussians._replace(offset=gaussians.offset + self.log_unit)

    # M-step

    def m_step(self, c: Components, stats: GaussianStats) -> Components:
        """The likeliest components for the statistics; leading axes are of independent mixtures."""
        k, d = c.means.shape[-2:]
        total = stats.weight.sum(axis=-1)
        weight = np.maximum(stats.weight, DEAD * total[..., None] / k)
        step = np.zeros_like(c.means)
        if "means" not in self.fixed:
            pull = self.penalty.shrinkage
            step = (stats.sum_dx + pull * (self.penalty.mean - c.means)) / (weight + pull)[..., None]
        means = c.means + step
        weights = c.weights if "weights" in self.fixed else self.penalty.weights(stats.weight)
        if "covariances" in self.fixed:
            return c._replace(weights=weights, means=means, steps=c.steps + 1, events=())
        scatter = forms.recentered(self.form, stats.weight, stats.sum_dx, stats.sum_dxx, step)
        scatter = scatter + self.penalty.scatter(self.form, k, total)
        if self.penalty.shrinkage:
            away = means - self.penalty.mean
            scatter = scatter + forms.outer(self.form, np.full(weight.shape, self.penalty.shrinkage), away, away)
        found, orientation = covariances(
            self.structure, weight + self.penalty.rows, scatter, c.orientation, d=d, sweeps=self.sweeps
        )
        made = self.components(weights, means, found, orientation)
        if means.ndim == 2:
            made = made._replace(events=self._floored(scatter, float(total)) or made.events)
        return made._replace(steps=c.steps + 1, reseeds=c.reseeds)

    def _floored(self, scatter: np.ndarray, total: float) -> tuple[Event, ...]:
        """Components whose scatter has too little spread in some direction to make a covariance of."""
        k, share = self.n_components, (self.penalty.floor / self.unit**2).min()
        if share > 10 * k * FLOOR and self.structure.name[1:] not in ("EV", "VE"):
            return ()  # the floor is high enough for all
        parts = 1 if self.form == "tied" else k
        least = 2 * total / parts * np.minimum(self.penalty.floor, 10 * FLOOR * self.unit**2)
        low = np.broadcast_to(needs_floor(self.structure, scatter, least), k)
        return tuple(Event(0, int(j), "floored") for j in np.flatnonzero(low))

    def components(
        self, weights: np.ndarray, means: np.ndarray, found: np.ndarray, orientation: np.ndarray | None = None
    ) -> Components:
        """Parameters from weights, means and covariances; singular covariances are floored, and said to be."""
        f = forms.factors(self.form, found, *means.shape[-2:])
        events = ()
        if means.ndim == 2 and f.singular.any():
            events = tuple(Event(0, int(j), "floored") for j in np.flatnonzero(f.singular))
        return Components(weights, means, f.covariances, f.factor, f.log_det, orientation, events=events)

    def nowhere(self) -> Components:
        """Parameters for sums to be taken about, before there are any."""
        k, d = self.n_components, len(self.origin)
        one = {
            "full": np.eye(d)[None].repeat(k, 0),
            "tied": np.eye(d),
            "diag": np.ones((k, d)),
            "spherical": np.ones(k),
        }
        return self.components(np.full(k, 1 / k), np.repeat(self.origin[None], k, 0), one[self.form])

    def with_parts(self, c: Components, parts: dict[str, np.ndarray]) -> Components:
        """`c` with some of "weights", "means" and "covariances" replaced."""
        if not parts:
            return c
        arrays = (parts.get(name, getattr(c, name)) for name in ("weights", "means", "covariances"))
        return self.components(*arrays, None if "covariances" in parts else c.orientation)

    def repair(
        self, c: Components, stats: GaussianStats, source: Source, engine: Engine, memos: list[Any]
    ) -> Components:
        """A component that lost all its rows starts anew at the row that the mixture explains worst."""
        k = self.n_components
        dead = (stats.weight < DEAD * stats.weight.sum() / k) & (np.broadcast_to(c.reseeds, k) < RESEEDS)
        if not dead.any() or self.fixed:
            return c
        for j in np.flatnonzero(dead):
            worst = engine.sum(partial(self._worst, c), source)
            c = self._reseeded(c, int(j), worst.row)
        return c

    def _worst(self, c: Components, chunk: Chunk) -> Worst:
        density = self.log_densities(c, chunk)
        if chunk.w is not None:
            density = np.where(chunk.w > 0, density, np.inf)
        row = int(np.argmin(density))
        x = chunk.X[row]
        return Worst(float(density[row]), np.where(np.isnan(x), self.origin, x).astype(np.float64))

    def _reseeded(self, c: Components, j: int, row: np.ndarray) -> Components:
        """Component `j` at `row`, with an average component's weight and covariance."""
        k = self.n_components
        others = np.arange(k) != j
        weights = np.where(others, c.weights * (k - 1) / k / max(c.weights[others].sum(), DEAD), 1 / k)
        means, found = c.means.copy(), c.covariances
        means[j] = row
        if self.form != "tied":
            found = found.copy()
            found[j] = np.tensordot(weights[others] / weights[others].sum(), c.covariances[others], 1)
        anew = self.components(weights, means, found, c.orientation)
        reseeds = np.broadcast_to(c.reseeds, k) + ~others
        events = (*c.events, Event(0, j, "reseeded"))
        return anew._replace(steps=c.steps, reseeds=reseeds, events=events)

    # objective

    def objective(self, c: Components, stats: GaussianStats) -> Any:
        return -(stats.bound + self.log_prior(c, stats))

    def log_prior(self, c: Components, stats: GaussianStats) -> Any:
        return self.penalty.log_density(c, self.form, stats.weight.sum(axis=-1))

    def expected(self, c: Components, about: Components, stats: GaussianStats) -> float:
        """E[log p(x, z)] at `c` under the posterior whose statistics were taken with `about`."""
        sums = forms.recentered(self.form, stats.weight, stats.sum_dx, stats.sum_dxx, c.means - about.means)
        offset = np.where(stats.weight > 0, self.gaussians(c).offset, 0.0)
        return float(stats.weight @ offset - 0.5 * forms.mahalanobis(self.form, c.factor, sums))

    def rounding(self, c: Components, stats: GaussianStats, objective: float) -> float:
        """How far the objective can be off: more, where a component is far thinner than the rows are."""
        columns = {"full": self.unit[:, None], "tied": self.unit[:, None], "diag": self.unit}
        thin = float((np.abs(c.factor) * columns.get(self.form, self.unit.max())).max())
        size = abs(objective - self.log_unit * float(stats.weight.sum()))
        if thin > 1e4:
            size += float(stats.weight.sum()) * len(self.unit) * thin
        rounding = 16 * self.precision * size + 1e-10 + self._place_rounding(c, stats.weight)
        if self.form not in ("full", "tied"):
            return rounding
        logs = float(stats.weight.sum()) * len(self.unit) * float(forms.condition(c).max())
        return rounding + 16 * float(np.finfo(np.float64).eps) * logs  # determinants are taken in float64

    def _place_rounding(self, c: Components, weight: np.ndarray) -> float:
        """What the rounding of means costs: it matters far from the origin, to components that are thin."""
        matrices = self.form in ("full", "tied")
        inverse = np.sqrt(np.square(c.factor).sum(axis=-1)) if matrices else c.factor
        inverse = inverse[:, None] if self.form == "spherical" else inverse
        off = float(np.finfo(np.float64).eps) * (np.abs(c.means) * inverse).sum(axis=-1)
        return 0.5 * float(weight @ off**2)

    # statistics as a vector that does not depend on the parameters, for acceleration

    def to_vector(self, c: Components, stats: GaussianStats) -> np.ndarray:
        n, away = stats.weight, self.origin - c.means
        sum_x = (stats.sum_dx - n[:, None] * away) / self.unit
        sum_xx = forms.recentered(self.form, n, stats.sum_dx, stats.sum_dxx, away)
        return np.concatenate([n, sum_x.ravel(), self._in_units(sum_xx).ravel()])

    def from_vector(self, c: Components, vector: np.ndarray) -> GaussianStats | None:
        k, d = c.means.shape
        n, sum_x, sum_xx = vector[:k], vector[k : k + k * d].reshape(k, d), vector[k + k * d :]
        if n.min() <= DEAD * n.sum():
            return None
        shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[self.form]
        sum_xx = self._in_units(sum_xx.reshape(shape), -1)
        sum_x = sum_x * self.unit
        mean = sum_x / n[:, None]
        scatter = forms.recentered(self.form, n, sum_x, sum_xx, mean)
        if not _positive(self.form, self._in_units(scatter)):
            return None
        away = c.means - self.origin
        return GaussianStats(
            n, sum_x - n[:, None] * away, forms.recentered(self.form, n, sum_x, sum_xx, away), np.nan, np.nan
        )

    def _in_units(self, sums: np.ndarray, power: int = 1) -> np.ndarray:
        """Second moments in units of the columns' standard deviations."""
        if self.form == "spherical":
            return sums / (self.unit**2).mean() ** power
        if self.form == "diag":
            return sums / self.unit ** (2 * power)
        return sums / (self.unit[:, None] * self.unit) ** power

    def carry(self, before: Components, after: Components, stats: GaussianStats) -> GaussianStats:
        step = after.means - before.means
        sum_dx = stats.sum_dx - stats.weight[:, None] * step
        sum_dxx = forms.recentered(self.form, stats.weight, stats.sum_dx, stats.sum_dxx, step)
        return GaussianStats(stats.weight, sum_dx, sum_dxx, stats.log_likelihood, stats.bound)

    # answers, row by row

    def log_joint(self, c: Components, chunk: Chunk) -> np.ndarray:
        """log p(x, z) of every row and component (n, k)."""
        if self.missing:
            return missing.log_joint(chunk.X, self.gaussians(c), missing.patterns(chunk.X))
        return kernels.for_centers(chunk.X, self.n_components).log_joint(chunk.X, self.gaussians(c))

    def impute(self, c: Components, chunk: Chunk) -> np.ndarray:
        return missing.impute(chunk.X, self.gaussians(c), missing.patterns(chunk.X))

    def draw(self, c: Components, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """So many rows of each component, one component after the other."""
        k, d = c.means.shape
        scales = np.linalg.cholesky(forms.dense(self.form, c.covariances, k, d))
        parts = zip(counts, c.means, scales, strict=True)
        return np.concatenate([mean + rng.standard_normal((n, d)) @ scale.T for n, mean, scale in parts])


def _positive(form: str, scatter: np.ndarray) -> bool:
    """Whether the matrices could be scatters: positive definite."""
    if form in ("diag", "spherical"):
        return bool(scatter.min() > 0)
    try:
        np.linalg.cholesky(scatter)
    except np.linalg.LinAlgError:
        return False
    return True
