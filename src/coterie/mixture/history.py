"""The history of a fit: log-likelihood and lower bound after each step, or the evidence lower bound and its terms."""

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

    def rescaled(self, log_volume: float, exponent: int) -> "History":
        """The history in other units: `log_volume` is subtracted from sums, and weights are scaled by 2^exponent."""
        if log_volume == 0 and exponent == 0:
            return self
        likelihood, bound = (np.ldexp(sums - log_volume, exponent) for sums in (self.log_likelihood, self.lower_bound))
        kl, prior = (np.ldexp(sums, exponent) for sums in (self.kl, self.log_prior))
        return replace(self, log_likelihood=likelihood, lower_bound=bound, kl=kl, log_prior=prior)


@stored("bayesian.History")
@dataclass(frozen=True, eq=False)
class BoundHistory:
    """The evidence lower bound of the initialisation and after each iteration; it never falls."""

    iteration: np.ndarray  # (m,)
    lower_bound: np.ndarray  # (m,) = fit - divergence
    fit: np.ndarray  # (m,) sum of w log sum_k exp E[log p(x, z = k)]
    divergence: np.ndarray  # (m,) KL divergence of the posterior from the prior
    counts: np.ndarray  # (m, k) expected number of rows of each component

    def __len__(self) -> int:
        return len(self.iteration)

    def rescaled(self, log_volume: float) -> "BoundHistory":
        """The history in other units of the rows: `log_volume` is subtracted from sums of log densities."""
        return replace(self, lower_bound=self.lower_bound - log_volume, fit=self.fit - log_volume)


class Recorder:
    """Base class of callbacks that record the history of each restart, and warn if the objective becomes worse."""

    def __init__(self, model: Any):
        self.model = model
        self.runs: dict[int, list[tuple[Any, ...]]] = {}  # entries that begin with the iteration

    def __call__(self, progress: Progress) -> None:
        raise NotImplementedError

    def history(self, run: int) -> Any:
        raise NotImplementedError

    def _warn_if_worse(self, name: str, fall: float, progress: Progress, objective: float) -> None:
        if fall > 0 and fall > 16 * self.model.rounding(progress.params, progress.stats, objective):
            warnings.warn(
                f"the {name} fell by {fall:.3g} in iteration {progress.iteration}, more than rounding errors explain",
                ObjectiveRoseWarning,
                stacklevel=3,
            )

    # for checkpoints

    def records_until(self, run: int, iteration: int) -> dict[int, Any]:
        complete = {
            each: [entry for entry in entries if each < run or (each == run and entry[0] <= iteration)]
            for each, entries in self.runs.items()
        }
        return {each: tuple(map(np.array, zip(*entries, strict=True))) for each, entries in complete.items() if entries}

    def restore(self, records: dict[int, Any], last: tuple[Any, Any, float] | None) -> None:
        self.runs.update((run, list(zip(*columns, strict=True))) for run, columns in records.items())


class LikelihoodRecorder(Recorder):
    """A callback that records the log-likelihood, its lower bound and repairs of components."""

    def __init__(self, model: Any):
        super().__init__(model)
        self.events: dict[int, list[Event]] = {}
        self.last: tuple[Any, Any, float] | None = None

    def __call__(self, progress: Progress) -> None:
        c, stats, i = progress.params, progress.stats, progress.iteration
        entries, events = self.runs.setdefault(progress.run, []), self.events.setdefault(progress.run, [])
        likelihood, prior = float(stats.log_likelihood), float(self.model.log_prior(c, stats))
        if i > 0 and self.last is not None:
            before, before_stats, objective = self.last
            # J is E[log p(x, z)] plus the entropy of q, which the M-step does not change.
            gain = self.model.expected(c, before, before_stats) - self.model.expected(before, before, before_stats)
            entries.append((i, "M", likelihood, float(before_stats.bound) + gain, prior))
            if not c.events and self.model.e_step_kind != "stochastic":
                self._warn_if_worse("log-likelihood", progress.objective - objective, progress, progress.objective)
        entries.append((i, "E", likelihood, float(stats.bound), prior))
        events += [event._replace(iteration=i) for event in c.events]
        self.last = c, stats, progress.objective

    def records_until(self, run: int, iteration: int) -> dict[int, Any]:
        return {
            each: (*columns, tuple(event for event in self.events[each] if event.iteration <= columns[0][-1]))
            for each, columns in super().records_until(run, iteration).items()
        }

    def restore(self, records: dict[int, Any], last: tuple[Any, Any, float] | None) -> None:
        super().restore({run: columns for run, (*columns, _) in records.items()}, last)
        self.events.update((run, list(events)) for run, (*_, events) in records.items())
        self.last = last

    def history(self, run: int) -> History:
        iteration, step, likelihood, bound, prior = map(np.array, zip(*self.runs[run], strict=True))
        return History(iteration, step, likelihood, bound, likelihood - bound, prior, tuple(self.events[run]))


class BoundRecorder(Recorder):
    """A callback that records the evidence lower bound and its terms."""

    def __call__(self, progress: Progress) -> None:
        entries, stats = self.runs.setdefault(progress.run, []), progress.stats
        bound, fit = -progress.objective, float(stats.bound)
        if entries:
            self._warn_if_worse("lower bound", entries[-1][1] - bound, progress, bound)
        entries.append((progress.iteration, bound, fit, fit - bound, np.array(stats.weight)))

    def history(self, run: int) -> BoundHistory:
        return BoundHistory(*map(np.array, zip(*self.runs[run], strict=True)))
