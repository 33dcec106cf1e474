"""`ChooseK`: the result of `choose_k`."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

import coterie
from coterie.core.repr_html import ReprHTMLMixin
from coterie.selection.decision import Decision, decide
from coterie.selection.reasons import reasons_for
from coterie.selection.sweep import Sweep
from coterie.selection.tendency import Tendency
from coterie.selection.text_table import aligned, as_rows
from coterie.selection.votes import NAMES, Vote, total_support


@dataclass(frozen=True, repr=False)
class ChooseK(ReprHTMLMixin):
    """Result of `choose_k`: the recommended number of clusters and the vote of each criterion."""

    ks: np.ndarray  # (m,) numbers of clusters that were compared
    votes: tuple[Vote, ...]
    sweep: Sweep = field(repr=False)  # the fits that the indices evaluate
    results: dict[str, Any] = field(repr=False)  # by criterion: `Curve`, `Gap`, `Stability`, ...; 'mixtures'
    rows: int  # number of rows that were used
    n: int  # number of rows of X with a positive weight
    perfect_k: int | None = None  # number of distinct rows, if it was compared and they are repeated often
    columns: tuple[str, ...] = field(default=(), repr=False)  # names; empty for series
    is_stopped: bool = False  # by the callback or by Ctrl-C, before all criteria were evaluated

    @property
    def support(self) -> np.ndarray:
        """Support of each K by all votes together (m,), from 0 to 1."""
        return total_support(self.votes, self.ks)

    @cached_property
    def decision(self) -> Decision:
        """The recommended K, its strength, the runner-up, and the reasons for doubt."""
        return decide(self)

    @property
    def recommended(self) -> int:
        """Recommended number of clusters; 1 means that there are none, or that no number is clear."""
        return self.decision.recommended

    @property
    def strength(self) -> str:
        """How clear the recommended K is.

        'clear': the criteria that judge the clusters agree, and no other K comes close. 'weak': K is the best, but
        there is a reason for doubt. 'none': there are no clusters, or no number is clear; `recommended` is then 1 and
        `runner_up` the best number above. If 1 was not compared, `recommended` is the best of the numbers.
        """
        return self.decision.strength

    @property
    def runner_up(self) -> int | None:
        """The number of clusters with the next largest support; None if no other has any."""
        return self.decision.runner_up

    @property
    def best_number(self) -> int:
        """The recommended K, or the runner-up if the rows have clusters, but no number of them is clear."""
        return self.runner_up if self.recommended == 1 and self.has_clusters and self.runner_up else self.recommended

    @property
    def has_clusters(self) -> bool:
        """Whether the rows have clusters by the test; without it, unless one cluster has the largest support."""
        if self.tendency is not None:
            return self.tendency.clustered
        support = self.support
        return bool(self.ks[support.argmax()] > 1 or not support.any())

    @property
    def confidence(self) -> float:
        """Support of the recommended K, from 0 to 1; 1 if every criterion with a weight prefers it."""
        return float(self.support[self.ks == self.recommended].max())

    @property
    def tendency(self) -> Tendency | None:
        """Result of the test for clusters; None if it was not run, or if there are too few distinct rows."""
        return self.results.get("tendency")

    @property
    def heading(self) -> str:
        """The recommended K with its strength and, if it is not clear, the runner-up: "K = 4 (weak; runner-up 3)"."""
        strength = "no clear number" if self.strength == "none" else self.strength
        runner_up = "" if self.runner_up is None or self.strength == "clear" else f"; runner-up {self.runner_up}"
        return f"K = {self.recommended} ({strength}{runner_up})"

    @property
    def reason(self) -> str:
        """Explanation in a few sentences: which criteria agree, why others differ, and what would decide it."""
        return " ".join(self.reasons)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The sentences of `reason`."""
        return reasons_for(self)

    @property
    def range_text(self) -> str:
        """The numbers of clusters that were compared, in words: "between 2 and 10"."""
        several = self.ks[self.ks > 1]
        return f"between {several.min()} and {several.max()}" if len(several) else "above 1"

    @property
    def reusable_sweep(self) -> Sweep | None:
        """The fits that were evaluated, if one is the fit for the chosen K: to all rows, or if there is no time."""
        return self.sweep if self.rows == self.n or self.is_stopped else None

    def table(self) -> list[dict[str, Any]]:
        """One row per K: the value of every criterion and the support; None where a criterion has no value."""
        by_criterion = criterion_values(self.sweep, self.results).items()
        criteria = {name: [values.get(k) for k in self.ks.tolist()] for name, values in by_criterion}
        support = {"support": self.support, "recommended": self.ks == self.recommended}
        return as_rows({"k": self.ks, **criteria, **support})

    def plot(self, axes: Any = None) -> Any:
        """Plot every criterion over K and mark the recommended K: see `coterie.plots.criteria`."""
        return coterie.plots.criteria(self, axes=axes)

    def __str__(self) -> str:
        rows = [
            {"criterion": NAMES[vote.criterion], "K": vote.k, "confidence": vote.confidence, "weight": vote.weight}
            for vote in self.votes
        ]
        notes = [f"  {NAMES[vote.criterion]}: {vote.note}" for vote in self.votes if vote.note]
        sample_note = "" if self.rows == self.n else f" (from a sample of {self.rows} of {self.n} rows)"
        return "\n".join([f"{self.heading}{sample_note}: {self.reason}", "", aligned(rows), *notes])


@dataclass(frozen=True)
class CriterionResult:
    """A criterion that was evaluated: its vote, and its values by K, if it has any. Callbacks of `choose_k` get it."""

    vote: Vote
    values: dict[int, float]

    @classmethod
    def of(cls, vote: Vote, values: dict[str, dict[int, float]]) -> Self:
        """The result of a vote, from the values of all criteria."""
        return cls(vote, values.get("objective" if vote.criterion == "elbow" else vote.criterion, {}))


def criterion_values(sweep: Sweep, results: dict[str, Any]) -> dict[str, dict[int, float]]:
    """The values of all criteria that were evaluated, by their name and K."""
    columns = {"objective": _by_k(sweep.ks, sweep.objectives)}
    for name, result in results.items():
        if name in ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn"):
            columns[name] = _by_k(result.ks, result.values)
        elif name == "gap":
            columns |= {"gap": _by_k(result.ks, result.gap), "gap_se": _by_k(result.ks, result.se)}
        elif name == "mixtures":
            columns |= {name: _by_k(result.ks, getattr(result, name).min(axis=1)) for name in ("bic", "icl")}
        elif name in ("prediction_strength", "stability"):
            columns[name] = _by_k(result.ks, result.mean)
        elif name == "valleys":
            columns[name] = _by_k(result.ks, result.apart)
    return columns


def _by_k(ks: np.ndarray, values: np.ndarray) -> dict[int, float]:
    return {k: value for k, value in zip(ks.tolist(), values.tolist(), strict=True) if np.isfinite(value)}
