"""`choose_k` for rows with missing values, which the estimator ignores: criteria of the observed values."""

from functools import cached_property

import numpy as np

from coterie.core.arrays import Array
from coterie.distances import pairwise
from coterie.errors import InputError
from coterie.kmeans.metric_of_model import metric_of
from coterie.selection import votes as voting
from coterie.selection.choose_k_series import SeriesRun
from coterie.selection.tendency import Tendency, early_tendency
from coterie.selection.votes import Vote

MAX_ROWS = 4_000  # whose distances are stored
MIN_COMPLETE = 0.5  # share of the rows without missing values, from which on these stand for all rows


class ObservedRun(SeriesRun):
    """Fits to all observed values; distances are those in the columns in which both rows have a value."""

    @cached_property
    def distances(self) -> Array:
        weights = metric_of(self.estimator).get("w")
        rows = self.X if weights is None else self.X * np.sqrt(weights)
        return pairwise(rows, metric="nan_euclidean", n_jobs=self.n_jobs)

    def tendency_test(self) -> Tendency | None:
        """The test of the rows without missing values; None if most rows have some."""
        if "tendency" not in self.results:
            complete = ~np.isnan(self.X).any(axis=1)
            rows, w = self.X[complete], None if self.w is None else self.w[complete]
            ks = [k for k in self.sweep.ks.tolist() if 2 <= k < len(np.unique(rows, axis=0))]
            options = (self.effort.references, w, self.n_jobs, self.rngs["tendency"])
            has_test = ks and complete.mean() >= MIN_COMPLETE
            self.results["tendency"] = early_tendency(rows, ks, *options) if has_test else None
        result: Tendency | None = self.results["tendency"]
        return result

    def _vote(self, name: str, ks: Array) -> Vote:
        """A criterion that some rows, or halves of the rows, have too few values for does not vote, and says so."""
        if name == "tendency" and self.tendency_test() is None:
            return voting.single_choice(name, ks, None, "not computed: most rows have missing values")
        try:
            return super()._vote(name, ks)
        except InputError as error:
            return voting.single_choice(name, ks, None, f"not computed: {error}")
