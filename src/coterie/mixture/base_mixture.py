"""Base classes of mixture estimators: the fit by EM, and methods that follow from posterior probabilities."""

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from coterie.base import Estimator, Summary, callbacks
from coterie.core import loop, online
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.core.attachments import detach
from coterie.core.in_memory import is_in_memory
from coterie.core.protocols import Chunk
from coterie.core.scale import Powers, Scale, times_power
from coterie.core.search import kind_of
from coterie.errors import InputError, ParameterError, ScaleError
from coterie.mixture import parameter_checks
from coterie.mixture.degeneracy import degeneracy_of_fit
from coterie.mixture.em import FAR_ROW
from coterie.mixture.gaussian_em import GaussianEM
from coterie.mixture.history import LikelihoodRecorder, Recorder
from coterie.mixture.starts import METHODS, Start
from coterie.traces import Traced


@dataclass(eq=False, repr=False)
class BaseMixture(Traced, DensityMixin, Estimator):
    """The options and the fit of all mixtures, and methods that follow from posterior probabilities.

    A subclass builds its model, an `EM`, in `_new_model`, and sets fitted attributes in `_publish` and `_store_result`.
    Parameters are stored as `_components`, the model as `_fitted_model`.
    """

    n_components: Any = 1
    _: KW_ONLY
    init_params: Any = "auto"
    search: str = "auto"
    n_init: int = 1
    tol: float = 1e-3
    max_iter: int = 1000
    accelerate: bool = False
    warm_start: bool = False
    device: str = "auto"
    engine: Any = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    callback: Any = None
    verbose: int = 0
    checkpoint: Any = None
    history_: Any = field(init=False)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, known_labels: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array, frame, LazyFrame, path of a file, or Dask array (n, d)
            The rows.
        y : Ignored
            Present for compatibility with scikit-learn's pipelines and searches.
        sample_weight : array (n,) or None, default=None
            Row weights. A row of weight 2 is equivalent to that row twice.
        known_labels : array (n,) of whole numbers or None, default=None
            The component of each row, from 0 to `n_components` - 1, or -1 if it is unknown. Rows with a known label
            keep their component. If all are known, the fit is the closed-form estimate. They are ignored if there is
            only one component. Pipelines pass them after ``set_fit_request(known_labels=True)``.

        Returns
        -------
        self
        """
        n_init, max_iter = self._check_options()
        known = parameter_checks.known_labels(self._as_array(known_labels), self.n_components)
        X = self._read(X)
        try:
            source, engine, summary = self._open(X, sample_weight, first=True, y=known)
        except ScaleError as error:
            options = {} if known_labels is None else {"known_labels": known_labels}
            return self._fit_rescaled(error, X, sample_weight, **options)
        self._check_rows(summary.rows)
        model = self._model(summary, source.dtype, source, engine)
        start = self._start(model, X, sample_weight, source.shape[0], known)
        model = replace(model, start=start, is_extrapolated=self._extrapolates or kind_of(self.search) == "thorough")
        recorder = self._recorder_type(model)
        callback = callbacks(self.callback, self.verbose, recorder)
        key = partial(self._rank, model, summary.rows)
        result, labels = self._descend(
            model, source, engine, n_init, max_iter, callback, recorder=recorder, accelerate=self.accelerate, key=key
        )
        self._learn_columns(X, source)
        self._publish(model, result.params, source.dtype)
        self.labels_, self.n_iter_, self.converged_ = labels, result.passes - 1, result.converged
        self._store_result(result, recorder.history(result.run), summary.weight)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the mixture, and return the most probable component of each row (n,)."""
        return self.fit(X, y, sample_weight).labels_

    def predict_proba(self, X: Any) -> Any:
        """Return the posterior probability of each component for each row (n, k)."""
        return self._map(X, "probabilities")

    def score_samples(self, X: Any) -> Any:
        """Return the log density of each row (n,)."""
        log_densities = self._map(X, "log_densities")
        return log_densities - self._n_lengths(X) * self._log_length if self._log_length else log_densities

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log density of the rows, weighted by `sample_weight`."""
        likelihood, total = self._likelihood(X, sample_weight)
        return likelihood / total

    def uncertainty(self, X: Any) -> Any:
        """Return 1 minus the probability of the most probable component, for each row (n,)."""
        return self._map(X, "uncertainty")

    def entropy(self, X: Any) -> Any:
        """Return the entropy of the posterior of each row in nats (n,); 0 if its component is certain."""
        return self._map(X, "entropy")

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Sample rows from the mixture (n_samples, d), and return them with their components (n_samples,)."""
        check_is_fitted(self)
        whole_number("n_samples", n_samples, 1)
        rng = as_rng(self.random_state)
        weights = self._components.weights
        counts = rng.multinomial(n_samples, weights / weights.sum())
        rows = self._model().draw(self._components, counts, rng)
        if self._scale.rows:
            lengths = self._length_columns
            rows[:, lengths] = times_power(self._scale.rows, rows[:, lengths])
        return rows.astype(self.weights_.dtype), np.repeat(np.arange(len(counts)), counts)

    def _from_responsibilities(self, model: Any, X: Any, sample_weight: Any, rows: int, start: Any) -> Any:
        """The parameters of one M-step with labels (n,) or responsibilities (n, k)."""
        resp = parameter_checks.responsibilities(start, rows, self.n_components)
        soft, engine, _ = self._open(X, sample_weight, first=True, y=resp)
        reference = model.reference()
        return model.m_step(reference, engine.sum(partial(model.stats_for, reference), soft))

    @property
    def _params(self) -> Any:
        return self._components

    def _likelihood(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        """The log-likelihood and the total weight of the rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            _, stats = self._sum(X, sample_weight)
        if not np.isfinite(stats.log_likelihood):
            raise InputError(FAR_ROW)
        return self._in_units(stats.log_likelihood, stats.weight, X, sample_weight)

    # rows and weights whose scale is out of range

    _powers_of_outputs: ClassVar[dict[str, int]] = {"impute": 1}

    @property
    def _length_columns(self) -> Any:
        """The columns whose values have a unit, so that densities have its inverse."""
        return slice(None)

    @property
    def _log_length(self) -> float:
        """Logarithm of the unit of the scaled rows: the log density of a value with a unit is smaller by it."""
        return self._scale.rows * float(np.log(2.0))

    def _n_lengths(self, X: Any) -> Any:
        """The number of values with a unit in each row that are not missing (n,); one number if none can be missing."""
        if not self._allows_missing:
            return np.arange(self.n_features_in_)[self._length_columns].size
        source, engine, _ = self._open(X, None, first=False)
        return source.join(engine.map(partial(_count_lengths, self._length_columns), source))

    def _log_volume(self, total: float, X: Any, sample_weight: Any) -> float:
        """Weighted sum of the logarithms of units over all rows; `total` is their weight."""
        if not self._log_length:
            return 0.0
        if not self._allows_missing:
            return total * self._n_lengths(X) * self._log_length
        source, engine, _ = self._open(X, sample_weight, first=False)
        return float(engine.sum(partial(_sum_lengths, self._length_columns), source)) * self._log_length

    def _in_units(self, likelihood: Any, weight: Any, X: Any, sample_weight: Any) -> tuple[float, float]:
        """Convert a sum of log densities and the weight of the rows to the units of `X` and `sample_weight`."""
        exponent, total = self._scale_of(sample_weight).weights, float(np.sum(weight))
        likelihood = likelihood - self._log_volume(total, X, sample_weight)
        return float(np.ldexp(likelihood, exponent)), float(np.ldexp(total, exponent))

    def _check_rescalable(self, error: ScaleError) -> None:
        super()._check_rescalable(error)
        prior = getattr(self, "prior", None)
        has_fixed_unit = not self._has_lengths or not (prior is None or prior == "default")
        if (error.rows and has_fixed_unit) or (error.weights and self._counts_rows):
            raise error

    def _take_fit(self, inner: Self, X: Any, sample_weight: Any, scale: Scale) -> Self:
        """Densities scale with the inverse of the rows; sums over rows scale with the weights."""
        super()._take_fit(inner, X, sample_weight, scale)
        self._rescale_sums(X, sample_weight)
        return self

    def _rescale_sums(self, X: Any, sample_weight: Any) -> None:
        """Convert the sums of log densities of a fit to scaled rows and weights to the original units."""
        raise NotImplementedError

    @property
    def _has_lengths(self) -> bool:
        """Whether all results can be converted to another unit of the rows."""
        return False

    @property
    def _counts_rows(self) -> bool:
        """Whether weights are compared with the weight of a prior, so that they cannot be rescaled."""
        is_flat = np.all(np.asarray(getattr(self, "concentration", 1.0)) == 1.0)
        return getattr(self, "prior", None) is not None or not is_flat

    # defined by subclasses

    _recorder_type: ClassVar[type[Recorder]] = LikelihoodRecorder
    _init_methods: ClassVar[tuple[str, ...]] = METHODS
    _extrapolates: ClassVar[bool] = False  # whether `tol` is always compared with the increase still to come

    def _model(
        self, summary: Summary | None = None, dtype: Any = np.float64, source: Any = None, engine: Any = None
    ) -> Any:
        """The fitted model; with a summary, a new model for rows with this summary and dtype."""
        return self._fitted_model if summary is None else self._new_model(summary, dtype, source, engine)

    def _new_model(self, summary: Summary, dtype: Any, source: Any, engine: Any) -> Any:
        raise NotImplementedError

    def _start(self, model: Any, X: Any, sample_weight: Any, rows: int, known: Any) -> Any:
        """Initial parameters, or a function of (model, source, engine, rng) that returns them."""
        if self._is_warm:
            return self._warm_start(model)
        start = self.init_params if known is None or known.min() < 0 else known  # if all are known, there is no search
        if isinstance(start, str):
            return Start(start, self.search)
        return self._from_responsibilities(model, X, sample_weight, rows, start)

    def _warm_start(self, model: Any) -> Any:
        """The parameters of the previous fit; an error if it has other components or columns."""
        before, shape = self._fitted_model, (self.n_components, len(model.origin))
        is_same = self._components.means.shape == shape and before.structure == model.structure
        self._check_warm_start(is_same, "other columns, n_components or covariance_type")
        return self._components

    def _publish(self, model: Any, params: Any, dtype: Any) -> None:
        """Set the fitted attributes that depend on the parameters."""
        raise NotImplementedError

    def _store_result(self, result: loop.Fit, history: Any, total: float) -> None:
        """Set the other fitted attributes; `total` is the sum of the weights."""
        raise NotImplementedError

    @staticmethod
    def _rank(model: Any, rows: int, result: loop.Fit) -> Any:
        """Sort key of restarts, the best first: Gaussian components on hardly any rows come last."""
        is_gaussian = type(model) is GaussianEM  # not a posterior, whose prior excludes such components
        return (degeneracy_of_fit(model, rows, result.params), result.objective) if is_gaussian else result.objective

    # checks

    def _check_rows(self, rows: int) -> None:
        if rows < self.n_components:
            raise InputError(
                f"n_components={self.n_components} is larger than n_samples={rows}, the number of rows with a weight "
                f"above 0: use n_components <= {rows}"
            )

    def _check_options(self) -> tuple[int, int]:
        """Check the options of all mixtures; return `n_init` and `max_iter`."""
        whole_number("n_components", self.n_components, 1)
        kind_of(self.search)
        if isinstance(self.init_params, str):
            one_of("init_params", self.init_params, self._init_methods)
        not_negative("tol", self.tol)
        callbacks(self.callback, self.verbose)
        return whole_number("n_init", self.n_init, 1), whole_number("max_iter", self.max_iter, 0)

    @property
    def _is_warm(self) -> bool:
        return bool(self.warm_start) and "_components" in vars(self)

    @staticmethod
    def _check_warm_start(is_same: bool, names: str) -> None:
        if not is_same:
            raise ParameterError(f"warm_start=True, but the previous fit has {names}: set warm_start=False")


@dataclass(eq=False, repr=False, kw_only=True)
class MixtureEstimator(BaseMixture):
    """A mixture that is fitted by EM, with information criteria."""

    e_step: str = "soft"
    missing: str = "error"
    _state: online.State = field(init=False)  # parameters and statistics of all batches
    _batches: int = field(init=False)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, *, known_labels: Any = None) -> Any:
        """Fit the mixture, and return the most probable component of each row (n,)."""
        return self.fit(X, y, sample_weight, known_labels=known_labels).labels_

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, known_labels: Any = None) -> Self:
        """Update the mixture with one step of incremental EM [4]_; `X` is the batch. The first batch is fitted.

        If `X` is an iterator of batches, an Arrow stream or files that are read in every pass, each batch is one step.
        Older batches lose influence: batch t gets the share (t + 1)^-0.6 of the total weight. Parameters are those of
        `fit`.

        .. [4] O. Cappé & E. Moulines (2009), On-line expectation-maximization algorithm for latent data models,
           J. Royal Statistical Society B 71, 593-613. https://doi.org/10.1111/j.1467-9868.2009.00698.x
        """
        if self._is_stream(X):
            return self._partial_fit_batches(X, sample_weight, known_labels=known_labels)
        if "_components" not in vars(self):
            return self.fit(X, y, sample_weight, known_labels=known_labels)
        self._check_options()
        X = self._read(X)
        self._reject_rescaled("partial_fit")
        known = parameter_checks.known_labels(self._as_array(known_labels), self.n_components)
        source, engine, summary = self._open(X, sample_weight, first=False, y=known)
        detach(self, "history_", "lower_bounds_")  # of an earlier `fit`
        self._batches += 1
        share = (self._batches + 1.0) ** -0.6
        decay = (1 - share) / share * summary.weight / float(self._state.seen.weight.sum())
        model = self._fitted_model
        if is_in_memory(source):
            self._state, stats = online.step(model, self._state, source.gather(slice(None)), decay)
        else:
            stats, _ = engine.scan(partial(model.e_step, self._state.params), source, None)
            self._state = online.add(model, self._state, stats, decay)
        self._publish(model, self._state.params, source.dtype)
        self.labels_ = self.predict(X)
        self.log_likelihood_ = float(stats.log_likelihood)
        self.lower_bound_, self.n_iter_, self.converged_ = float(stats.bound) / summary.weight, self._batches, False
        return self

    # criteria

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion, -2 log L + p log n: lower is better (mclust negates it)."""
        likelihood, total = self._likelihood(X, sample_weight)
        return -2 * likelihood + self.n_parameters_ * float(np.log(total))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Return Akaike's information criterion, -2 log L + 2 p: lower is better."""
        return -2 * self._likelihood(X, sample_weight)[0] + 2 * self.n_parameters_

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Return the integrated completed likelihood: BIC with hard assignments, which penalises overlap."""
        source, engine, model = self._open_fitted(X, sample_weight)
        hard = replace(model, e_step_kind="hard")
        stats, _ = engine.scan(partial(hard.e_step, self._params), source, None)
        bound, total = self._in_units(stats.bound, stats.weight, X, sample_weight)
        return -2 * bound + self.n_parameters_ * float(np.log(total))

    _powers: ClassVar[dict[str, Powers]] = {}

    def _store_result(self, result: loop.Fit, history: Any, total: float) -> None:
        self.history_ = history
        self.log_likelihood_ = float(result.stats.log_likelihood)
        self.lower_bound_ = float(result.stats.bound) / total
        self.lower_bounds_ = history.lower_bound[history.step == "E"][1:] / total
        self._state, self._batches = online.State(result.params, result.stats), 1

    def _rescale_sums(self, X: Any, sample_weight: Any) -> None:
        total = float(self._state.seen.weight.sum())
        log_volume, exponent = self._log_volume(total, X, sample_weight), self._scale.weights
        self.log_likelihood_ = float(np.ldexp(self.log_likelihood_ - log_volume, exponent))
        self.lower_bound_ -= log_volume / total
        self.lower_bounds_ -= log_volume / total
        self.history_ = self.history_.rescaled(log_volume, exponent)

    @property
    def _allows_missing(self) -> bool:
        return self.missing == "ignore"

    def _check_options(self) -> tuple[int, int]:
        one_of("e_step", self.e_step, ("soft", "hard", "stochastic"))
        one_of("missing", self.missing, ("error", "ignore"))
        return super()._check_options()


def _count_lengths(columns: Any, chunk: Chunk) -> np.ndarray:
    """The number of values of each row in these columns that are not missing (n,)."""
    return np.count_nonzero(~np.isnan(chunk.X[:, columns]), axis=1)


def _sum_lengths(columns: Any, chunk: Chunk) -> float:
    return float(chunk.weights @ _count_lengths(columns, chunk))
