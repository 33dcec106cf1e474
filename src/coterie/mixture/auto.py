"""Fits that find the number of components: what `Mixture` does for ``n_components="auto"``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from coterie.base import callbacks
from coterie.core import loop
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.errors import ParameterError
from coterie.mixture import dirichlet
from coterie.mixture.answers import MixtureEstimator
from coterie.mixture.variational import BoundRecorder


class FindsComponents(MixtureEstimator):
    """One of any family, `_learned` once rows are open: the fit of its Dirichlet process, and what it shows of it."""

    concentration: Any
    _learned: Any

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
        how = {"concentration": float(self.concentration), "tol": float(self.tol)}
        model, moves = dirichlet.search(family, source, rng, **how)
        for move in moves if self.verbose else ():
            print(f"{move.what}: {move.n_components} components, lower bound {move.lower_bound:.6g}")
        recorder = BoundRecorder(model)
        watch = callbacks(self.callback, self.verbose, recorder)
        found, labels = self._descend(model, source, engine, 1, max_iter, watch, rng, store, recorder)
        self._learn_columns(X, source)
        self._publish_process(model, found, source.dtype)
        self.labels_, self.history_, self.moves_ = labels, recorder.history(0), moves
        self.lower_bounds_ = self.history_.lower_bound[1:]
        return self

    def _publish_process(self, model: dirichlet.DirichletProcess, found: loop.Fit, dtype: Any) -> None:
        c, family = found.params, model.family.family
        self._components, self._fitted_model, self.family_ = c, replace(model, start=None), family
        self.n_components_ = len(c.counts)
        self.counts_, self.weights_ = np.asarray(c.counts), c.weights.astype(dtype)
        self.components_ = family.estimate(c.parts)
        self.n_parameters_ = self.n_components_ - 1 + family.n_parameters(self.n_components_, self.components_)
        self.lower_bound_, self.log_likelihood_ = -float(found.objective), float(found.stats.log_likelihood)
        self.n_iter_, self.converged_ = found.passes - 1, found.converged

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
