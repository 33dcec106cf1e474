"""The Bayesian Gaussian mixture estimator."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from coterie import kernels
from coterie.base import Summary
from coterie.core import loop
from coterie.core.arguments import not_negative, one_of
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import LENGTHS, Powers, in_type
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families import forms
from coterie.families.normal_prior import as_penalty, positive_variances
from coterie.families.structures import as_structure
from coterie.kernels.plain.gaussian import Gaussians
from coterie.mixture import parameter_checks
from coterie.mixture.base_mixture import BaseMixture
from coterie.mixture.gaussian_em import BY_FORM, POWERS, GaussianStats, fitted_arrays, has_covariances_of_structure
from coterie.mixture.history import BoundRecorder
from coterie.mixture.variational import Dirichlet, NormalWishart, Posterior, StickBreaking, VariationalGaussians

MIXING: dict[str, type[Dirichlet] | type[StickBreaking]] = {
    "dirichlet_process": StickBreaking,
    "dirichlet_distribution": Dirichlet,
}
FORMS = ("full", "tied", "diag", "spherical")


@stored(
    check=has_covariances_of_structure,
    _components="<bayesian.Components>",
    _fitted_model="<bayesian.Model>",
    weights_="real K",
    means_="real K D",
    covariances_=BY_FORM,
)
@dataclass(eq=False, repr=False, kw_only=True)
class BayesianGaussianMixture(BaseMixture):
    r"""Bayesian Gaussian mixture, fitted by variational Bayes.

    .. math:: \max_q \; E_q[\log p(X, z, \pi, \mu, \Lambda)] - E_q[\log q(z) q(\pi) \prod_k q(\mu_k, \Lambda_k)]
              \;\le\; \log p(X)

    The fit is a posterior distribution of the parameters instead of an estimate. The prior of the weights is a
    Dirichlet process, truncated at `n_components`, or a Dirichlet distribution; that of means and precisions is
    normal-Wishart [1]_ [2]_. The lower bound has a penalty for each component whose posterior differs from the prior.
    So components that explain too little end without rows, and `n_components` is a maximum. Covariances cannot
    collapse.

    Do not use it only to find the number of components: it empties components slowly, and may stop too early. `Mixture`
    with ``n_components="auto"`` also merges and splits components. With few rows the prior matters: scale the columns,
    and set the priors that you know.

    Parameters
    ----------
    n_components : int, default=1
        Maximum number of components.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Posterior of the precisions: Wishart with any scale matrix, with one for all components, with diagonal ones, or
        with multiples of the identity.
    tol : float, default=1e-3
        Tolerance. Iterations stop when the increase of the lower bound still to come, by Aitken's estimate, is below
        `tol` n / 200, for rows of total weight n: components lose their rows slowly.
    reg_covar : float, default=1e-6
        Part of the prior: this share of the column variances is added to its scale matrix for each row of an average
        component.
    max_iter : int, default=1000
        Maximum number of iterations of each initialisation. 0 returns the initialisation itself.
    n_init : int, default=1
        Number of initialisations; the result with the highest lower bound is kept.
    init_params : {'kmeans', 'auto', 'k-means++', 'random', 'random_from_data', 'hierarchical'} or array
        Initialisation as in `GaussianMixture`, 'kmeans' by default. Labels (n,) or responsibilities (n, k) are used as
        they are.
    search : {'auto', 'thorough', 'none'}, default='auto'
        How `init_params='auto'` looks for a start, as in `GaussianMixture`.
    weight_concentration_prior_type : {'dirichlet_process', 'dirichlet_distribution'}, default='dirichlet_process'
        Prior of the weights.
    weight_concentration_prior : float or None, default=None
        Concentration of that prior: a larger value keeps more components. None is 1 / n_components.
    mean_precision_prior : float or None, default=None
        Number of rows that the prior of the means is worth. None is 1.
    mean_prior : array (d,) or None, default=None
        Mean of the prior of the means. None is the mean of the rows.
    degrees_of_freedom_prior : float or None, default=None
        Number of rows that the prior of the covariances is worth, above d - 1. None is d.
    covariance_prior : float, array or None, default=None
        Scale matrix of the prior: (d, d) for 'full' and 'tied', (d,) for 'diag', a number for 'spherical'. None is the
        covariance of the rows.
    accelerate : bool, default=False
        Extrapolate with SQUAREM: the same result in fewer iterations. The lower bound never falls.
    warm_start : bool, default=False
        Initialise with the posterior of the previous fit.
    device, engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : array
        Expected weights, means and precisions; covariances are inverses of expected precisions. Shapes are as in
        `GaussianMixture`.
    weight_concentration_ : array (k,), or a tuple of two for the Dirichlet process
    mean_precision_ : array (k,)
    degrees_of_freedom_ : array (k,), or a number for 'tied'
        The other parameters of the posterior.
    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior; `covariance_prior_` includes `reg_covar`.
    counts_ : array (k,)
        Expected number of rows of each component, by weight.
    n_components_effective_ : int
        Number of components with at least one row: `counts_` >= 1.
    pruned_ : array of int
        Indices of the other components. Their posterior is the prior; they stay in all arrays.
    lower_bound_ : float
        Evidence lower bound (ELBO) of all rows, with every constant.
    lower_bounds_ : array (iterations,)
        The evidence lower bound after each iteration: `history_.lower_bound` without the initialisation.
    history_ : `coterie.mixture.history.BoundHistory`
        The lower bound and its terms for the initialisation and after each iteration, and the rows of each component.
    labels_ : array (n,) of int32
        Most probable component of each row, equal to `predict` of the same rows.
    converged_, n_iter_, n_features_in_, feature_names_in_
        As in `GaussianMixture`.

    Notes
    -----
    An iteration costs as much as one of `GaussianMixture`: about 2 n k d (d + 1) operations for full covariances.

    With ``reg_covar=0``, all iterations have the same parameters as those of scikit-learn's class. `reg_covar` is added
    to the covariances there, so that the lower bound can fall slightly. Its `lower_bound_` leaves out terms that depend
    only on the prior and the number of rows, so it cannot be compared between models. Here all terms are included: the
    lower bound is below log p(X), and larger is better across `n_components`, `covariance_type` and priors.
    `score_samples` is as in scikit-learn: the logarithm of the sum over components of exp E[log p(x, z)], slightly
    below the log predictive density.

    References
    ----------
    .. [1] H. Attias (2000), A variational Bayesian framework for graphical models, Advances in Neural Information
       Processing Systems 12, 209-215.
    .. [2] D. M. Blei & M. I. Jordan (2006), Variational inference for Dirichlet process mixtures, Bayesian Analysis 1,
       121-143. https://doi.org/10.1214/06-BA104

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import BayesianGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (200, 2)), rng.normal(8, 1, (100, 2))])
    >>> model = BayesianGaussianMixture(n_components=6, weight_concentration_prior=0.01, random_state=0).fit(X)
    >>> model.n_components_effective_
    2
    >>> np.sort(model.counts_)[-2:].round()
    array([100., 200.])
    """

    covariance_type: str = "full"
    reg_covar: float = 1e-6
    init_params: Any = "kmeans"
    weight_concentration_prior_type: str = "dirichlet_process"
    weight_concentration_prior: float | None = None
    mean_precision_prior: float | None = None
    mean_prior: Any = None
    degrees_of_freedom_prior: float | None = None
    covariance_prior: Any = None
    counts_: np.ndarray = field(init=False)
    lower_bound_: float = field(init=False)

    _sparse = False
    _has_lengths = True
    _counts_rows = True
    _powers: ClassVar[dict[str, Powers]] = {**POWERS, "mean_prior_": LENGTHS, "covariance_prior_": Powers(2, 0)}
    _powers_of_options: ClassVar[dict[str, int]] = {"mean_prior": 1, "covariance_prior": 2}

    def _rescale_sums(self, X: Any, sample_weight: Any) -> None:
        log_volume = self._log_volume(float(self.counts_.sum()), X, sample_weight)
        self.lower_bound_, self.history_ = self.lower_bound_ - log_volume, self.history_.rescaled(log_volume)
        self.lower_bounds_ = self.history_.lower_bound[1:]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Fit the mixture.

        Parameters
        ----------
        X : array, frame, LazyFrame, path of a file, or Dask array (n, d)
            The rows.
        y : Ignored
            Present for compatibility with scikit-learn's pipelines and searches.
        sample_weight : array (n,) or None, default=None
            Row weights. A row of weight 2 is equivalent to that row twice.

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight)

    _recorder_type = BoundRecorder
    _extrapolates = True

    def _store_result(self, result: loop.Fit, history: Any, total: float) -> None:
        self.history_, self.counts_ = history, np.asarray(result.stats.weight)
        self.pruned_ = np.flatnonzero(self.counts_ < 1.0)
        self.n_components_effective_ = self.n_components - len(self.pruned_)
        self.lower_bound_, self.lower_bounds_ = -float(result.objective), history.lower_bound[1:]

    def _new_model(self, summary: Summary, dtype: Any, source: Source, engine: Engine) -> VariationalGaussians:
        k, structure = self.n_components, as_structure(self.covariance_type)
        penalty = as_penalty(None, float(self.reg_covar), k, summary.mean, summary.variance)
        kind, concentration = MIXING[self.weight_concentration_prior_type], self.weight_concentration_prior
        floor = max(summary.weight / k, 1.0) * penalty.floor  # at least that of one row, for any weights
        return VariationalGaussians(
            k,
            structure,
            penalty,
            origin=summary.mean,
            unit=np.sqrt(positive_variances(summary.mean, summary.variance)),
            tol=float(self.tol),
            precision=float(np.finfo(dtype).eps),
            mixing=kind(1.0 / k if concentration is None else float(concentration)),
            component_prior=self._component_prior(structure.form, summary, source, engine, floor),
        )

    def _component_prior(
        self, form: str, summary: Summary, source: Any, engine: Any, floor: np.ndarray
    ) -> NormalWishart:
        """The prior of means and precisions."""
        d, mean = len(floor), summary.mean
        if self.mean_prior is not None:
            mean = parameter_checks.numbers("mean_prior", self.mean_prior, (d,))
        dof = float(d if self.degrees_of_freedom_prior is None else self.degrees_of_freedom_prior)
        if not dof > d - 1:
            raise ParameterError(f"degrees_of_freedom_prior must be above d - 1 = {d - 1}; got {dof!r}")
        scale = np.diag(floor) + self._prior_scale(form, summary, source, engine)
        if forms.factors("tied", scale, 1, d).singular.any():
            raise ParameterError(
                "the covariance of the columns is singular: set covariance_prior, or raise reg_covar"
                if self.covariance_prior is None
                else "covariance_prior must be positive definite; it is singular or indefinite"
            )
        precision = 1.0 if self.mean_precision_prior is None else float(self.mean_precision_prior)
        return NormalWishart(form, mean, precision, dof, scale)

    def _prior_scale(self, form: str, summary: Summary, source: Source, engine: Engine) -> np.ndarray:
        """The scale matrix of the prior (d, d), without `reg_covar`."""
        d, value = len(summary.mean), self.covariance_prior
        if value is not None:
            shape: tuple[int, ...] = {"full": (d, d), "tied": (d, d), "diag": (d,), "spherical": ()}[form]
            array = parameter_checks.numbers("covariance_prior", value, shape, " for this covariance_type")
            if form in ("full", "tied"):
                if not np.allclose(array, array.T, rtol=1e-8, atol=1e-12 * np.abs(array).max()):
                    raise ParameterError("covariance_prior must be symmetric; it differs from its transpose")
                return (array + array.T) / 2
            return np.diag(np.broadcast_to(array, d))
        rows = max(summary.weight - 1, summary.weight / 2)
        if form in ("full", "tied"):
            return engine.sum(partial(_scatter, summary.mean), source).sum_dxx[0] / rows
        variance = summary.variance * summary.weight / rows
        return np.diag(variance if form == "diag" else np.full(d, variance.mean()))

    def _warm_start(self, model: VariationalGaussians) -> Posterior:
        posterior: Posterior = super()._warm_start(model)
        is_same = posterior.concentration.shape == model.mixing.posterior(np.zeros(self.n_components)).shape
        self._check_warm_start(is_same, "another weight_concentration_prior_type")
        return posterior

    def _publish(self, model: VariationalGaussians, c: Posterior, dtype: Any) -> None:
        self._components, self._fitted_model = c, replace(model, start=None)
        self.__dict__.update(in_type(fitted_arrays(model.form, c), dtype))
        prior = model.component_prior
        self.weight_concentration_ = tuple(c.concentration) if c.concentration.ndim == 2 else c.concentration
        self.mean_precision_ = c.mean_precision
        self.degrees_of_freedom_ = float(c.dof[0]) if model.form == "tied" else c.dof
        self.weight_concentration_prior_ = model.mixing.concentration
        self.mean_precision_prior_, self.mean_prior_ = prior.mean_precision, prior.mean
        self.degrees_of_freedom_prior_ = prior.dof
        variances = np.diagonal(prior.scale)
        self.covariance_prior_ = {"diag": variances, "spherical": variances.mean()}.get(model.form, prior.scale)

    def _check_options(self) -> tuple[int, int]:
        one_of("covariance_type", self.covariance_type, FORMS)
        one_of("weight_concentration_prior_type", self.weight_concentration_prior_type, tuple(MIXING))
        not_negative("reg_covar", self.reg_covar)
        for name in ("weight_concentration_prior", "mean_precision_prior", "degrees_of_freedom_prior"):
            value = getattr(self, name)
            if value is not None and not_negative(name, value) == 0:
                raise ParameterError(f"{name} must be None or a number above 0; got {value!r}")
        return super()._check_options()


def _scatter(mean: np.ndarray, chunk: Chunk) -> Stats:
    """Sums of deviations of the rows from their mean: an E-step with a single component."""
    d = len(mean)
    one = Gaussians("full", np.zeros(1), mean[None], np.eye(d)[None], mean)
    return GaussianStats(*kernels.for_centers(chunk.X, 1).em(chunk.X, chunk.w, one))
