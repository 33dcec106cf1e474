"""Multivariate Student's t distribution."""

from copy import copy
from typing import Any, ClassVar

import numpy as np

from coterie import kernels
from coterie.core.arguments import not_negative, one_of
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families import forms, student_t_em
from coterie.families.location_scale import LocationScaleFamily
from coterie.families.structures import separate_covariances
from coterie.families.student_t_em import Prepared, Rows, StudentTParameters, StudentTSums
from coterie.kernels.plain.gaussian import Gaussians

STRUCTURES = ("full", "diag")


@stored(
    "family.StudentT",
    attributes="dof structure reg_covar prior has_missing _origin _unit _rows",
    check=lambda family, lengths: family["structure"] in STRUCTURES,
)
class StudentT(LocationScaleFamily):
    r"""Multivariate Student's t distribution: it has heavier tails than a Gaussian, so outliers have less influence.

    .. math:: p(x) = \frac{\Gamma(\frac{\nu + d}{2})}{\Gamma(\frac\nu2) (\nu \pi)^{d/2} |\Sigma|^{1/2}}
       \Bigl(1 + \frac{\delta(x)}{\nu}\Bigr)^{-\frac{\nu + d}{2}}, \quad
       \delta(x) = (x - \mu)' \Sigma^{-1} (x - \mu)

    A row is Gaussian with covariance :math:`\Sigma / u`, where u has a Gamma density with shape and rate
    :math:`\nu / 2`. In EM [1]_, :math:`E[u] = (\nu + d) / (\nu + \delta)` are weights of the rows in mean and scatter,
    and :math:`\log \frac\nu2 - \psi(\frac\nu2) = \overline{E[u]} - \overline{E[\log u]} - 1`. For
    :math:`\nu \to \infty` it is a Gaussian; for :math:`\nu \le 2` it has no covariance.

    Do not use it if outliers form a cluster, or for few rows: the degrees of freedom depend on the rows in the tails.

    Parameters
    ----------
    dof : float, default=None
        Degrees of freedom. None estimates them for each component, from 1 to 100 d; infinity gives a Gaussian.
    structure : {'full', 'diag'}, default='full'
        Scale matrices: 'full', or 'diag' for uncorrelated columns within a component.
    reg_covar : float, default=1e-6
        Regularisation of the scale matrices in mixtures, as in `GaussianMixture`.

    Attributes
    ----------
    location_ : array (d,)
        Location, which is the mean if dof > 1.
    scale_ : array (d, d) or (d,)
        Scale matrix, or its diagonal; the covariance is dof / (dof - 2) times it.
    dof_ : float
        Degrees of freedom.

    References
    ----------
    .. [1] D. Peel & G. J. McLachlan (2000), Robust mixture modelling using the t distribution, Statistics and Computing
       10, 339-348. https://doi.org/10.1023/A:1008981510081

    Examples
    --------
    >>> from coterie.families import StudentT
    >>> family = StudentT(dof=3).fit([[0.0], [1.0], [2.0], [3.0], [100.0]])
    >>> family.location_.round(2).tolist()
    [1.55]
    """

    name = "student_t"
    powers: ClassVar[dict[str, int]] = {"location": 1, "scale": 2}

    def __init__(self, dof: Any = None, structure: str = "full", reg_covar: float = 1e-6):
        self.dof = dof
        self.structure = structure
        self.reg_covar = reg_covar

    @property
    def form(self) -> str:
        return self.structure

    # density

    def features(self, X: Any) -> Rows:
        return Rows(super().features(X), {})

    def scores(self, prepared: Prepared, features: Rows) -> np.ndarray:
        return self.distances(prepared, features)[1] + prepared.constant

    def distances(self, prepared: Prepared, features: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Squared Mahalanobis distances and log kernels (n, k); cached, because scores and statistics use both."""
        if features.cache.get("prepared") is not prepared:
            squares = -2.0 * kernels.for_centers(features.Z, len(prepared.dof)).log_joint(
                features.Z, prepared.gaussians
            )
            kernel = student_t_em.log_kernel(squares, prepared.dof, features.Z.shape[1])
            features.cache.update(prepared=prepared, result=(squares, kernel))
        return features.cache["result"]

    # parameters

    def prepare(self, params: StudentTParameters) -> Prepared:
        k, d = params.location.shape
        f = self._scaled(params)
        gaussians = Gaussians(self.structure, np.zeros(k), f.means, f.factor, np.zeros(d))
        return Prepared(gaussians, params.dof, f.log_det, student_t_em.log_constant(params.dof, d) + f.log_det)

    def n_parameters(self, k: int, params: StudentTParameters) -> int:
        d = params.location.shape[1]
        return k * (d + (d * (d + 1) // 2 if self.structure == "full" else d) + (self.dof is None))

    # statistics

    def statistics(self, prepared: Prepared | None, features: Rows, resp: np.ndarray) -> StudentTSums:
        Z, ones = features.Z, np.ones(len(resp))
        weight = ones @ resp
        if prepared is None:
            latent = student_t_em.initial_latent(weight)
        else:
            arguments = *self.distances(prepared, features), prepared.dof, Z.shape[1], resp, weight
            latent = student_t_em.posterior(*arguments)
            if self.dof is None:
                likelihood = student_t_em.likelihoods(*arguments) + (weight * prepared.log_det)[:, None]
                latent = latent._replace(likelihood=likelihood)
        ru = resp * latent.u
        second = ru.T @ Z**2 if self.structure == "diag" else self._products(Z, ru)
        return StudentTSums(weight, ones @ ru, ru.T @ Z, second, *latent[1:])

    @staticmethod
    def _products(Z: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Sums of outer products of the rows with each column of weights (k, d, d)."""
        d = Z.shape[1]
        return np.reshape([(Z * w[:, None]).T @ Z for w in weights.T], (weights.shape[1], d, d))

    def blank(self, params: StudentTParameters) -> StudentTSums:
        templates = (params.dof, params.dof, params.location, params.scale, *[params.dof] * 3)
        shapes = [*(template.shape for template in templates), (len(params.dof), 1 + len(student_t_em.FACTORS))]
        return StudentTSums(*map(np.zeros, shapes))

    def expected_log_prob(self, params: StudentTParameters, stats: StudentTSums) -> float:
        bounds = self._bounds(params, stats)
        if self.dof is None:
            bounds = np.maximum(bounds, student_t_em.tried_likelihoods(stats, params.dof, params.location.shape[1]))
        return float(bounds.sum())

    def _bounds(self, params: StudentTParameters, stats: StudentTSums) -> np.ndarray:
        """A lower bound of the sum of w r log p(x) over the rows (k,); exact if E[u] was computed with `params`."""
        d, f = params.location.shape[1], self._scaled(params)
        scatter = forms.recentered(self.structure, stats.sum_u, stats.sum_ux, stats.sum_uxx, f.means)
        gaussian = stats.weight * (f.log_det - 0.5 * d * np.log(2.0 * np.pi)) + 0.5 * d * stats.sum_log_u
        return gaussian - 0.5 * forms.traces(f.factor, scatter) + student_t_em.log_density(stats, params.dof)

    # estimates

    def estimate(self, stats: StudentTSums, before: Any = None) -> StudentTParameters:
        """An EM step; or, for a component that gains more by it, a change of its degrees of freedom only."""
        weight = self._divisors(stats.weight)
        sum_u = np.where(stats.sum_u > 0, stats.sum_u, 1.0)
        location, d = stats.sum_ux / sum_u[:, None], stats.sum_ux.shape[1]
        scatter = self._floor(d) + forms.recentered(self.structure, stats.sum_u, stats.sum_ux, stats.sum_uxx, location)
        scale = separate_covariances(self.structure, weight, scatter, d)
        excess = (stats.sum_u - stats.sum_log_u) / weight - 1.0
        dof = student_t_em.next_dof(excess, d) if self.dof is None else np.full(len(weight), float(self.dof))
        params = StudentTParameters(self._origin + self._unit * location, scale * self._units(), dof)
        if self.dof is not None or before is None:
            return params
        likelihood = self._bounds(params, stats) + self._log_priors(params) - self._log_priors(before)
        return student_t_em.with_jumps(params, before, stats, likelihood)

    def _floor(self, d: int) -> np.ndarray:
        """The regularisation that is added to every scatter."""
        rounding = (8 * np.finfo(np.float64).eps * np.asarray(self._origin) / self._unit) ** 2
        floor = self._rows * np.maximum(max(self.reg_covar, self._finest), rounding) * np.ones(d)
        return np.diag(floor) if self.structure == "full" else floor

    def log_prior(self, params: StudentTParameters) -> float:
        return float(self._log_priors(params).sum())

    def _log_priors(self, params: StudentTParameters) -> np.ndarray:
        """The log density of the prior that is equivalent to the regularisation (k,)."""
        return -0.5 * forms.traces(self._scaled(params).factor, self._floor(params.location.shape[1]))

    def fit_one(self, X: Any, w: np.ndarray) -> StudentTParameters:
        """Fit one component. With all rows available, the degrees of freedom are optimal in every step [2]_.

        .. [2] C. Liu, D. B. Rubin & Y. N. Wu (1998), Parameter expansion to accelerate EM, Biometrika 85.
        """
        exact = copy(self)
        exact.reg_covar, exact._rows, exact._finest = 0.0, float(w.sum()), 1e-13
        return student_t_em.fit_component(exact, self.features(X), w)

    def learned(self, survey: Any, has_missing: bool = False) -> Any:
        one_of("structure", self.structure, STRUCTURES)
        not_negative("reg_covar", self.reg_covar)
        if self.dof is not None and not (isinstance(self.dof, int | float) and self.dof > 0):
            raise ParameterError(f"dof must be None or a number > 0 (infinity gives a Gaussian); got {self.dof!r}")
        if self.prior is not None:
            raise ParameterError(f"StudentT does not support a prior; got {self.prior!r}: set prior=None")
        return super().learned(survey, has_missing)

    # sampling

    def draw(self, params: StudentTParameters, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        dof, normal = float(params.dof[j]), rng.normal(size=(n, params.location.shape[1]))
        noise = self._unit * forms.correlated(normal, self.structure, params.scale[j] / self._units())
        u = rng.gamma(0.5 * dof, 2.0 / dof, n) if np.isfinite(dof) else np.ones(n)
        return params.location[j] + noise / np.sqrt(np.maximum(u, np.finfo(np.float64).tiny))[:, None]
