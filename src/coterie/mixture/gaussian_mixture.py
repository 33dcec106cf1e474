"""The Gaussian mixture estimator."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import optimize, special
from sklearn.utils.validation import check_is_fitted

from coterie.base import Summary
from coterie.core.arguments import not_negative
from coterie.core.scale import in_type
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families.normal_prior import as_penalty, positive_variances
from coterie.families.structures import Structure, as_structure
from coterie.mixture import gaussian_em, parameter_checks
from coterie.mixture.base_mixture import MixtureEstimator
from coterie.mixture.gaussian_em import BY_FORM, Components, GaussianEM, fitted_arrays, has_covariances_of_structure
from coterie.mixture.starts import Start

ROTATED = frozenset(["EEV", "VEV", "EVE", "VVE"])  # structures that compare eigenvalues of components
MAX_RATIO = 1e6  # of the standard deviations of columns; the squares of more are rounding errors beside each other


@stored(
    check=has_covariances_of_structure,
    optional="_batches",
    _components="<gaussian_mixture.Components>",
    _fitted_model="<gaussian_mixture.Model>",
    _state="<online.State>",
    weights_="real K",
    means_="real K D",
    covariances_=BY_FORM,
)
@dataclass(eq=False, repr=False, kw_only=True)
class GaussianMixture(MixtureEstimator):
    r"""Gaussian mixture, fitted by EM.

    .. math:: \max_{\pi, \mu, \Sigma} \sum_i w_i \log \sum_k \pi_k N(x_i; \mu_k, \Sigma_k)

    The E-step computes the posterior probability of each component for each row. The M-step estimates each component
    from the rows with these probabilities as weights [1]_. The likelihood never falls. Covariances can have any of the
    fourteen structures of Celeux & Govaert [2]_, with the names of mclust [3]_: volume, shape and orientation are each
    Equal for all components, Variable, or the Identity.

    Do not use it for clusters that are not elliptical (rings or moons: use single linkage). With more columns than a
    component has rows, use a simple structure ('diag', 'EEI'). With outliers, use a Student-t mixture.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : str, default='full'
        'EII', 'VII', 'EEI', 'VEI', 'EVI', 'VVI', 'EEE', 'VEE', 'EVE', 'VVE', 'EEV', 'VEV', 'EVV' or 'VVV';
        scikit-learn's 'full' (VVV), 'tied' (EEE), 'diag' (VVI), 'spherical' (VII); for one column 'E' or 'V'.
    e_step : {'soft', 'hard', 'stochastic'}, default='soft'
        'soft' weights rows with posterior probabilities (EM). 'hard' assigns each row to its most probable component
        (classification EM; with EII and equal weights this is K-means). 'stochastic' assigns each row to a random
        component with these probabilities; the fit then runs for `max_iter` iterations.
    init_params : {'auto', 'kmeans', 'k-means++', 'random', 'random_from_data', 'hierarchical'} or array, default='auto'
        Initialisation. 'auto' takes the best of several runs from K-means, k-means++, random rows and random
        responsibilities; runs with components of hardly any rows are left out. The other names are one such start.
        Large tables are initialised on a random sample of rows. Labels (n,) or responsibilities (n, k) are used as they
        are.
    search : {'auto', 'thorough', 'none'}, default='auto'
        How `init_params='auto'` looks for a start. 'auto' compares a few runs, and more until three end in the best
        optimum; it takes as long as one to three fits of scikit-learn for a hundred rows, and less for many. 'thorough'
        compares hundreds, a model-based tree, and new starts made from the best runs; it costs up to a hundred times as
        much. 'none' starts from K-means.
    n_init : int, default=1
        Number of initialisations. The best result is kept; results with components of hardly any rows come last.
    weights_init : array (k,) or None, default=None
        Initial weights.
    means_init : array (k, d) or None, default=None
        Initial means.
    precisions_init : array or None, default=None
        Initial precisions (inverse covariances), in the shape of `covariances_`.
    fixed : str or sequence of {'weights', 'means', 'covariances'}, default=()
        Parameters that keep their initial values. Weights without `weights_init` stay equal.
    reg_covar : float, default=1e-6
        Regularisation of covariances, as a share of the variance of each column. It acts as if each row of an average
        component had this much additional variance, so that covariances cannot collapse.
    prior : None, 'default' or `coterie.mixture.Prior`, default=None
        Dirichlet prior of weights and normal-inverse-Wishart prior of means and covariances. The fit is then the
        maximum a posteriori estimate. 'default' is the prior of mclust.
    tol : float, default=1e-3
        Tolerance. Iterations stop when the mean log-likelihood of the rows increases by less than `tol`, as in
        scikit-learn. With ``search='thorough'`` or `accelerate`, they stop when the increase still to come, by Aitken's
        estimate, is below `tol` / 200. The mean is weighted, so that the scale of weights does not matter.
    max_iter : int, default=1000
        Maximum number of iterations of each initialisation. 0 returns the initialisation itself.
    accelerate : bool, default=False
        Extrapolate with SQUAREM: the same result in fewer iterations if components overlap. The likelihood never falls.
    missing : {'error', 'ignore'}, default='error'
        Treatment of NaN: raise an error, or use the observed values of each row (exact EM for values missing at
        random).
    warm_start : bool, default=False
        Initialise with the parameters of the previous fit.
    device, engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    weights_ : array (k,)
        Weights of the components.
    means_ : array (k, d)
        Means of the components.
    covariances_, precisions_, precisions_cholesky_ : array
        (k, d, d); (d, d) for EEE; (k, d) for the diagonal structures ..I; (k,) for the spherical ones .II.
    labels_ : array (n,) of int32
        Most probable component of each row, equal to `predict` of the same rows.
    lower_bound_ : float
        Lower bound of the mean log-likelihood of the rows; equal to it for a soft E-step.
    lower_bounds_ : array (iterations,)
        The lower bound after each iteration of `fit`, as a mean over the rows; rejected steps of `accelerate` are left
        out. `history_` has the totals, and the bound of the initialisation. Not set by `partial_fit`.
    log_likelihood_ : float
        Log-likelihood of all rows.
    n_parameters_ : int
        Number of free parameters, as in `bic` and `aic`.
    converged_ : bool
        Whether the best initialisation converged.
    n_iter_ : int
        Iterations of the best initialisation; with `accelerate`, passes over the rows.
    history_ : `coterie.mixture.history.History`
        Log-likelihood, lower bound and their difference after each E-step and M-step, and repairs of components. Not
        set by `partial_fit`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    An iteration is one pass over the rows. It costs about 2 n k d (d + 1) operations for full covariances and 6 n k d
    for diagonal ones. Responsibilities are never stored. All structures use the same sums, so all run on every engine.

    References
    ----------
    .. [1] A. P. Dempster, N. M. Laird & D. B. Rubin (1977), Maximum likelihood from incomplete data via the EM
       algorithm, J. Royal Statistical Society B 39, 1-38. https://doi.org/10.1111/j.2517-6161.1977.tb01600.x
    .. [2] G. Celeux & G. Govaert (1995), Gaussian parsimonious clustering models, Pattern Recognition 28, 781-793.
       https://doi.org/10.1016/0031-3203(94)00125-6
    .. [3] L. Scrucca, M. Fop, T. B. Murphy & A. E. Raftery (2016), mclust 5, The R Journal 8, 289-317.
       https://doi.org/10.32614/RJ-2016-021

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GaussianMixture
    >>> X = np.array([[1, 2], [2, 4], [3, 0], [10, 2], [11, 4], [12, 0]])
    >>> model = GaussianMixture(n_components=2, covariance_type="EEI", random_state=0).fit(X)
    >>> sorted(model.means_.round(6).tolist())
    [[2.0, 2.0], [11.0, 2.0]]
    >>> model.predict_proba([[0, 0]]).max().round(6)
    np.float64(1.0)
    """

    covariance_type: Any = "full"
    weights_init: Any = None
    means_init: Any = None
    precisions_init: Any = None
    fixed: Any = ()
    reg_covar: float = 1e-6
    prior: Any = None

    _sparse = False
    _has_lengths = True
    _powers = gaussian_em.POWERS
    _powers_of_options: ClassVar[dict[str, int]] = {"means_init": 1, "precisions_init": -2}

    def impute(self, X: Any) -> Any:
        """Return `X` with each NaN replaced by its expectation given the observed values of the row."""
        if not self._allows_missing:
            raise ParameterError("impute needs missing='ignore', but missing='error': fit with missing='ignore'")
        return self._map(X, "impute")

    def cdf(self, x: Any) -> np.ndarray:
        """Return the cumulative distribution function at each `x`; for one column only."""
        c, x = self._one_column("cdf"), np.asarray(x, dtype=np.float64)
        return _cdf(c, np.ldexp(x, -self._scale.rows))

    def quantile(self, q: Any) -> np.ndarray:
        """Return the quantile function (the inverse of `cdf`) at each `q`; for one column only."""
        c, q = self._one_column("quantile"), np.asarray(q, dtype=np.float64)
        if ((q < 0) | (q > 1) | np.isnan(q)).any():
            raise ParameterError(f"q must be between 0 and 1; its values are from {np.min(q):.6g} to {np.max(q):.6g}")
        # A quantile of the mixture is between the quantiles of its components.
        quantiles = c.means[:, 0] + _deviations(c) * special.ndtri(q[..., None])
        xtol = 1e-14 * float(_deviations(c).min())

        def invert(share: float, low: float, high: float) -> float:
            if not low < high or _cdf(c, np.asarray(low)) >= share:
                return float(low)
            if _cdf(c, np.asarray(high)) <= share:  # by rounding, if components nearly coincide
                return float(high)
            return float(
                optimize.brentq(lambda x: float(_cdf(c, np.asarray(x))) - share, low, high, xtol=xtol, rtol=1e-14)
            )

        brackets = zip(q.ravel(), quantiles.min(axis=-1).ravel(), quantiles.max(axis=-1).ravel(), strict=True)
        return np.ldexp([invert(*item) for item in brackets], self._scale.rows).reshape(q.shape)

    def _new_model(self, summary: Summary, dtype: Any, source: Any, engine: Any) -> GaussianEM:
        structure = as_structure(self.covariance_type)
        if self.n_components > 1:
            _warn_of_units(structure, summary.variance)
        return GaussianEM(
            self.n_components,
            structure,
            as_penalty(self.prior, float(self.reg_covar), self.n_components, summary.mean, summary.variance),
            origin=summary.mean,
            unit=np.sqrt(positive_variances(summary.mean, summary.variance)),
            e_step_kind=self.e_step,
            fixed=parameter_checks.fixed(self.fixed),
            missing=self._allows_missing,
            tol=float(self.tol),
            precision=float(np.finfo(dtype).eps),
        )

    def _start(self, model: GaussianEM, X: Any, sample_weight: Any, rows: int, known: Any) -> Any:
        parts = {} if self._is_warm else self._initial_parts(model)
        if len(parts) == 3:
            return model.components(parts["weights"], parts["means"], parts["covariances"])
        start = super()._start(model, X, sample_weight, rows, known)
        if isinstance(start, Start):
            return replace(start, given=tuple(parts.items()))
        return model.with_parts(start, parts)

    def _warm_start(self, model: GaussianEM) -> Components:
        return super()._warm_start(model)._replace(reseeds=0, events=())

    def _initial_parts(self, model: GaussianEM) -> dict[str, np.ndarray]:
        """Weights, means and covariances from `weights_init`, `means_init` and `precisions_init`."""
        k, d = self.n_components, len(model.origin)
        parts = {}
        if self.weights_init is not None:
            parts["weights"] = parameter_checks.weights(self.weights_init, k)
        elif "weights" in model.fixed:
            parts["weights"] = np.full(k, 1 / k)
        if self.means_init is not None:
            parts["means"] = parameter_checks.numbers("means_init", self.means_init, (k, d))
        if self.precisions_init is not None:
            parts["covariances"] = parameter_checks.covariances(self.precisions_init, model.form, k, d)
        for name, option in (("means", "means_init"), ("covariances", "precisions_init")):
            if name in model.fixed and name not in parts:
                raise ParameterError(f"fixed={name!r} needs initial values: set {option}")
        return parts

    def _publish(self, model: GaussianEM, c: Components, dtype: Any) -> None:
        self._components, self._fitted_model = c, replace(model, start=None)
        self.__dict__.update(in_type(fitted_arrays(model.form, c), dtype))
        k, d = c.means.shape
        free = {"weights": k - 1, "means": k * d, "covariances": model.structure.n_parameters(k, d)}
        self.n_parameters_ = sum(count for name, count in free.items() if name not in model.fixed)

    def _one_column(self, name: str) -> Components:
        check_is_fitted(self)
        if self._components.means.shape[1] != 1:
            raise ParameterError(
                f"{name} is for mixtures of one column; this one has {self._components.means.shape[1]}: fit one column"
            )
        return self._components

    def _check_options(self) -> tuple[int, int]:
        not_negative("reg_covar", self.reg_covar)
        return super()._check_options()


def _cdf(c: Components, x: np.ndarray) -> np.ndarray:
    return special.ndtr((x[..., None] - c.means[:, 0]) / _deviations(c)) @ c.weights


def _warn_of_units(structure: Structure, variance: np.ndarray) -> None:
    """Warn if eigenvalues of a narrow column would be rounding errors beside those of a wide one."""
    variance = variance[variance > 0]
    ratio = float(np.sqrt(variance.max() / variance.min())) if len(variance) > 0 else 1.0
    if structure.name in ROTATED and ratio > MAX_RATIO:
        warnings.warn(
            f"the standard deviations of the columns differ by a factor of {ratio:.1g}. "
            f"covariance_type={structure.name!r} compares all columns, so variances of the narrow ones are imprecise: "
            "scale the columns, or use 'VVV'",
            stacklevel=2,
        )


def _deviations(c: Components) -> np.ndarray:
    """Standard deviations of the components (k,) of a mixture of one column."""
    return np.broadcast_to(np.sqrt(c.covariances.reshape(-1)), len(c.weights))
