"""EM for Gaussian mixtures: posterior probabilities, then weighted means and covariances."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import LENGTHS, Powers
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.families import forms
from coterie.families.normal_prior import Penalty
from coterie.families.scaled_gaussians import LOG_TWO_PI
from coterie.families.structures import FLOOR, Structure, covariances, needs_floor
from coterie.kernels.plain.gaussian import Gaussians
from coterie.mixture import missing
from coterie.mixture.em import EM, EMPTY, ROUNDING, Event

PASSES = 32  # passes of a fit, for which kernels are selected
ABOVE_FLOOR = 1e4  # a scatter with a penalty of so many times the floor needs no check
BY_FORM = "real K D D | real D D | real K D | real K"  # covariances of a structure: full, tied, diagonal, spherical
MODEL_STORED: dict[str, Any] = {
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
    shape = forms.shape(fitted.structure.form, lengths["K"], lengths["D"])
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
    """Parameters, and quantities derived from them for densities. Leading axes, if any, are independent mixtures."""

    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, d)
    covariances: np.ndarray  # by form
    factor: np.ndarray  # by form: upper triangular U with U U' the inverse
    log_det: np.ndarray  # (k,) log |U|
    orientation: np.ndarray | None = None  # (d, d) the common axes of EVE and VVE
    steps: int = 0  # number of M-steps so far
    reseeds: np.ndarray | int = 0  # (k,) number of times that each component was reseeded
    events: tuple[Event, ...] = ()  # of the last step


POWERS = {  # of the unit of the rows, with which fitted arrays scale
    "means_": LENGTHS,
    "covariances_": Powers(2, 0),
    "precisions_": Powers(-2, 0),
    "precisions_cholesky_": Powers(-1, 0),
}


def fitted_arrays(form: str, c: Any) -> dict[str, np.ndarray]:
    """The parameters by the names of fitted attributes."""
    precisions = c.factor @ np.swapaxes(c.factor, -1, -2) if form in ("full", "tied") else c.factor**2
    arrays = {"weights_": c.weights, "means_": c.means, "covariances_": c.covariances, "precisions_": precisions}
    return {**arrays, "precisions_cholesky_": c.factor}


@stored("statistics.GaussianMixture", weight="real K", sum_dx="real K D", sum_dxx=BY_FORM)
@dataclass(frozen=True)
class GaussianStats(Stats):
    """Sums of deviations from the means m of the E-step, weighted with its responsibilities r."""

    weight: Any  # (k,) of w r
    sum_dx: Any  # (k, d) of w r (x - m)
    sum_dxx: Any  # by form, of w r (x - m)(x - m)'
    log_likelihood: Any
    bound: Any  # J(q, parameters): equal to the log-likelihood after a soft E-step


@stored("gaussian_mixture.Model", **MODEL_STORED)
@dataclass(frozen=True)
class GaussianEM(EM):
    r"""Maximises :math:`\sum_i w_i \log \sum_k \pi_k N(x_i; \mu_k, \Sigma_k)` plus the log density of a prior [1]_.

    The M-step needs only the weights, sums and scatters of the components, which are additive over chunks. So every
    covariance structure runs on every engine.

    .. [1] Dempster, Laird & Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39.
    """

    n_components: int
    structure: Structure
    penalty: Penalty
    origin: np.ndarray  # (d,) the mean of the rows
    unit: np.ndarray  # (d,) their standard deviations
    start: Any = None  # Components, or a function of (model, source, engine, rng) that returns them
    e_step_kind: str = "soft"
    fixed: frozenset[str] = frozenset()  # of "weights", "means", "covariances"
    missing: bool = False
    tol: float = 1e-3
    is_extrapolated: bool = False
    precision: float = float(np.finfo(np.float64).eps)  # of the rows
    sweeps: int = 50  # maximum number of sweeps of rotations in an M-step of EVE and VVE; the next M-step continues

    @property
    def form(self) -> str:
        return self.structure.form

    @property
    def reg_covar(self) -> float:
        return float((self.penalty.floor / self.unit**2).max())

    # E-step

    def e_step(self, c: Components, chunk: Chunk, memo: Any = None) -> tuple[GaussianStats, Any]:
        options = self.e_step_kind, chunk.y, self.uniform_numbers(c, chunk)
        if self.missing:
            memo = memo or missing.patterns(chunk.X)
            return GaussianStats(*missing.em(chunk.X, chunk.w, self.gaussians(c), memo, *options)), memo
        ops = kernels.for_centers(chunk.X, PASSES * self.n_components)
        sums = ops.em(chunk.X, chunk.w, self._standardized(c), *options)
        volume = self.log_unit * float(sums.weight.sum())
        sums = sums._replace(log_likelihood=sums.log_likelihood - volume, bound=sums.bound - volume)
        return GaussianStats(*sums), None

    def stats_for(self, c: Components, chunk: Chunk) -> GaussianStats:
        """Statistics about the means of `c` with the responsibilities `chunk.y` (n, k)."""
        resp = chunk.y if chunk.w is None else chunk.w[:, None] * chunk.y
        X = np.where(np.isnan(chunk.X), self.origin, chunk.X) if self.missing else chunk.X
        ops = kernels.for_centers(X, self.n_components)
        weight, sum_dx, sum_dxx = ops.weighted_sums(X, resp, self.gaussians(c))
        return GaussianStats(weight, sum_dx, sum_dxx, 0.0, 0.0)

    def gaussians(self, c: Components) -> Gaussians:
        with np.errstate(divide="ignore"):
            offset = np.log(c.weights) - 0.5 * len(self.origin) * LOG_TWO_PI + c.log_det
        return Gaussians(self.form, offset, c.means, c.factor, c.weights @ c.means)

    @property
    def log_unit(self) -> float:
        """Log volume of a cell of one unit in each column: log densities of standardised rows are larger by it."""
        return 0.0 if self.missing else float(np.log(self.unit).sum())

    def _standardized(self, c: Components) -> Gaussians:
        """Components whose log densities are those of standardised rows, so that rounding does not depend on scale."""
        gaussians = self.gaussians(c)
        return gaussians._replace(offset=gaussians.offset + self.log_unit)

    # M-step

    def m_step(self, c: Components, stats: GaussianStats) -> Components:
        """The maximum-likelihood components for the statistics; leading axes are independent mixtures."""
        k, d = c.means.shape[-2:]
        total = stats.weight.sum(axis=-1)
        weight = np.maximum(stats.weight, EMPTY * total[..., None] / k)
        step = np.zeros_like(c.means)
        if "means" not in self.fixed:
            shrinkage = self.penalty.shrinkage
            step = (stats.sum_dx + shrinkage * (self.penalty.mean - c.means)) / (weight + shrinkage)[..., None]
        means = c.means + step
        weights = c.weights if "weights" in self.fixed else self.penalty.weights(stats.weight)
        if "covariances" in self.fixed:
            return c._replace(weights=weights, means=means, steps=c.steps + 1, events=())
        scatter = forms.recentered(self.form, stats.weight, stats.sum_dx, stats.sum_dxx, step)
        scatter = self.penalty.with_scatter(scatter, self.form, means, total)
        matrices, orientation = covariances(
            self.structure, weight + self.penalty.rows, scatter, c.orientation, d=d, sweeps=self.sweeps,
            is_floored=self._penalty_share > ABOVE_FLOOR * FLOOR and not self.penalty.shrinkage,
        )  # fmt: skip
        components = self.components(weights, means, matrices, orientation)
        if means.ndim == 2:
            components = components._replace(events=self._floored(scatter, float(total)) or components.events)
        return components._replace(steps=c.steps + 1, reseeds=c.reseeds)

    @property
    def _penalty_share(self) -> float:
        """Minimum share of `reg_covar` in the scatter of a component, relative to the scatter of all rows."""
        return float((self.penalty.floor / self.unit**2).min()) / self.n_components

    def _floored(self, scatter: np.ndarray, total: float) -> tuple[Event, ...]:
        """Events of components whose scatter is too small in some direction for a covariance."""
        k = self.n_components
        if self._penalty_share > 10 * FLOOR and self.structure.name[1:] not in ("EV", "VE"):
            return ()  # the floor of the penalty is high enough for all
        n_matrices = 1 if self.form == "tied" else k
        minimum = 2 * total / n_matrices * np.minimum(self.penalty.floor, 10 * FLOOR * self.unit**2)
        is_low = np.broadcast_to(needs_floor(self.structure, scatter, minimum), k)
        return tuple(Event(0, int(j), "floored") for j in np.flatnonzero(is_low))

    def components(
        self, weights: np.ndarray, means: np.ndarray, matrices: np.ndarray, orientation: np.ndarray | None = None
    ) -> Components:
        """Parameters from weights, means and covariances; singular covariances are floored, with an event."""
        f = forms.factors(self.form, matrices, *means.shape[-2:])
        events: tuple[Event, ...] = ()
        if means.ndim == 2 and f.singular.any():
            events = tuple(Event(0, int(j), "floored") for j in np.flatnonzero(f.singular))
        return Components(weights, means, f.covariances, f.factor, f.log_det, orientation, events=events)

    def reference(self) -> Components:
        """Equal components at the mean of the rows, as the reference of the first sums."""
        k, d = self.n_components, len(self.origin)
        shape = forms.shape(self.form, k, d)
        identity = np.broadcast_to(np.eye(d), shape) if self.form in ("full", "tied") else np.ones(shape)
        return self.components(np.full(k, 1 / k), np.repeat(self.origin[None], k, 0), identity)

    def with_parts(self, c: Components, parts: dict[str, np.ndarray]) -> Components:
        """`c` with some of "weights", "means" and "covariances" replaced."""
        if not parts:
            return c
        weights, means, matrices = (parts.get(name, getattr(c, name)) for name in ("weights", "means", "covariances"))
        return self.components(weights, means, matrices, None if "covariances" in parts else c.orientation)

    def repair(self, c: Any, stats: Any, source: Source, engine: Engine, memos: list[Any]) -> Any:
        return c if self.fixed else super().repair(c, stats, source, engine, memos)

    def _reseeded(self, c: Components, stats: Any, j: int, row: np.ndarray, weights: np.ndarray) -> Components:
        """Component `j` has the covariance of an average component."""
        others = np.arange(self.n_components) != j
        means, matrices = c.means.copy(), c.covariances
        means[j] = np.where(np.isnan(row[0]), self.origin, row[0])
        if self.form != "tied":
            matrices = matrices.copy()
            matrices[j] = np.tensordot(weights[others] / weights[others].sum(), c.covariances[others], 1)
        return self.components(weights, means, matrices, c.orientation)

    # objective

    def objective(self, c: Components, stats: GaussianStats) -> Any:
        return -(stats.bound + self.log_prior(c, stats))

    def log_prior(self, c: Components, stats: GaussianStats) -> Any:
        return self.penalty.log_density(c, self.form, stats.weight.sum(axis=-1))

    def expected(self, c: Components, about: Components, stats: GaussianStats) -> float:
        """E[log p(x, z)] at `c`; the statistics of the responsibilities were computed about `about`."""
        sums = forms.recentered(self.form, stats.weight, stats.sum_dx, stats.sum_dxx, c.means - about.means)
        offset = np.where(stats.weight > 0, self.gaussians(c).offset, 0.0)
        return float(stats.weight @ offset - 0.5 * forms.mahalanobis(self.form, c.factor, sums))

    def rounding(self, c: Components, stats: GaussianStats, objective: float) -> float:
        """Upper bound of the rounding error of the objective, which is larger for thin components."""
        columns = {"full": self.unit[:, None], "tied": self.unit[:, None], "diag": self.unit}
        thin = float((np.abs(c.factor) * columns.get(self.form, self.unit.max())).max())
        total = float(stats.weight.sum())
        size = abs(objective - self.log_unit * total)
        if thin > 1e4:
            size += total * len(self.unit) * thin
        rounding = 16 * self.precision * size + ROUNDING * total + self._place_rounding(c, stats.weight)
        if self.form not in ("full", "tied"):
            return rounding
        logs = total * len(self.unit) * float(forms.condition(c).max())
        return rounding + 16 * float(np.finfo(np.float64).eps) * logs  # determinants are computed in float64

    def _place_rounding(self, c: Components, weight: np.ndarray) -> float:
        """Effect of rounded means on the objective: it matters for narrow components far from the origin."""
        has_matrices = self.form in ("full", "tied")
        inverse = np.sqrt(np.square(c.factor).sum(axis=-1)) if has_matrices else c.factor
        inverse = inverse[:, None] if self.form == "spherical" else inverse
        error = float(np.finfo(np.float64).eps) * (np.abs(c.means) * inverse).sum(axis=-1)
        return 0.5 * float(weight @ error**2)

    # statistics as a vector that does not depend on the parameters, for acceleration

    def to_vector(self, c: Components, stats: GaussianStats) -> np.ndarray:
        n, offset = stats.weight, self.origin - c.means
        sum_x = (stats.sum_dx - n[:, None] * offset) / self.unit
        sum_xx = forms.recentered(self.form, n, stats.sum_dx, stats.sum_dxx, offset)
        return np.concatenate([n, sum_x.ravel(), self._in_units(sum_xx).ravel()])

    def from_vector(self, c: Components, vector: np.ndarray) -> GaussianStats | None:
        k, d = c.means.shape
        n, sum_x, sum_xx = vector[:k], vector[k : k + k * d].reshape(k, d), vector[k + k * d :]
        if n.min() <= EMPTY * n.sum():
            return None
        sum_xx = self._in_units(sum_xx.reshape(forms.shape(self.form, k, d)), -1)
        sum_x = sum_x * self.unit
        mean = sum_x / n[:, None]
        scatter = forms.recentered(self.form, n, sum_x, sum_xx, mean)
        if not _is_positive_definite(self.form, self._in_units(scatter)):
            return None
        offset = c.means - self.origin
        return GaussianStats(
            n, sum_x - n[:, None] * offset, forms.recentered(self.form, n, sum_x, sum_xx, offset), np.nan, np.nan
        )

    def _in_units(self, sums: np.ndarray, power: int = 1) -> np.ndarray:
        """Second moments in units of the standard deviations of the columns."""
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

    # results for each row

    def log_joint(self, c: Components, chunk: Chunk) -> np.ndarray:
        """log p(x, z) of each row and component (n, k)."""
        if self.missing:
            return missing.log_joint(chunk.X, self.gaussians(c), missing.patterns(chunk.X))
        return kernels.for_centers(chunk.X, self.n_components).log_joint(chunk.X, self.gaussians(c))

    def impute(self, c: Components, chunk: Chunk) -> np.ndarray:
        return missing.impute(chunk.X, self.gaussians(c), missing.patterns(chunk.X))

    def draw(self, c: Components, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Sample `counts` rows of each component, sorted by component."""
        k, d = c.means.shape
        scales = np.linalg.cholesky(forms.dense(self.form, c.covariances, k, d))
        parts = zip(counts, c.means, scales, strict=True)
        return np.concatenate([mean + rng.standard_normal((n, d)) @ scale.T for n, mean, scale in parts])


def _is_positive_definite(form: str, scatter: np.ndarray) -> bool:
    """Whether the matrices are positive definite, as scatters are."""
    if form in ("diag", "spherical"):
        return bool(scatter.min() > 0)
    try:
        np.linalg.cholesky(scatter)
    except np.linalg.LinAlgError:
        return False
    return True
