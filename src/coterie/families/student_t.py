"""Student's t: clouds with heavy tails."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.arguments import not_negative, one_of
from coterie.core.errors import ParameterError
from coterie.core.stored import stored
from coterie.families import forms, tails
from coterie.families.spread import Cloud
from coterie.families.structures import own_covariances
from coterie.families.tails import Prepared, Rows, Tails, TailSums
from coterie.kernels.plain.gaussian import Gaussians


@stored("family.StudentT", attributes="dof structure reg_covar prior holes _origin _unit _rows")
class StudentT(Cloud):
    r"""Multivariate t: Gaussian clouds with heavier tails, so that outliers pull less.

    .. math:: p(x) = \frac{\Gamma(\frac{\nu + d}{2})}{\Gamma(\frac\nu2) (\nu \pi)^{d/2} |\Sigma|^{1/2}}
       \Bigl(1 + \frac{\delta(x)}{\nu}\Bigr)^{-\frac{\nu + d}{2}}, \quad
       \delta(x) = (x - \mu)' \Sigma^{-1} (x - \mu)

    A row is Gaussian with covariance :math:`\Sigma / u`, where u has a Gamma density of shape and rate
    :math:`\nu / 2`. EM [1]_: :math:`E[u] = (\nu + d) / (\nu + \delta)` weighs the rows of mean and scatter, and
    :math:`\log \frac\nu2 - \psi(\frac\nu2) = \overline{E[u]} - \overline{E[\log u]} - 1`. For :math:`\nu \to \infty` it
    is a Gaussian; for :math:`\nu \le 2` it has no covariance.

    Do not use it where outliers are a cluster of their own, or for a few rows: the tails are learned from few of them.

    Parameters
    ----------
    dof : float, optional
        Degrees of freedom; None estimates them for each component (from 1 to 100 d), infinity is a Gaussian.
    structure : {'full', 'diag'}, default='full'
        Whether columns may be correlated within a component.
    reg_covar : float, default=1e-6
        In mixtures: what keeps scales away from 0, as `reg_covar` of `GaussianMixture` does.

    Attributes
    ----------
    location_ : array (d,)
    scale_ : array (d, d) or (d,)
        The scatter matrix; the covariance is dof / (dof - 2) times it.
    dof_ : float

    References
    ----------
    .. [1] D. Peel & G. J. McLachlan (2000), Robust mixture modelling using the t distribution, Statistics and Computing
       10, 339-348. https://doi.org/10.1023/A:1008981510081

    Examples
    --------
    >>> from coterie.families import StudentT
    >>> found = StudentT(dof=3).fit([[0.0], [1.0], [2.0], [3.0], [100.0]])
    >>> found.location_.round(2).tolist()
    [1.55]
    """

    name = "student_t"

    def __init__(self, dof: Any = None, structure: str = "full", reg_covar: float = 1e-6):
        self.dof = dof
        self.structure = structure
        self.reg_covar = reg_covar

    # density

    def features(self, X: Any) -> Rows:
        return Rows(super().features(X), {})

    def scores(self, prepared: Prepared, features: Rows) -> np.ndarray:
        return self.distances(prepared, features)[1] + prepared.constant

    def distances(self, prepared: Prepared, features: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Squared Mahalanobis distances (n, k), and what densities make of them; statistics of a pass share them."""
        if features.memory.get("of") is not prepared:
            squares = -2.0 * kernels.for_centers(features.Z, len(prepared.dof)).log_joint(
                features.Z, prepared.gaussians
            )
            kernel = tails.log_kernel(squares, prepared.dof, features.Z.shape[1])
            features.memory.update(of=prepared, found=(squares, kernel))
        return features.memory["found"]

    # parameters

    def prepare(self, params: Tails) -> Prepared:
        k, d = params.location.shape
        f = self._factors(params)
        gaussians = Gaussians(self.structure, np.zeros(k), self._place(params), f.factor, np.zeros(d))
        return Prepared(gaussians, params.dof, f.log_det, tails.log_constant(params.dof, d) + f.log_det)

    def _place(self, params: Tails) -> np.ndarray:
        return (params.location - self._origin) / self._unit

    def _factors(self, params: Tails) -> forms.Factors:
        return forms.factors(self.structure, params.scale / self._units(), *params.location.shape)

    def _units(self) -> np.ndarray:
        return np.multiply.outer(self._unit, self._unit) if self.structure == "full" else np.square(self._unit)

    def magnitude(self, params: Tails) -> np.ndarray:
        f = self._factors(params)
        thin = params.location.shape[1] * forms.magnitude(self.structure, f)
        return thin + self._place_rounding(params.location, f.factor)

    def n_parameters(self, k: int, params: Tails) -> int:
        d = params.location.shape[1]
        return k * (d + (d * (d + 1) // 2 if self.structure == "full" else d) + (self.dof is None))

    # statistics

    def statistics(self, prepared: Prepared | None, features: Rows, resp: np.ndarray) -> TailSums:
        Z, ones = features.Z, np.ones(len(resp))
        weight = ones @ resp
        if prepared is None:
            latent = tails.unknown(weight)
        else:
            what = *self.distances(prepared, features), prepared.dof, Z.shape[1], resp, weight
            latent = tails.posterior(*what)
            if self.dof is None:
                likelihood = tails.likelihoods(*what) + (weight * prepared.log_det)[:, None]
                latent = latent._replace(likelihood=likelihood)
        ru = resp * latent.u
        second = ru.T @ Z**2 if self.structure == "diag" else np.stack([(Z * r[:, None]).T @ Z for r in ru.T])
        return TailSums(weight, ones @ ru, ru.T @ Z, second, *latent[1:])

    def blank(self, params: Tails) -> TailSums:
        like = (params.dof, params.dof, params.location, params.scale, *[params.dof] * 3)
        return TailSums(*(np.zeros(each.shape) for each in like), np.zeros((len(params.dof), 1 + len(tails.LEAPS))))

    def expected_log_prob(self, params: Tails, stats: TailSums) -> float:
        bounds = self._bounds(params, stats)
        if self.dof is None:
            bounds = np.maximum(bounds, tails.known(stats, params.dof, params.location.shape[1]))
        return float(bounds.sum())

    def _bounds(self, params: Tails, stats: TailSums) -> np.ndarray:
        """A lower bound of the sum of w r log p(x) over the rows (k,): the sum itself if u was taken with `params`."""
        d, f = params.location.shape[1], self._factors(params)
        scatter = forms.restated(self.structure, stats.sum_u, stats.sum_ux, stats.sum_uxx, self._place(params))
        gaussian = stats.weight * (f.log_det - 0.5 * d * np.log(2.0 * np.pi)) + 0.5 * d * stats.sum_log_u
        return gaussian - 0.5 * forms.traces(f.factor, scatter) + tails.log_density(stats, params.dof)

    # estimates

    def estimate(self, stats: TailSums, before: Any = None) -> Tails:
        """A step of EM; or, of a component that gains more by them, a leap in its degrees of freedom alone."""
        weight = self._divisors(stats.weight)
        sum_u = np.where(stats.sum_u > 0, stats.sum_u, 1.0)
        location, d = stats.sum_ux / sum_u[:, None], stats.sum_ux.shape[1]
        scatter = self._floor(d) + forms.restated(self.structure, stats.sum_u, stats.sum_ux, stats.sum_uxx, location)
        scale = own_covariances(self.structure, weight, scatter, d)
        excess = (stats.sum_u - stats.sum_log_u) / weight - 1.0
        dof = tails.likely(excess, d) if self.dof is None else np.full(len(weight), float(self.dof))
        found = Tails(self._origin + self._unit * location, scale * self._units(), dof)
        if self.dof is not None or before is None:
            return found
        stepped = self._bounds(found, stats) + self._log_priors(found) - self._log_priors(before)
        return tails.leaping(found, before, stats, stepped)

    def _floor(self, d: int) -> np.ndarray:
        """What is added to every scatter."""
        rounding = (8 * np.finfo(np.float64).eps * np.asarray(self._origin) / self._unit) ** 2
        floor = self._rows * np.maximum(max(self.reg_covar, self._finest), rounding) * np.ones(d)
        return np.diag(floor) if self.structure == "full" else floor

    def log_prior(self, params: Tails) -> float:
        return float(self._log_priors(params).sum())

    def _log_priors(self, params: Tails) -> np.ndarray:  # of what is added to the scatter
        return -0.5 * forms.traces(self._factors(params).factor, self._floor(params.location.shape[1]))

    def fit_one(self, X: Any, w: np.ndarray) -> Tails:
        """With all rows at hand the degrees of freedom are the likeliest at every step, and u may have any mean [2]_.

        .. [2] C. Liu, D. B. Rubin & Y. N. Wu (1998), Parameter expansion to accelerate EM, Biometrika 85.
        """
        exact = copy(self)
        exact.reg_covar, exact._rows, exact._finest = 0.0, float(w.sum()), 1e-13
        return tails.fitted(exact, self.features(X), w)

    def learned(self, survey: Any, holes: bool = False) -> Any:
        one_of("structure", self.structure, ("full", "diag"))
        not_negative("reg_covar", self.reg_covar)
        if self.dof is not None and not (isinstance(self.dof, int | float) and self.dof > 0):
            raise ParameterError(f"dof must be None or a number above 0 (infinity is a Gaussian); got {self.dof!r}")
        if self.prior is not None:
            raise ParameterError(f"StudentT has no prior: leave prior=None; got {self.prior!r}")
        return super().learned(survey, holes)

    # sampling

    def draw(self, params: Tails, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        dof, normal = float(params.dof[j]), rng.normal(size=(n, params.location.shape[1]))
        noise = self._unit * forms.correlated(normal, self.structure, params.scale[j] / self._units())
        u = rng.gamma(0.5 * dof, 2.0 / dof, n) if np.isfinite(dof) else np.ones(n)
        return params.location[j] + noise / np.sqrt(np.maximum(u, np.finfo(np.float64).tiny))[:, None]
