"""The Gaussian mixture estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import optimize, special
from sklearn.utils.validation import check_is_fitted

from coterie.base import Summary
from coterie.core import loop
from coterie.core.arguments import not_negative, one_of
from coterie.core.scale import LENGTHS, Powers, in_type
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families.normal_prior import as_penalty, positive_variances
from coterie.families.structures import as_structure
from coterie.mixture import given
from coterie.mixture.answers import MixtureEstimator
from coterie.mixture.gaussian import BY_FORM, Components, GaussianEM, has_covariances_of_structure
from coterie.mixture.search import sound_first
from coterie.mixture.starts import METHODS, Start


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
class GaussianMixture(MixtureEstimator):
    r"""A mixture of Gaussians, fitted by EM.

    .. math:: \max_{\pi, \mu, \Sigma} \sum_i w_i \log \sum_k \pi_k N(x_i; \mu_k, \Sigma_k)

    The E-step finds how likely each row is to come from each component, the M-step fits each component to the rows by
    these probabilities, in turn [1]_. The likelihood never falls. Covariances may be of any of the fourteen structures
    of Celeux & Govaert [2]_, known by mclust's names [3]_: volume, shape and orientation, each Equal among the
    components, Variable, or the Identity.

    Do not use it for clusters that are not elliptical (rings, moons: single linkage), with more columns than a
    component has rows unless the structure is simple ('diag', 'EEI'), or where outliers must not pull (Student-t
    mixtures).

    Parameters
    ----------
    n_components : int, default=1
        How many components.
    covariance_type : str, default='full'
        'EII', 'VII', 'EEI', 'VEI', 'EVI', 'VVI', 'EEE', 'VEE', 'EVE', 'VVE', 'EEV', 'VEV', 'EVV' or 'VVV';
        scikit-learn's 'full' (VVV), 'tied' (EEE), 'diag' (VVI), 'spherical' (VII); for one column 'E' or 'V'.
    e_step : {'soft', 'hard', 'stochastic'}, default='soft'
        Posterior probabilities (EM); all to the likeliest component (classification EM: K-means is this, for EII with
        equal weights); or to a component drawn by them (the fit runs for `max_iter` iterations).
    init_params : {'auto', 'kmeans', 'k-means++', 'random', 'random_from_data', 'hierarchical'} or array
        Where to start. 'auto' takes the best of many short runs from k-means++, random rows, K-means and a model-based
        tree, and of new starts made from the best of these, leaving out those that rest on next to no rows; the others
        are one such start. Starts are sought on a sample of the rows where these are many. Labels (n,) or
        responsibilities (n, k) are taken as given.
    n_init : int, default=1
        Starts, of which the best is kept; sound results go before spurious ones.
    weights_init : array (k,), optional
    means_init : array (k, d), optional
    precisions_init : array, optional
        Given parts of the start; precisions are inverse covariances in the shape of `covariances_`.
    fixed : str or sequence of {'weights', 'means', 'covariances'}, default=()
        What stays as it was given; weights that were not given stay equal.
    reg_covar : float, default=1e-6
        Keeps covariances from collapsing: as if the rows of an average component each had this share of their column's
        variance more.
    prior : None, 'default' or `coterie.mixture.Prior`
        Dirichlet and normal-inverse-Wishart: the fit is then the most probable, not the likeliest; 'default' is
        mclust's prior.
    tol : float, default=1e-3
        A fit ends when the log-likelihood still to be gained, by Aitken's estimate, is below `tol` (1 + n / 1000):
        a total, not a mean, so that likelihoods can be compared however many rows there are.
    max_iter : int, default=1000
        Maximum number of iterations of each initialisation. 0 returns the initialisation itself.
    accelerate : bool, default=False
        Extrapolate (SQUAREM): the same answer in fewer iterations where components overlap; the likelihood never falls.
    missing : {'error', 'ignore'}, default='error'
        NaN: refuse it, or use what is there of each row: exact EM for values missing at random.
    warm_start : bool, default=False
        Start from the last fit.
    engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    weights_ : array (k,)
    means_ : array (k, d)
    covariances_, precisions_, precisions_cholesky_ : array
        (k, d, d); (d, d) for EEE; (k, d) for the diagonal structures ..I; (k,) for the spherical ones .II.
    labels_ : array (n,) of int32
        Always what `predict` says of the same rows.
    lower_bound_ : float
        Lower bound of the mean log-likelihood of the rows; equal to it for a soft E-step.
    lower_bounds_ : array (n_iter_,)
        The lower bound after each iteration of `fit`, as a mean over the rows. `history_` has the totals, and the
        bound of the initialisation.
    log_likelihood_ : float
        Of all rows together.
    n_parameters_ : int
        Free ones, as `bic` and `aic` count them.
    converged_ : bool
    n_iter_ : int
        Iterations of the best initialisation; with `accelerate`, passes over the rows.
    history_ : `coterie.mixture.history.History`
        Log-likelihood, lower bound and the gap between them after every half step; repairs.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    An iteration costs about 2 n k d (d + 1) operations for full covariances, 6 n k d for diagonal ones, in one pass
    over the rows; responsibilities are never stored. All structures use the same sums, so all run on every engine.

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
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = GaussianMixture(n_components=2, covariance_type="EEI", random_state=0).fit(X)
    >>> sorted(model.means_.round(6).tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    >>> model.predict_proba([[0, 0]]).max().round(6)
    np.float64(1.0)
    """

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="full",
        e_step="soft",
        init_params="auto",
        n_init=1,
        weights_init=None,
        means_init=None,
        precisions_init=None,
        fixed=(),
        reg_covar=1e-6,
        prior=None,
        tol=1e-3,
        max_iter=1000,
        accelerate=False,
        missing="error",
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
        self.e_step = e_step
        self.init_params = init_params
        self.n_init = n_init
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.fixed = fixed
        self.reg_covar = reg_covar
        self.prior = prior
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.missing = missing
        self.warm_start = warm_start
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint

    _sparse = False
    _has_lengths = True
    _powers: ClassVar[dict[str, Powers]] = {
        "means_": LENGTHS,
        "covariances_": Powers(2, 0),
        "precisions_": Powers(-2, 0),
        "precisions_cholesky_": Powers(-1, 0),
    }
    _powers_of_options: ClassVar[dict[str, int]] = {"means_init": 1, "precisions_init": -2}

    # answers

    def impute(self, X: Any) -> Any:
        """`X` with NaN replaced by the mean given what is there of the row, over all components."""
        if not self._allows_missing:
            raise ParameterError("impute needs missing='ignore'; this mixture has missing='error'")
        return self._map(X, "impute")

    def cdf(self, x: Any) -> np.ndarray:
        """The share of the mixture up to each `x`; for one column only."""
        c, x = self._one_column("cdf"), np.asarray(x, dtype=np.float64)
        return _share(c, np.ldexp(x, -self._scale.rows))

    def quantile(self, q: Any) -> np.ndarray:
        """Where the share of the mixture reaches each `q`; for one column only."""
        c, q = self._one_column("quantile"), np.asarray(q, dtype=np.float64)
        if ((q < 0) | (q > 1) | np.isnan(q)).any():
            raise ParameterError("q must be between 0 and 1")
        each = c.means[:, 0] + _deviations(c) * special.ndtri(q[..., None])  # between the components' own quantiles

        def invert(share: float, low: float, high: float) -> float:
            if not low < high or _share(c, np.asarray(low)) >= share:
                return float(low)
            if _share(c, np.asarray(high)) <= share:  # by rounding, where components all but coincide
                return float(high)
            near = 1e-14 * float(_deviations(c).min())
            return float(
                optimize.brentq(lambda x: float(_share(c, np.asarray(x))) - share, low, high, xtol=near, rtol=1e-14)
            )

        flat = zip(q.ravel(), each.min(axis=-1).ravel(), each.max(axis=-1).ravel(), strict=True)
        return np.ldexp([invert(*item) for item in flat], self._scale.rows).reshape(q.shape)

    # how the parts come together

    def _model(self, summary: Summary | None = None, dtype: Any = np.float64) -> GaussianEM:
        if summary is None:
            return self._fitted_model
        scale = positive_variances(summary.mean, summary.variance)
        return GaussianEM(
            self.n_components,
            as_structure(self.covariance_type),
            as_penalty(self.prior, float(self.reg_covar), self.n_components, summary.mean, summary.variance),
            origin=summary.mean,
            unit=np.sqrt(scale),
            e_step_kind=self.e_step,
            fixed=given.fixed(self.fixed),
            missing=self._allows_missing,
            tol=float(self.tol),
            precision=float(np.finfo(dtype).eps),
        )

    def _start(self, model: GaussianEM, X: Any, sample_weight: Any, rows: int, known: Any) -> Any:
        """Parameters, or what finds them."""
        k, d = self.n_components, len(model.origin)
        if self.warm_start and hasattr(self, "_components"):
            if self._components.means.shape != (k, d) or self._fitted_model.structure != model.structure:
                raise ParameterError(
                    "warm_start cannot go on from a fit with other columns, n_components or covariance_type: "
                    "set warm_start=False"
                )
            return self._components._replace(reseeds=0, events=())
        parts = self._given_parts(model)
        if len(parts) == 3:
            return model.components(parts["weights"], parts["means"], parts["covariances"])
        start = self.init_params if known is None or known.min() < 0 else known  # nothing to seek if all are known
        if isinstance(start, str):
            return Start(start, tuple(parts.items()))
        return model.with_parts(self._from_responsibilities(model, X, sample_weight, rows, start), parts)

    def _given_parts(self, model: GaussianEM) -> dict[str, np.ndarray]:
        """Weights, means and covariances, as far as they are given."""
        k, d = self.n_components, len(model.origin)
        parts = {}
        if self.weights_init is not None:
            parts["weights"] = given.weights(self.weights_init, k)
        elif "weights" in model.fixed:
            parts["weights"] = np.full(k, 1 / k)
        if self.means_init is not None:
            parts["means"] = given.means(self.means_init, k, d)
        if self.precisions_init is not None:
            parts["covariances"] = given.covariances(self.precisions_init, model.form, k, d)
        for name, option in (("means", "means_init"), ("covariances", "precisions_init")):
            if name in model.fixed and name not in parts:
                raise ParameterError(f"fixed={name!r} needs {option}: what is held fixed must be given")
        return parts

    def _publish(self, model: GaussianEM, c: Components, dtype: Any) -> None:
        self._components, self._fitted_model = c, replace(model, start=None)
        k, d = c.means.shape
        precisions = c.factor**2
        if model.form in ("full", "tied"):
            precisions = c.factor @ np.swapaxes(c.factor, -1, -2)
        found = {"weights_": c.weights, "means_": c.means, "covariances_": c.covariances, "precisions_": precisions}
        vars(self).update(in_type({**found, "precisions_cholesky_": c.factor}, dtype))
        free = {"weights": k - 1, "means": k * d, "covariances": model.structure.n_parameters(k, d)}
        self.n_parameters_ = sum(count for name, count in free.items() if name not in model.fixed)

    def _one_column(self, name: str) -> Components:
        check_is_fitted(self)
        if self._components.means.shape[1] != 1:
            raise ParameterError(
                f"{name} is for mixtures of one column; this one has {self._components.means.shape[1]}"
            )
        return self._components

    @staticmethod
    def _rank(model: GaussianEM, rows: int, found: loop.Fit) -> tuple[int, float]:
        return sound_first(model, rows, found.params), found.objective

    def _check_options(self) -> tuple[int, int]:
        if isinstance(self.init_params, str):
            one_of("init_params", self.init_params, METHODS)
        not_negative("reg_covar", self.reg_covar)
        return super()._check_options()


def _share(c: Components, x: np.ndarray) -> np.ndarray:
    """The share of a mixture of one column up to each `x`."""
    return special.ndtr((x[..., None] - c.means[:, 0]) / _deviations(c)) @ c.weights


def _deviations(c: Components) -> np.ndarray:
    """Standard deviations of the components (k,), of one column."""
    return np.broadcast_to(np.sqrt(c.covariances.reshape(-1)), len(c.weights))
