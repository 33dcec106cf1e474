"""What all mixtures are to their users: the fit, and every answer that follows from posteriors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from coterie.base import Estimator, Summary, callbacks
from coterie.core import loop, online
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.core.scale import Powers, times_power
from coterie.errors import InputError, ScaleError
from coterie.mixture import given
from coterie.mixture.history import Recorder
from coterie.traces import Traced

NUMBERS_OF_ROWS = 10  # exponents of average weights that may be numbers of equal rows


class MixtureAnswers(Traced, DensityMixin, Estimator):
    """An estimator around a model that is an `EM`: answers that follow from posteriors.

    A subclass keeps what was found as `_components` and `_fitted_model`.
    """

    n_components: Any

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the likeliest component of every row."""
        return self.fit(X, y, sample_weight).labels_

    def predict_proba(self, X: Any) -> Any:
        """How likely every row is to come from each component (n, k)."""
        return self._map(X, "probabilities")

    def score_samples(self, X: Any) -> Any:
        """The log density of every row (n,)."""
        found = self._map(X, "log_densities")
        return found - self._log_unit if self._log_unit else found

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean log density of the rows."""
        likelihood, total = self._likelihood(X, sample_weight)
        return likelihood / total

    def uncertainty(self, X: Any) -> Any:
        """1 less the probability of the likeliest component, of every row (n,)."""
        return self._map(X, "uncertainty")

    def entropy(self, X: Any) -> Any:
        """The entropy of every row's posterior, in nats (n,): 0 where its component is certain."""
        return self._map(X, "entropy")

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Rows drawn from the mixture (n_samples, d), and the component of each."""
        whole_number("n_samples", n_samples, 1)
        check_is_fitted(self)
        rng = as_rng(self.random_state)
        weights = self._components.weights
        counts = rng.multinomial(n_samples, weights / weights.sum())
        rows = times_power(self._scale.rows, self._model().draw(self._components, counts, rng))
        return rows.astype(self.weights_.dtype), np.repeat(np.arange(len(counts)), counts)

    def _from_responsibilities(self, model: Any, X: Any, sample_weight: Any, rows: int, start: Any) -> Any:
        """Parameters of one M-step from labels (n,) or responsibilities (n, k)."""
        resp = given.responsibilities(start, rows, self.n_components)
        soft, engine, summary = self._open(X, sample_weight, first=True, y=resp)
        soft, _, _ = self._with_unit_weights(soft, summary)
        nowhere = model.nowhere()
        return model.m_step(nowhere, engine.sum(partial(model.given, nowhere), soft))

    def _with_unit_weights(self, source: Any, summary: Summary) -> tuple[Any, Summary, int]:
        """The rows with the weights that the model sees: by default their own."""
        return source, summary, 0

    @property
    def _params(self) -> Any:
        return self._components

    def _likelihood(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        """Log-likelihood and weight of the rows."""
        _, stats = self._sum(X, sample_weight)
        return self._in_units(stats.log_likelihood, stats.weight, sample_weight)

    # rows and weights out of range

    _powers_of_outputs: ClassVar[dict[str, int]] = {"impute": 1}

    @property
    def _log_unit(self) -> float:
        """What a log density loses by the unit of the rows: that of a unit cube."""
        return self.n_features_in_ * self._scale.rows * float(np.log(2.0)) if self._scale.rows else 0.0

    def _in_units(self, likelihood: Any, weight: Any, sample_weight: Any) -> tuple[float, float]:
        """A sum of log densities, and the weight of the rows, in the units of rows and weights."""
        exponent, total = self._scale_of(sample_weight).weights, float(np.sum(weight))
        return float(np.ldexp(likelihood - total * self._log_unit, exponent)), float(np.ldexp(total, exponent))

    def _fit_rescaled(self, error: ScaleError, X: Any, sample_weight: Any, **more: Any) -> Self:
        """Densities have the inverse of the unit of the rows; sums over rows grow with the weights."""
        own_units = (
            self._allows_missing
            or not self._has_lengths
            or not (getattr(self, "prior", None) is None or self.prior == "default")
        )
        if (error.rows and own_units) or (error.weights and self._counts_rows):
            raise error
        super()._fit_rescaled(error, X, sample_weight, **more)
        self._rescale_sums(sample_weight)
        return self

    def _rescale_sums(self, sample_weight: Any) -> None:
        """Sums of log densities that a fit found of rows and weights divided by their scale, in their units."""
        raise NotImplementedError

    _has_lengths = False  # whether all results are known for rows in another unit

    @property
    def _counts_rows(self) -> bool:
        """Whether a prior makes weights numbers of rows, that cannot be divided."""
        flat = np.all(np.asarray(getattr(self, "concentration", 1.0)) == 1.0)
        return getattr(self, "prior", None) is not None or not flat


class MixtureEstimator(MixtureAnswers):
    """One that is fitted by EM, and has parameters to count.

    A subclass builds its model in `_model`, finds what it starts from in `_start`, and shows what was found in
    `_publish`, which keeps it as `_components` and `_fitted_model`.
    """

    n_components: Any
    e_step: str
    n_init: int
    tol: float
    max_iter: int
    accelerate: bool
    missing: str
    callback: Any
    verbose: Any

    # fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, known_labels: Any = None) -> Self:
        """Find the mixture of `X`.

        Parameters
        ----------
        X : array, frame, LazyFrame, path of a file, or Dask array (n, d)
            The rows.
        y : Ignored
            For scikit-learn's pipelines and searches, which pass it.
        sample_weight : array (n,), optional
            How much each row counts; a row of weight two is that row twice.
        known_labels : array (n,) of whole numbers, optional
            The component of each row, from 0 to `n_components` - 1, where it is known, and -1 where it is not. Known
            rows keep their component; if all are known, the fit is the closed-form estimate. With one component there
            is nothing to know, and they are ignored. Pipelines pass them after ``set_fit_request(known_labels=True)``.
        """
        n_init, max_iter = self._check_options()
        known = given.known_labels(known_labels, self.n_components)
        try:
            source, engine, summary = self._open(X, sample_weight, first=True, y=known)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight, known_labels=known_labels)
        source, summary, exponent = self._with_unit_weights(source, summary)
        if summary.rows < self.n_components:
            raise InputError(
                f"n_samples={summary.rows} rows (of weight above 0) cannot make n_components={self.n_components}: "
                "ask for fewer"
            )
        model = self._model(summary, source.dtype)
        model = replace(model, start=self._start(model, X, sample_weight, source.shape[0], known))
        recorder = Recorder(model)
        watch = callbacks(self.callback, self.verbose, recorder)
        key = partial(self._rank, model, summary.rows)
        found, labels = self._descend(
            model, source, engine, n_init, max_iter, watch, recorder=recorder, accelerate=bool(self.accelerate), key=key
        )
        self._learn_columns(X, source)
        self._publish(model, found.params, source.dtype)
        history = recorder.history(found.run)
        self.labels_, self.history_ = labels, history.rescaled(0.0, exponent)
        self.log_likelihood_ = float(np.ldexp(found.stats.log_likelihood, exponent))
        self.lower_bound_ = float(found.stats.bound) / summary.weight
        self.lower_bounds_ = history.lower_bound[history.step == "E"][1:] / summary.weight
        self.n_iter_, self.converged_ = found.passes - 1, found.converged
        self._state, self._batches = online.State(found.params, found.stats), 1
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, *, known_labels: Any = None) -> Any:
        """Fit, and return the likeliest component of every row."""
        return self.fit(X, y, sample_weight, known_labels=known_labels).labels_

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, known_labels: Any = None) -> Self:
        """One step of incremental EM with `X` as the batch [4]_; the first batch also starts the mixture.

        Old batches fade: the t-th counts for (t + 1)^-0.6 of all. Arguments are those of `fit`.

        .. [4] O. Cappé & E. Moulines (2009), On-line expectation-maximization algorithm for latent data models,
           J. Royal Statistical Society B 71, 593-613. https://doi.org/10.1111/j.1467-9868.2009.00698.x
        """
        if not hasattr(self, "_components"):
            return self.fit(X, y, sample_weight, known_labels=known_labels)
        self._check_options()
        self._reject_rescaled("partial_fit")
        known = given.known_labels(known_labels, self.n_components)
        source, _, summary = self._open(X, sample_weight, first=False, y=known)
        self._batches += 1
        share = (self._batches + 1.0) ** -0.6
        decay = (1 - share) / share * summary.weight / float(self._state.seen.weight.sum())
        self._state, stats = online.step(self._fitted_model, self._state, source.pick(slice(None)), decay)
        self._publish(self._fitted_model, self._state.params, source.dtype)
        self.labels_ = self.predict(X)
        self.log_likelihood_ = float(stats.log_likelihood)
        self.lower_bound_, self.n_iter_, self.converged_ = float(stats.bound) / summary.weight, self._batches, False
        return self

    # criteria

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayes' information criterion, -2 log L + p log n: lower is better (mclust's has the other sign)."""
        likelihood, total = self._likelihood(X, sample_weight)
        return -2 * likelihood + self.n_parameters_ * float(np.log(total))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion, -2 log L + 2 p: lower is better."""
        return -2 * self._likelihood(X, sample_weight)[0] + 2 * self.n_parameters_

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Integrated complete likelihood: BIC with each row in its likeliest component, so that overlap costs."""
        source, engine, model = self._open_fitted(X, sample_weight)
        hard = replace(model, e_step_kind="hard")
        stats, _ = engine.scan(partial(hard.e_step, self._params), source, None)
        bound, total = self._in_units(stats.bound, stats.weight, sample_weight)
        return -2 * bound + self.n_parameters_ * float(np.log(total))

    _powers: ClassVar[dict[str, Powers]] = {}

    def _rescale_sums(self, sample_weight: Any) -> None:
        total = float(self._state.seen.weight.sum())
        self.log_likelihood_ = self._in_units(self.log_likelihood_, total, sample_weight)[0]
        self.lower_bound_ -= self._log_unit
        self.lower_bounds_ -= self._log_unit
        self.history_ = self.history_.rescaled(total * self._log_unit, self._scale.weights)

    def _with_unit_weights(self, source: Any, summary: Summary) -> tuple[Any, Summary, int]:
        """Weights divided by a power of two so that rows weigh 1 to 2 on average, and its exponent.

        The likeliest mixture does not depend on it, but what a fit compares with 1 or with rounding would. Weights of
        about 1 are left alone, because they may be numbers of equal rows: a row of weight two is the row twice.
        """
        exponent = int(np.frexp(summary.weight / summary.rows)[1]) - 1
        if source.w is None or self._counts_rows or abs(exponent) <= NUMBERS_OF_ROWS:
            return source, summary, 0
        source = replace(source, w=times_power(-exponent, source.w))
        return source, summary._replace(weight=float(np.ldexp(summary.weight, -exponent))), exponent

    # what a subclass says

    def _model(self, summary: Summary | None = None, dtype: Any = np.float64) -> Any:
        """The model for rows of that summary and type; the one that was fitted, without."""
        raise NotImplementedError

    def _start(self, model: Any, X: Any, sample_weight: Any, rows: int, known: Any) -> Any:
        """Parameters, or a function of (model, source, engine, rng) that finds them."""
        raise NotImplementedError

    def _publish(self, model: Any, params: Any, dtype: Any) -> None:
        raise NotImplementedError

    @staticmethod
    def _rank(model: Any, rows: int, found: loop.Fit) -> Any:
        """What fits are ordered by, the best first."""
        return found.objective

    # how the parts come together

    @property
    def _allows_missing(self) -> bool:
        return self.missing == "ignore"

    def _check_options(self) -> tuple[int, int]:
        whole_number("n_components", self.n_components, 1)
        one_of("e_step", self.e_step, ("soft", "hard", "stochastic"))
        one_of("missing", self.missing, ("error", "ignore"))
        not_negative("tol", self.tol)
        callbacks(self.callback, self.verbose)
        return whole_number("n_init", self.n_init, 1), whole_number("max_iter", self.max_iter, 0)
