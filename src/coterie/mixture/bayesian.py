"""The Bayesian Gaussian mixture estimator."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from coterie import kernels
from coterie.base import Summary, callbacks
from coterie.core.arguments import not_negative, one_of, whole_number
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import LENGTHS, Powers, in_type
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.errors import InputError, ParameterError, ScaleError
from coterie.families import forms
from coterie.families.normal_prior import as_penalty, positive_variances
from coterie.families.structures import as_structure
from coterie.kernels.plain.gaussian import Gaussians
from coterie.mixture import given
from coterie.mixture.answers import MixtureAnswers
from coterie.mixture.beliefs import Dirichlet, NormalWishart, Sticks
from coterie.mixture.gaussian import BY_FORM, GaussianStats, has_covariances_of_structure
from coterie.mixture.starts import METHODS, Start
from coterie.mixture.variational import BoundRecorder, Posterior, VariationalGaussians, used

MIXING = {"dirichlet_process": Sticks, "dirichlet_distribution": Dirichlet}
FORMS = ("full", "tied", "diag", "spherical")


@stored(
    check=has_covariances_of_structure,
    _components="<bayesian.Components>",
    _fitted_model="<bayesian.Model>",
    weights_="real K",
    means_="real K D",
    covariances_=BY_FORM,
)
class BayesianGaussianMixture(MixtureAnswers):
    r"""A mixture of Gaussians of which not the parameters but their distribution is found, by variational Bayes.

    .. math:: \max_q \; E_q[\log p(X, z, \pi, \mu, \Lambda)] - E_q[\log q(z) q(\pi) \prod_k q(\mu_k, \Lambda_k)]
              \;\le\; \log p(X)

    Weights are broken off a stick (a Dirichlet process, cut off at `n_components`) or have a Dirichlet distribution;
    means and precisions are normal-Wishart [1]_ [2]_. The bound pays for every component that moves away from what was
    believed before, so components that explain too little end without rows: `n_components` is how many there may be.
    Covariances cannot collapse.

    Do not use it to find a number of components at all cost: it empties components, but is slow to and may stop
    half-way; a search that also joins and splits them is `Mixture` with ``n_components="auto"``. With few rows the
    prior speaks: put the columns into comparable units and say what is known.

    Parameters
    ----------
    n_components : int, default=1
        How many components there may be.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        The precision's distribution: Wishart, with any scale matrix; the same for all components; a diagonal one; a
        multiple of the identity.
    tol : float, default=1e-3
        A fit ends when the bound still to be gained, by Aitken's estimate, is below `tol` (1 + n / 1000).
    reg_covar : float, default=1e-6
        Part of the prior: its scale matrix grows by this share of the columns' variances for each row of an average
        component.
    max_iter : int, default=1000
        Maximum number of iterations of each initialisation. 0 returns the initialisation itself.
    n_init : int, default=1
        Starts, of which the one with the highest bound is kept.
    init_params : {'kmeans', 'k-means++', 'random', 'random_from_data', 'hierarchical', 'auto'} or array
        Where to start, as in `GaussianMixture`; labels (n,) or responsibilities (n, k) are taken as given.
    weight_concentration_prior_type : {'dirichlet_process', 'dirichlet_distribution'}, default='dirichlet_process'
    weight_concentration_prior : float, default=None
        Large: many components are used; small: few. 1 / n_components by default.
    mean_precision_prior : float, default=None
        Rows that the prior of the means counts for; 1 by default.
    mean_prior : array (d,), default=None
        Where means are believed to be; the mean of the rows by default.
    degrees_of_freedom_prior : float, default=None
        Above d - 1: rows that the prior of the covariances counts for; d by default.
    covariance_prior : float or array, default=None
        The prior's scale matrix: (d, d) for 'full' and 'tied', (d,) for 'diag', a number for 'spherical'. By default
        the covariance of the rows.
    accelerate : bool, default=False
        Extrapolate (SQUAREM): the same answer in fewer iterations; the bound never falls.
    warm_start : bool, default=False
        Start from the last fit.
    engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : array
        The mean mixture; precisions are expected ones, and covariances their inverses. Shapes as in `GaussianMixture`.
    weight_concentration_ : array (k,), or two for the Dirichlet process
    mean_precision_ : array (k,)
    degrees_of_freedom_ : array (k,), or a number for 'tied'
        The rest of what the distributions consist of.
    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior; `covariance_prior_` with the share of `reg_covar`.
    counts_ : array (k,)
        Rows of each component, by weight, in expectation.
    n_components_effective_ : int
        Components with at least one row, that is with `counts_` of at least 1.
    pruned_ : array of int
        The others. They believe what the prior does, and keep their places in all arrays.
    lower_bound_ : float
        Evidence lower bound (ELBO) of all rows, with every constant.
    lower_bounds_ : array (n_iter_,)
        The evidence lower bound after each iteration: `history_.lower_bound` without the initialisation.
    history_ : `coterie.mixture.variational.BoundHistory`
        The bound and its parts at the start and after every iteration, and the rows of each component.
    labels_ : array (n,) of int32
        Always what `predict` says of the same rows.
    converged_, n_iter_, n_features_in_, feature_names_in_
        As in `GaussianMixture`.

    Notes
    -----
    An iteration is one pass of `GaussianMixture`'s EM: about 2 n k d (d + 1) operations for full covariances.

    With `reg_covar` at 0 the parameters of every iteration are those of scikit-learn's class, whose `reg_covar` is
    added to covariances of all rows and breaks the bound's climb by as much. Its `lower_bound_` leaves out the terms
    that the prior and the number of rows fix, and so cannot be compared with the evidence of another model; this one
    has them all: it is below log p(X), and larger is better across `n_components`, `covariance_type` and priors.
    `score_samples` is as there: the logarithm of the sum over components of exp E[log p(x, z)], a little below the
    predictive density.

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

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="full",
        tol=1e-3,
        reg_covar=1e-6,
        max_iter=1000,
        n_init=1,
        init_params="kmeans",
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=None,
        mean_precision_prior=None,
        mean_prior=None,
        degrees_of_freedom_prior=None,
        covariance_prior=None,
        accelerate=False,
        warm_start=False,
        engine="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.accelerate = accelerate
        self.warm_start = warm_start
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint

    _sparse = False
    _has_lengths = True
    _counts_rows = True
    _powers: ClassVar[dict[str, Powers]] = {
        "means_": LENGTHS,
        "mean_prior_": LENGTHS,
        "covariances_": Powers(2, 0),
        "covariance_prior_": Powers(2, 0),
        "precisions_": Powers(-2, 0),
        "precisions_cholesky_": Powers(-1, 0),
    }
    _powers_of_options: ClassVar[dict[str, int]] = {"mean_prior": 1, "covariance_prior": 2}

    def _rescale_sums(self, sample_weight: Any) -> None:
        less = float(self.counts_.sum()) * self._log_unit
        bounds = {name: getattr(self.history_, name) - less for name in ("lower_bound", "fit")}
        self.lower_bound_, self.history_ = self.lower_bound_ - less, replace(self.history_, **bounds)
        self.lower_bounds_ = self.history_.lower_bound[1:]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the distribution of the mixture of `X`.

        Parameters
        ----------
        X : array, frame, LazyFrame, path of a file, or Dask array (n, d)
            The rows.
        y : ignored
        sample_weight : array (n,), optional
            How much each row counts; a row of weight two is that row twice.
        """
        n_init, max_iter = self._check_options()
        try:
            source, engine, summary = self._open(X, sample_weight, first=True)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        if summary.rows < self.n_components:
            raise InputError(
                f"n_samples={summary.rows} rows (of weight above 0) cannot make n_components={self.n_components}: "
                "ask for fewer"
            )
        model = self._model(summary, source.dtype, source, engine)
        model = replace(model, start=self._start(model, X, sample_weight, source.shape[0]))
        recorder = BoundRecorder(model)
        watch = callbacks(self.callback, self.verbose, recorder)
        found, labels = self._descend(
            model, source, engine, n_init, max_iter, watch, recorder=recorder, accelerate=bool(self.accelerate)
        )
        self._learn_columns(X, source)
        self._publish(model, found.params, source.dtype)
        self.labels_, self.history_ = labels, recorder.history(found.run)
        self.counts_ = np.asarray(found.stats.weight)
        self.pruned_ = np.flatnonzero(~used(self.counts_))
        self.n_components_effective_ = self.n_components - len(self.pruned_)
        self.lower_bound_, self.lower_bounds_ = -float(found.objective), self.history_.lower_bound[1:]
        self.n_iter_, self.converged_ = found.passes - 1, found.converged
        return self

    def _model(
        self,
        summary: Summary | None = None,
        dtype: Any = np.float64,
        source: Source | None = None,
        engine: Engine | None = None,
    ) -> VariationalGaussians:
        if summary is None:
            return self._fitted_model
        k, structure = self.n_components, as_structure(self.covariance_type)
        penalty = as_penalty(None, float(self.reg_covar), k, summary.mean, summary.variance)
        kind, concentration = MIXING[self.weight_concentration_prior_type], self.weight_concentration_prior
        floor = max(summary.weight / k, 1.0) * penalty.floor  # the prior is one of its own, however little rows weigh
        return VariationalGaussians(
            k,
            structure,
            penalty,
            origin=summary.mean,
            unit=np.sqrt(positive_variances(summary.mean, summary.variance)),
            tol=float(self.tol),
            precision=float(np.finfo(dtype).eps),
            mixing=kind(1.0 / k if concentration is None else float(concentration)),
            belief=self._belief(structure.form, summary, source, engine, floor),
        )

    def _belief(self, form: str, summary: Summary, source: Source, engine: Engine, floor: np.ndarray) -> NormalWishart:
        """The prior of means and precisions, for rows of that summary."""
        d = len(floor)
        mean = summary.mean if self.mean_prior is None else given.numbers("mean_prior", self.mean_prior, (d,))
        dof = float(d if self.degrees_of_freedom_prior is None else self.degrees_of_freedom_prior)
        if not dof > d - 1:
            raise ParameterError(f"degrees_of_freedom_prior must be above d - 1 = {d - 1}; got {dof!r}")
        scale = np.diag(floor) + self._prior_scale(form, summary, source, engine)
        if forms.factors("tied", scale, 1, d).singular.any():
            raise ParameterError(
                "covariance_prior must be positive definite, and is not"
                + (": the columns are dependent; raise reg_covar, or give it" if self.covariance_prior is None else "")
            )
        precision = 1.0 if self.mean_precision_prior is None else float(self.mean_precision_prior)
        return NormalWishart(form, mean, precision, dof, scale)

    def _prior_scale(self, form: str, summary: Summary, source: Source, engine: Engine) -> np.ndarray:
        """The prior's scale matrix (d, d), without the share of `reg_covar`."""
        d, value = len(summary.mean), self.covariance_prior
        if value is not None:
            shape: tuple[int, ...] = {"full": (d, d), "tied": (d, d), "diag": (d,), "spherical": ()}[form]
            found = given.numbers("covariance_prior", value, shape)
            if form in ("full", "tied"):
                if not np.allclose(found, found.T, rtol=1e-8, atol=1e-12 * np.abs(found).max()):
                    raise ParameterError("covariance_prior must be symmetric; it differs from its transpose")
                return (found + found.T) / 2
            return np.diag(np.broadcast_to(found, d))
        rows = max(summary.weight - 1, summary.weight / 2)
        if form in ("full", "tied"):
            return engine.sum(partial(_scatter, summary.mean), source).sum_dxx[0] / rows
        variance = summary.variance * summary.weight / rows
        return np.diag(variance if form == "diag" else np.full(d, variance.mean()))

    def _start(self, model: VariationalGaussians, X: Any, sample_weight: Any, rows: int) -> Any:
        """Beliefs, or what finds them."""
        k, d = self.n_components, len(model.origin)
        if self.warm_start and hasattr(self, "_components"):
            if self._components.means.shape != (k, d) or self._fitted_model.structure != model.structure:
                raise ParameterError(
                    "warm_start cannot go on from a fit with other columns, n_components or covariance_type: "
                    "set warm_start=False"
                )
            if self._components.concentration.shape != model.mixing.after(np.zeros(k)).shape:
                raise ParameterError(
                    "warm_start cannot go on from a fit with another weight_concentration_prior_type: "
                    "set warm_start=False"
                )
            return self._components
        if isinstance(self.init_params, str):
            return Start(self.init_params)
        return self._from_responsibilities(model, X, sample_weight, rows, self.init_params)

    def _publish(self, model: VariationalGaussians, c: Posterior, dtype: Any) -> None:
        self._components, self._fitted_model = c, replace(model, start=None)
        matrices, process, belief = model.form in ("full", "tied"), c.concentration.ndim == 2, model.belief
        precisions = c.factor @ np.swapaxes(c.factor, -1, -2) if matrices else c.factor**2
        found = {"weights_": c.weights, "means_": c.means, "covariances_": c.covariances, "precisions_": precisions}
        vars(self).update(in_type({**found, "precisions_cholesky_": c.factor}, dtype))
        self.weight_concentration_ = tuple(c.concentration) if process else c.concentration
        self.mean_precision_ = c.mean_precision
        self.degrees_of_freedom_ = float(c.dof[0]) if model.form == "tied" else c.dof
        self.weight_concentration_prior_ = model.mixing.concentration
        self.mean_precision_prior_, self.mean_prior_ = belief.mean_precision, belief.mean
        self.degrees_of_freedom_prior_ = belief.dof
        variances = np.diagonal(belief.scale)
        self.covariance_prior_ = {"diag": variances, "spherical": variances.mean()}.get(model.form, belief.scale)

    def _check_options(self) -> tuple[int, int]:
        whole_number("n_components", self.n_components, 1)
        one_of("covariance_type", self.covariance_type, FORMS)
        one_of("weight_concentration_prior_type", self.weight_concentration_prior_type, tuple(MIXING))
        if isinstance(self.init_params, str):
            one_of("init_params", self.init_params, METHODS)
        not_negative("reg_covar", self.reg_covar)
        not_negative("tol", self.tol)
        for name in ("weight_concentration_prior", "mean_precision_prior", "degrees_of_freedom_prior"):
            value = getattr(self, name)
            if value is not None and not_negative(name, value) == 0:
                raise ParameterError(f"{name} must be None or a number above 0; got {value!r}")
        callbacks(self.callback, self.verbose)
        return whole_number("n_init", self.n_init, 1), whole_number("max_iter", self.max_iter, 0)


def _scatter(mean: np.ndarray, chunk: Chunk) -> Stats:
    """Sums of the rows about their mean: EM of a single component."""
    d = len(mean)
    one = Gaussians("full", np.zeros(1), mean[None], np.eye(d)[None], mean)
    return GaussianStats(*kernels.for_centers(chunk.X, 1).em(chunk.X, chunk.w, one))
