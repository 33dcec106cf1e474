"""Priors of Gaussian mixtures."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.core.arguments import as_numbers
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families import forms

MIN_VARIANCE = (
    1e-20  # minimum regularisation, as a share of the variance of a column; less is not distinguishable from 0
)


@stored("prior.Normal")
@dataclass(frozen=True)
class Prior:
    """Prior of a Gaussian mixture: Dirichlet for the weights, normal-inverse-Wishart for each mean and covariance.

    The covariance of each component has an inverse Wishart density with `dof` degrees of freedom and scale matrix
    `scale`. Given the covariance, the mean is normal around `mean`, with the covariance divided by `shrinkage`. The
    defaults of `mean`, `dof` and `scale` are those of mclust [1]_.

    Parameters
    ----------
    concentration : float or array (k,), default=1.0
        Concentration of the Dirichlet density of the weights; 1 is flat.
    mean : array (d,), default=None
        Mean of the component means; None uses the mean of the rows.
    shrinkage : float, default=0.01
        Weight of `mean`, in rows.
    dof : float, default=None
        Degrees of freedom; None means d + 2.
    scale : array (d, d), default=None
        Scale matrix; None uses the diagonal matrix of the variances of the columns divided by k^(2/d).

    References
    ----------

    .. [1] C. Fraley & A. E. Raftery (2007), Bayesian regularization for normal mixture estimation and model-based
       clustering, Journal of Classification 24, 155-181. https://doi.org/10.1007/s00357-007-0004-5

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GaussianMixture
    >>> from coterie.mixture import Prior
    >>> X = np.array([[0.0], [0.0], [3.0], [4.0], [5.0]])
    >>> one = GaussianMixture(1, reg_covar=0, prior=Prior(mean=[0.0], shrinkage=1, dof=3, scale=[[2.0]])).fit(X)
    >>> one.means_.tolist()  # the sum of the rows, divided by five rows and one pseudo-row at 0
    [[2.0]]
    """

    concentration: Any = 1.0
    mean: Any = None
    shrinkage: float = 0.01
    dof: float | None = None
    scale: Any = None


@stored("prior.NormalPenalty")
@dataclass(frozen=True)
class Penalty:
    """The log density of the prior up to a constant, and its contribution to the statistics.

    `floor` implements `reg_covar`: it adds this variance to each of the N / k rows of an average component. This is an
    inverse Wishart prior without a mode. Unlike adding to the covariance after every M-step, it keeps EM monotone.
    """

    floor: np.ndarray  # (d,) variances
    concentration: Any = 1.0  # () or (k,)
    mean: np.ndarray | float = 0.0  # (d,)
    shrinkage: float = 0.0  # weight of the mean, in rows
    rows: float = 0.0  # weight of the covariance, in rows
    scale: np.ndarray | None = None  # (d, d)

    def scatter(self, form: str, k: int, total: np.ndarray) -> np.ndarray:
        """The term that is added to the scatter of all components, for rows with the weight `total` (...)."""
        d = len(self.floor)
        shape = (*total.shape, *[1] * {"full": 3, "tied": 2, "diag": 2, "spherical": 1}[form])
        added = total.reshape(shape) / k * forms.constant(form, k, np.diag(self.floor))
        return added if self.scale is None else added + forms.constant(form, k, np.reshape(self.scale, (d, d)))

    def with_scatter(self, scatter: Any, form: str, means: np.ndarray, total: np.ndarray) -> np.ndarray:
        """The `scatter` of components with these means (..., k, d), and that of the prior."""
        scatter = scatter + self.scatter(form, means.shape[-2], total)
        if not self.shrinkage:
            return scatter
        offset = means - self.mean
        return scatter + forms.outer(form, np.full(means.shape[:-1], self.shrinkage), offset, offset)

    def moved(self, shift: np.ndarray, scale: np.ndarray) -> "Penalty":
        """The same prior for rows (x - shift) / scale."""
        matrix = None if self.scale is None else self.scale / np.outer(scale, scale)
        return replace(self, floor=self.floor / scale**2, mean=(self.mean - shift) / scale, scale=matrix)

    def weights(self, weight: np.ndarray) -> np.ndarray:
        """The MAP estimate of the mixing weights (..., k), from the total weight of the rows of each component."""
        share = np.maximum(weight + (np.asarray(self.concentration) - 1.0), 0.0)
        return share / share.sum(axis=-1, keepdims=True)

    def log_density(self, c: Any, form: str, total: np.ndarray) -> np.ndarray:
        """The log density at the components `c`, for rows with the weight `total` (...)."""
        scatter = self.with_scatter(0.0, form, c.means, total)
        density = self.rows * c.log_det.sum(axis=-1) - 0.5 * forms.mahalanobis(form, c.factor, scatter)
        if np.all(np.asarray(self.concentration) == 1.0):
            return density
        log_weights = np.log(np.maximum(c.weights, np.finfo(np.float64).tiny))
        return density + ((np.asarray(self.concentration) - 1.0) * log_weights).sum(axis=-1)


def as_penalty(prior: Any, reg_covar: float, k: int, mean: np.ndarray, variance: np.ndarray) -> Penalty:
    """Convert `prior` and `reg_covar` to a `Penalty`, for k components and rows with this mean and variance."""
    d = len(mean)
    floor = np.maximum(
        max(reg_covar, MIN_VARIANCE) * positive_variances(mean, variance), (8 * np.finfo(np.float64).eps * mean) ** 2
    )
    if prior is None:
        return Penalty(floor)
    if prior == "default":
        prior = Prior()
    if not isinstance(prior, Prior):
        raise ParameterError(f"prior must be None, 'default' or a coterie.mixture.Prior; got {prior!r}")
    concentration = _numbers("concentration", prior.concentration, ((), (k,)))
    center = mean if prior.mean is None else _numbers("mean", prior.mean, ((d,),))
    scale = np.diag(positive_variances(mean, variance)) / k ** (2 / d)
    if prior.scale is not None:
        scale = _numbers("scale", prior.scale, ((d, d),))
        if not np.allclose(scale, scale.T) or np.linalg.eigvalsh(scale)[0] <= 0:
            raise ParameterError("prior: scale must be symmetric and positive definite")
    dof = d + 2 if prior.dof is None else prior.dof
    for name, value, bound in (("shrinkage", prior.shrinkage, 0), ("dof", dof, d - 1)):
        is_scalar = bool(np.isscalar(value))
        if not (is_scalar and np.isfinite(value) and (value > bound or value == bound == 0)):
            raise ParameterError(f"prior: {name} must be a number above {bound}; got {value!r}")
    if np.any(concentration <= 0):
        raise ParameterError(f"prior: concentration must be above 0; got {prior.concentration!r}")
    # The mode of a normal-inverse-Wishart density has dof + d + 2 additional rows in its divisor.
    return Penalty(floor, concentration, center, float(prior.shrinkage), float(dof) + d + 2, scale)


def positive_variances(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Variances; for constant columns (up to rounding) the geometric mean of the other variances, or 1."""
    rounding = (8 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
    varies = variance > rounding
    typical = float(np.exp(np.log(variance[varies]).mean())) if varies.any() else 1.0
    return np.where(varies, variance, typical)


def _numbers(name: str, value: Any, shapes: tuple[tuple[int, ...], ...]) -> np.ndarray:
    array = as_numbers(f"prior: {name}", value, "numbers")
    if array.shape not in shapes or not np.isfinite(array).all():
        expected = " or ".join("a number" if shape == () else f"finite numbers of shape {shape}" for shape in shapes)
        raise ParameterError(f"prior: {name} must be {expected}; its shape is {array.shape}")
    return array
