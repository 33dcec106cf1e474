"""What is believed of a Gaussian mixture before the rows are seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.core.arguments import as_floats
from coterie.core.errors import ParameterError
from coterie.core.stored import stored
from coterie.families import forms

LEAST = 1e-20  # of a column's variance: less cannot be told from none, with `reg_covar` or without


@stored("prior.Normal")
@dataclass(frozen=True)
class Prior:
    """Dirichlet on the weights, normal-inverse-Wishart on each mean and covariance.

    The covariance of each component has the inverse Wishart density of `dof` degrees of freedom and scale matrix
    `scale`; given it, the mean is normal about `mean` with that covariance divided by `shrinkage`. None is what
    mclust takes [1]_: the mean of the rows, d + 2 degrees of freedom, and the covariance of the columns divided by
    k^(2/d), columns uncorrelated.

    .. [1] C. Fraley & A. E. Raftery (2007), Bayesian regularization for normal mixture estimation and model-based
       clustering, Journal of Classification 24, 155-181. https://doi.org/10.1007/s00357-007-0004-5

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GaussianMixture
    >>> from coterie.mixture import Prior
    >>> X = np.array([[0.0], [0.0], [3.0], [4.0], [5.0]])
    >>> one = GaussianMixture(1, reg_covar=0, prior=Prior(mean=[0.0], shrinkage=1, dof=3, scale=[[2.0]])).fit(X)
    >>> one.means_.tolist()  # the sum of the rows, by five rows and one more at 0
    [[2.0]]
    """

    concentration: Any = 1.0  # Dirichlet: a number, or (k,); 1 is flat
    mean: Any = None  # (d,)
    shrinkage: float = 0.01
    dof: float | None = None
    scale: Any = None  # (d, d)


@stored("prior.NormalPenalty")
@dataclass(frozen=True)
class Penalty:
    """The log density of the prior, up to a constant, and what it adds to the statistics.

    `floor` stands for `reg_covar`: as if the rows of an average component, N / k of them, each had that much
    variance more. It is an inverse Wishart prior without a mode; unlike adding to the covariance after every M-step
    it leaves EM an ascent.
    """

    floor: np.ndarray  # (d,) a variance
    concentration: Any = 1.0  # () or (k,)
    mean: np.ndarray | float = 0.0  # (d,)
    shrinkage: float = 0.0  # rows that the mean is worth
    rows: float = 0.0  # rows that the covariance is worth
    scale: np.ndarray | None = None  # (d, d)

    def scatter(self, form: str, k: int, total: np.ndarray) -> np.ndarray:
        """What it adds to the scatter of the components, for rows of `total` weight (...)."""
        d = len(self.floor)
        shape = (*total.shape, *[1] * {"full": 3, "tied": 2, "diag": 2, "spherical": 1}[form])
        added = total.reshape(shape) / k * forms.constant(form, k, np.diag(self.floor))
        return added if self.scale is None else added + forms.constant(form, k, np.reshape(self.scale, (d, d)))

    def moved(self, shift: np.ndarray, scale: np.ndarray) -> Penalty:
        """The same for rows (x - shift) / scale."""
        matrix = None if self.scale is None else self.scale / np.outer(scale, scale)
        return replace(self, floor=self.floor / scale**2, mean=(self.mean - shift) / scale, scale=matrix)

    def weights(self, weight: np.ndarray) -> np.ndarray:
        """The likeliest mixing weights (..., k) for components of that weight."""
        share = np.maximum(weight + (np.asarray(self.concentration) - 1.0), 0.0)
        return share / share.sum(axis=-1, keepdims=True)

    def log_density(self, c: Any, form: str, total: np.ndarray) -> np.ndarray:
        """At the components `c`, for rows of `total` weight (...)."""
        scatter = self.scatter(form, c.weights.shape[-1], total)
        if self.shrinkage:
            away = c.means - self.mean
            scatter = scatter + forms.outer(form, np.full(c.weights.shape, self.shrinkage), away, away)
        density = self.rows * c.log_det.sum(axis=-1) - 0.5 * forms.mahalanobis(form, c.factor, scatter)
        if np.all(np.asarray(self.concentration) == 1.0):
            return density
        log_weights = np.log(np.maximum(c.weights, np.finfo(np.float64).tiny))
        return density + ((np.asarray(self.concentration) - 1.0) * log_weights).sum(axis=-1)


def as_penalty(prior: Any, reg_covar: float, k: int, mean: np.ndarray, variance: np.ndarray) -> Penalty:
    """`prior` and `reg_covar`, for k components and rows of that mean and variance."""
    d = len(mean)
    floor = np.maximum(max(reg_covar, LEAST) * sizeable(mean, variance), (8 * np.finfo(np.float64).eps * mean) ** 2)
    if prior is None:
        return Penalty(floor)
    if prior == "default":
        prior = Prior()
    if not isinstance(prior, Prior):
        raise ParameterError(f"prior must be None, 'default' or a coterie.mixture.Prior; got {prior!r}")
    concentration = _numbers("concentration", prior.concentration, ((), (k,)))
    center = mean if prior.mean is None else _numbers("mean", prior.mean, ((d,),))
    scale = np.diag(sizeable(mean, variance)) / k ** (2 / d)
    if prior.scale is not None:
        scale = _numbers("scale", prior.scale, ((d, d),))
        if not np.allclose(scale, scale.T) or np.linalg.eigvalsh(scale)[0] <= 0:
            raise ParameterError("prior: scale must be symmetric and positive definite; it is not")
    dof = d + 2 if prior.dof is None else prior.dof
    for name, value, least in (("shrinkage", prior.shrinkage, 0), ("dof", dof, d - 1)):
        if not (np.isscalar(value) and np.isfinite(value) and (value > least or value == least == 0)):
            raise ParameterError(f"prior: {name} must be a number above {least}; got {value!r}")
    if np.any(concentration <= 0):
        raise ParameterError(f"prior: concentration must be above 0; got {prior.concentration!r}")
    # the mode of a normal-inverse-Wishart density divides by dof + d + 2 rows more
    return Penalty(floor, concentration, center, float(prior.shrinkage), float(dof) + d + 2, scale)


def sizeable(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Variances; where a column is constant, or varies by rounding alone, the typical variance of the others, or 1."""
    rounding = (8 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
    real = variance > rounding
    typical = float(np.exp(np.log(variance[real]).mean())) if real.any() else 1.0
    return np.where(real, variance, typical)


def _numbers(name: str, value: Any, shapes: tuple[tuple[int, ...], ...]) -> np.ndarray:
    try:
        array = as_floats(value)
    except (TypeError, ValueError):
        raise ParameterError(f"prior: {name} must be numbers; got {value!r}") from None
    if array.shape not in shapes or not np.isfinite(array).all():
        wanted = " or ".join("a number" if shape == () else f"finite numbers of shape {shape}" for shape in shapes)
        raise ParameterError(f"prior: {name} must be {wanted}; its shape is {array.shape}")
    return array
