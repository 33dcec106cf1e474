"""The history of EM: log-likelihood and lower bound after each E-step and M-step."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.core.progress import Progress
from coterie.core.stored import stored
from coterie.errors import ObjectiveRoseWarning
from coterie.mixture.em import Event


@stored("mixture.History")
@dataclass(frozen=True, eq=False)
class History:
    r"""EM as coordinate ascent on :math:`J(q, \theta) = \sum_i w_i E_q[\log p(x_i, z_i; \theta) - \log q_i(z_i)]`.

    The log-likelihood is J plus the KL divergence of q from the posterior. A soft E-step sets q to the posterior, so
    that J equals the log-likelihood. An M-step raises J + `log_prior`, and the penalised log-likelihood by at least as
    much. There is one entry for each E-step and M-step, beginning with the E-step of the initialisation.
    """

    iteration: np.ndarray  # (m,) number of M-steps so far
    step: np.ndarray  # (m,) "E" or "M"
    log_likelihood: np.ndarray  # (m,)
    lower_bound: np.ndarray  # (m,) J
    kl: np.ndarray  # (m,) log_likelihood - lower_bound
    log_prior: np.ndarray  # (m,) up to a constant: the contribution of reg_covar and the prior to the objective
    events: tuple[Event, ...] = ()  # components that were floored or reseeded

    def __len__(self) -> int:
        return len(self.step)

    def rescaled(self, log_volume: float, exponent: int) -> History:
        """The history in other units: `log_volume` is subtracted from sums, and weights are scaled by 2^exponent."""
        if log_volume == 0 and exponent == 0:
            return self
        likelihood, bound = (np.ldexp(sums - log_volume, exponent) for sums in (self.log_likelihood, self.lower_bound))
        kl, prior = (np.ldexp(sums, exponent) for sums in (self.kl, self.log_prior))
        return replace(self, log_likelihood=likelihood, lower_bound=bound, kl=kl, log_prior=prior)


class Recorder:
    """A callback that records the history of each restart, and warns if the log-likelihood falls."""

    def __init__(self, model: Any):
        self.model = model
        self.runs: dict[int, list[tuple[Any, ...]]] = {}
        self.events: dict[int, list[Event]] = {}
        self.last: tuple[Any, Any, float] | None = None

    def __call__(self, progress: Progress) -> None:
        c, stats, i = progress.params, progress.stats, progress.iteration
        record = self.runs.setdefault(progress.run, [])
        events = self.events.setdefault(progress.run, [])
        likelihood, prior = float(stats.log_likelihood), float(self.model.log_prior(c, stats))
        if i > 0 and self.last is not None:
            before, before_stats, objective = self.last
            # J is E[log p(x, z)] plus the entropy of q, which the M-step does not change.
            gain = self.model.expected(c, before, before_stats) - self.model.expected(before, before, before_stats)
            record.append((i, "M", likelihood, float(before_stats.bound) + gain, prior))
            self._check(i, progress.objective - objective, c, stats, progress.objective)
        record.append((i, "E", likelihood, float(stats.bound), prior))
        events += [event._replace(iteration=i) for event in c.events]
        self.last = c, stats, progress.objective

    def _check(self, iteration: int, rise: float, c: Any, stats: Any, objective: float) -> None:
        if c.events or self.model.e_step_kind == "stochastic":
            return
        if rise > 16 * self.model.rounding(c, stats, objective):
            warnings.warn(
                f"the log-likelihood fell by {rise:.3g} in iteration {iteration}, more than rounding errors explain",
                ObjectiveRoseWarning,
                stacklevel=2,
            )

    # for checkpoints

    def records_until(self, run: int, iteration: int) -> dict[int, Any]:
        records = {}
        for each, record in self.runs.items():
            entries = [entry for entry in record if each < run or (each == run and entry[0] <= iteration)]
            if entries:
                last = entries[-1][0]
                events = tuple(event for event in self.events[each] if event.iteration <= last)
                records[each] = (*map(np.array, zip(*entries, strict=True)), events)
        return records

    def restore(self, records: dict[int, Any], last: tuple[Any, Any, float] | None) -> None:
        for run, (*columns, events) in records.items():
            self.runs[run] = list(zip(*(column.tolist() for column in columns), strict=True))
            self.events[run] = list(events)
        self.last = last

    def history(self, run: int) -> History:
        iteration, step, likelihood, bound, prior = map(np.array, zip(*self.runs[run], strict=True))
        return History(iteration, step, likelihood, bound, likelihood - bound, prior, tuple(self.events[run]))
