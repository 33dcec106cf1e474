"""Base class of the estimators that fit one model of centers."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from coterie.base import CENTERS, Partitional, Summary, callbacks
from coterie.core import loop
from coterie.core.arguments import as_rng, not_negative, whole_number
from coterie.core.checkpoint import Store
from coterie.core.progress import Callback, Progress, silent
from coterie.core.protocols import Engine, Source
from coterie.core.search import Effort, kind_of
from coterie.errors import InputError, ScaleError
from coterie.kmeans.center_search import EFFORTS, Start, applies, search_start
from coterie.kmeans.lloyd import warn_of_empty_clusters
from coterie.seeding import check_start, starts
from coterie.traces import Traced


@dataclass(eq=False, repr=False, kw_only=True)
class CenterEstimator(Traced, Partitional):
    """Estimator with the options of `KMeans` that its model needs.

    A subclass creates its model in `_model`, names the attribute of its objective, and checks its other options.
    """

    checkpoint: Any = None

    _powers = CENTERS
    _powers_of_options: ClassVar[dict[str, int]] = {"init": 1}
    _remedy = "X has too few distinct rows for more"  # end of the warning about empty clusters
    _n_frozen = 0  # number of centers that do not move
    search = "none"  # for estimators without this option

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers of `X`.

        Parameters
        ----------
        X : array, sparse matrix, frame, LazyFrame, path of a file, or Dask array (n, d)
            Rows to cluster. Only `KMeans`, `SphericalKMeans` and `BalancedKMeans` accept sparse matrices, and
            `BalancedKMeans` no Dask arrays.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the rows. A row of weight two has the effect of that row twice, except in the sizes of
            `BalancedKMeans`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        n_init, max_iter, callback = self._check_options()
        X = self._read(X)
        try:
            source, engine, summary = self._open(X, sample_weight, first=True)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        model, rng = self._fit_model(source, summary), as_rng(self.random_state)
        store = self._store(source, engine)
        with self._released_on_error(engine, source):
            start = self._search(model, source, engine, summary, rng, n_init, max_iter, callback, store)
        self._path = start.path
        try:
            result, labels = self._descend(
                start.model, source, engine, start.n_init, start.max_iter, start.callback, rng, store
            )
        finally:
            del self._path
        result = replace(result, history=(*(step.objective for step in start.path), *result.history))
        self._store_result(start.model, result, labels, source, X, sample_weight)
        warn_of_empty_clusters(result.stats, self._remedy, self._n_frozen)
        return self

    def _fit_model(self, source: Source, summary: Summary) -> Any:
        """The model of a fit. Options that depend on the rows are checked before any work."""
        check_enough_rows(self.n_clusters, summary)
        check_start(self.init, source, self.n_clusters)
        return self._model(summary)

    def _search(
        self, model: Any, source: Source, engine: Engine, summary: Summary, rng: np.random.Generator, n_init: int,
        max_iter: int, callback: Callback, store: Store | None,
    ) -> Start:  # fmt: skip
        """Search for initial centers."""
        kind = self._search_for(model, source)
        if kind == "none":
            return Start(model, n_init, max_iter, callback)
        rng, starts = rng if store is None else store.initial_rng(rng), None if self.n_init == "auto" else n_init
        start = search_start(self._effort(kind), model, source, engine, summary, rng, starts, max_iter, callback, store)
        return start or Start(model, n_init, max_iter, callback)

    def _effort(self, kind: str) -> Effort:
        """Length of a search."""
        return EFFORTS[kind]

    def _search_for(self, model: Any, source: Source) -> str:
        """The search for these rows: 'auto' is 'none' where it does not apply."""
        kind = kind_of(self.search)
        is_default = self.n_init == "auto" and isinstance(self.init, str) and self.init in ("auto", "k-means++")
        return kind if kind != "auto" or (is_default and applies(model, source)) else "none"

    def _with_recorder(
        self, callback: Any, model: Any, source: Source, engine: Engine, key: Any = None, start: Any = None
    ) -> Any:
        """As in `Estimator`; the callback first gets the iterations of the search from which the fit continues."""
        watch, path = super()._with_recorder(callback, model, source, engine, key, start), vars(self).get("_path", ())
        if not path or watch is silent:
            return watch
        stopped = sum(bool(watch(step)) for step in path) > 0  # a sum, so that all steps are recorded

        def continued(progress: Progress) -> bool:
            return bool(watch(replace(progress, done=progress.done + len(path)))) or stopped

        return continued

    def _store_result(self, model: Any, result: loop.Fit, labels: Any, source: Any, X: Any, sample_weight: Any) -> None:
        self._learn_columns(X, source)
        self.cluster_centers_, self.labels_ = result.params, labels
        setattr(self, self._objective, result.objective)
        self.history_, self.n_iter_ = np.array(result.history), len(result.history) - 1
        self.converged_ = result.converged
        self._n_features_out = self.n_clusters

    @property
    def _params(self) -> np.ndarray:
        return self._in_fitted_units(self.cluster_centers_)

    def _check_options(self) -> tuple[int, int, Any]:
        kind_of(self.search)
        return checked_options(self)


def checked_options(estimator: Partitional, if_random: int = 10) -> tuple[int, int, Callback]:
    """`n_init`, `max_iter` and the callback of an estimator, after a check of the options that all have.

    `n_init='auto'` is `if_random` for random initialisations.
    """
    whole_number("n_clusters", estimator.n_clusters, 1)
    not_negative("tol", estimator.tol)
    callback = callbacks(estimator.callback, estimator.verbose)
    n_init = starts(estimator.init, estimator.n_init, if_random)
    return n_init, whole_number("max_iter", estimator.max_iter, 1), callback


def check_enough_rows(k: int, summary: Summary, frozen: int = 0) -> None:
    """Raise an error if there are fewer rows of positive weight than clusters that need rows."""
    if summary.rows < k - frozen:
        raise InputError(
            f"n_samples={summary.rows} rows (of weight above 0) are fewer than n_clusters={k}"
            f"{f' minus {frozen} frozen centers' if frozen else ''}: use n_clusters <= {summary.rows + frozen}"
        )
