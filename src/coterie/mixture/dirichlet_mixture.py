"""Base class of `Mixture`: the fit with ``n_components="auto"``, by a Dirichlet process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from coterie.base import callbacks
from coterie.core import loop
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.errors import ParameterError
from coterie.mixture import dirichlet_process
from coterie.mixture.base_mixture import MixtureEstimator
from coterie.mixture.history import BoundRecorder


class DirichletMixture(MixtureEstimator):
    """A mixture of any family whose number of components can be estimated by a Dirichlet process."""

    concentration: Any
    _learned: Any  # the family with properties of the columns, after the rows were opened

    @property
    def _auto(self) -> bool:
        return isinstance(self.n_components, str)

    def _fit_auto(self, X: Any, sample_weight: Any) -> Self:
        max_iter = self._check_auto()
        source, engine, summary = self._open(X, sample_weight, first=True)
        family = self._learned.in_units(1.0, summary.mean, summary.variance)
        rng, store = as_rng(self.random_state), self._store(source, engine)
        if store is not None:
            rng = store.initial_rng(rng)
        options = {"concentration": float(self.concentration), "tol": float(self.tol)}
        model, moves = dirichlet_process.search(family, source, rng, **options)
        for move in moves if self.verbose else ():
            print(f"{move.what}: {move.n_components} components, lower bound {move.lower_bound:.6g}")
        recorder = BoundRecorder(model)
        callback = callbacks(self.callback, self.verbose, recorder)
        result, labels = self._descend(model, source, engine, 1, max_iter, callback, rng, store, recorder)
        self._learn_columns(X, source)
        self._publish_process(model, result, source.dtype)
        self.labels_, self.history_, self.moves_ = labels, recorder.history(0), moves
        self.lower_bounds_ = self.history_.lower_bound[1:]
        return self

    def _publish_process(self, model: dirichlet_process.DirichletProcess, result: loop.Fit, dtype: Any) -> None:
        c, family = result.params, model.family.family
        self._components, self._fitted_model, self.family_ = c, replace(model, start=None), family
        self.n_components_ = len(c.counts)
        self.counts_, self.weights_ = np.asarray(c.counts), c.weights.astype(dtype)
        self.components_ = family.estimate(c.parts)
        self.n_parameters_ = self.n_components_ - 1 + family.n_parameters(self.n_components_, self.components_)
        self.lower_bound_, self.log_likelihood_ = -float(result.objective), float(result.stats.log_likelihood)
        self.n_iter_, self.converged_ = result.passes - 1, result.converged

    def _check_auto(self) -> int:
        if self.n_components != "auto":
            raise ParameterError(
                f"n_components must be a whole number of at least 1 or 'auto'; got {self.n_components!r}"
            )
        one_of("missing", self.missing, ("error", "ignore"))
        if self.e_step != "soft":
            raise ParameterError(f"n_components='auto' needs e_step='soft'; got {self.e_step!r}")
        if np.ndim(self.concentration) != 0 or not_negative("concentration", self.concentration) == 0:
            raise ParameterError(
                f"n_components='auto' needs a concentration that is a number above 0; got {self.concentration!r}"
            )
        not_negative("tol", self.tol)
        callbacks(self.callback, self.verbose)
        return whole_number("max_iter", self.max_iter, 0)
