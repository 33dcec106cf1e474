"""`ChooseK`: the result of `choose_k`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import coterie
from coterie.core.repr_html import ReprHTMLMixin
from coterie.selection.reasons import reason_for
from coterie.selection.sweep import Sweep
from coterie.selection.tendency import Tendency
from coterie.selection.text_table import aligned
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

    @property
    def support(self) -> np.ndarray:
        """Support of each K by all votes together (m,), from 0 to 1."""
        return total_support(self.votes, self.ks)

    @property
    def recommended(self) -> int:
        """Recommended number of clusters; 1 means that there are no separate clusters."""
        return int(self.ks[self.support.argmax()])

    @property
    def confidence(self) -> float:
        """Support of the recommended K, from 0 to 1; 1 if every criterion with a weight prefers it."""
        return float(self.support.max())

    @property
    def tendency(self) -> Tendency | None:
        """Result of the test for clusters; None if it was not run, or if there are too few distinct rows."""
        return self.results.get("tendency")

    @property
    def reason(self) -> str:
        """Explanation in two sentences: which criteria agree, and why others differ."""
        return reason_for(self)

    def table(self) -> list[dict[str, Any]]:
        """One row per K: the value of every criterion and the support; None where a criterion has no value."""
        criteria = self._criterion_values()
        support, best = self.support, self.recommended
        return [
            {
                "k": k,
                **{name: values.get(k) for name, values in criteria.items()},
                "support": float(support[i]),
                "recommended": k == best,
            }
            for i, k in enumerate(self.ks.tolist())
        ]

    def _criterion_values(self) -> dict[str, dict[int, float]]:
        columns = {"objective": _by_k(self.sweep.ks, self.sweep.objectives)}
        for name, result in self.results.items():
            if name in ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn"):
                columns[name] = _by_k(result.ks, result.values)
            elif name == "gap":
                columns |= {"gap": _by_k(result.ks, result.gap), "gap_se": _by_k(result.ks, result.se)}
            elif name == "mixtures":
                columns |= {name: _by_k(result.ks, getattr(result, name).min(axis=1)) for name in ("bic", "icl")}
            elif name in ("prediction_strength", "stability"):
                columns[name] = _by_k(result.ks, result.mean)
        return columns

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
        return "\n".join([f"K = {self.recommended}{sample_note}: {self.reason}", "", aligned(rows), *notes])


def _by_k(ks: np.ndarray, values: np.ndarray) -> dict[int, float]:
    return {k: value for k, value in zip(ks.tolist(), values.tolist(), strict=True) if np.isfinite(value)}
