"""Base class of the estimators that fit one model of centers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from coterie.base import CENTERS, Partitional, callbacks
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.core.protocols import Source
from coterie.errors import ScaleError
from coterie.kmeans import swap_search
from coterie.kmeans.kmeans import check_enough_rows
from coterie.kmeans.lloyd import warn_of_empty_clusters
from coterie.seeding import check_start, starts
from coterie.traces import Traced


class CenterEstimator(Traced, Partitional):
    """Estimator with the options of `KMeans` that its model needs.

    A subclass creates its model in `_model`, names the attribute of its objective, and checks its own options.
    """

    _powers = CENTERS
    _powers_of_options: ClassVar[dict[str, int]] = {"init": 1}
    _distinct = "rows"  # noun of the warning about too few distinct rows
    search: Any = "none"  # for estimators without this option

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers of `X`.

        Parameters
        ----------
        X : array, frame, LazyFrame, path of a file, or Dask array (n, d)
            Rows to cluster. `SphericalKMeans` also accepts sparse matrices.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the rows. A row of weight two has the effect of that row twice.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        n_init, max_iter, callback = self._check_options()
        try:
            source, engine, summary = self._open(X, sample_weight, first=True)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        check_enough_rows(self.n_clusters, summary)
        check_start(self.init, source, self.n_clusters)
        model, rng, store = self._model(summary), as_rng(self.random_state), self._store(source, engine)
        if (kind := self._search_for(source)) != "none":
            n_init = swap_search.EFFORTS[kind].starts if self.n_init == "auto" else n_init
            search_rng = rng if store is None else store.initial_rng(rng)
            model, callback = swap_search.search_start(
                kind, model, source, engine, search_rng, n_init, max_iter, callback
            )
            n_init = 1
        result, labels = self._descend(model, source, engine, n_init, max_iter, callback, rng, store)
        self._learn_columns(X, source)
        self.cluster_centers_, self.labels_ = result.params, labels
        setattr(self, self._objective, result.objective)
        self.history_, self.n_iter_ = np.array(result.history), len(result.history) - 1
        self.converged_ = result.converged
        self._n_features_out = self.n_clusters
        warn_of_empty_clusters(result.stats, f"X has too few distinct {self._distinct} for more")
        return self

    def _search_for(self, source: Source) -> str:
        """Kind of search for these rows: resolve `search='auto'`."""
        if self.search != "auto":
            return self.search
        if not isinstance(self.init, str) or self.init != "k-means++":
            return "none"
        if source.shape[0] <= swap_search.max_rows(swap_search.EFFORTS["auto"], source, self.n_clusters):
            return "auto"
        return "sample" if self.n_init == "auto" else "none"

    @property
    def _params(self) -> np.ndarray:
        return self._in_fitted_units(self.cluster_centers_)

    def _check_options(self) -> tuple[int, int, Any]:
        whole_number("n_clusters", self.n_clusters, 1)
        not_negative("tol", self.tol)
        one_of("search", self.search, ("auto", "none", "fast"))
        callback = callbacks(self.callback, self.verbose)
        return starts(self.init, self.n_init, if_random=10), whole_number("max_iter", self.max_iter, 1), callback
