"""What `choose_k` answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.selection.reasons import reason_for
from coterie.selection.sweep import Sweep
from coterie.selection.text_table import aligned
from coterie.selection.tendency import Tendency
from coterie.selection.votes import Vote, together

Array = np.ndarray[Any, Any]

NAMES = {
    "tendency": "test for clusters",
    "silhouette": "silhouette",
    "calinski_harabasz": "Calinski–Harabasz",
    "davies_bouldin": "Davies–Bouldin",
    "dunn": "Dunn",
    "elbow": "elbow",
    "gap": "gap",
    "bic": "BIC",
    "icl": "ICL",
    "prediction_strength": "prediction strength",
    "dirichlet": "Dirichlet process",
    "stability": "stability",
    "dendrogram": "dendrogram",
    "x_means": "X-means",
    "g_means": "G-means",
}


@dataclass(frozen=True)
class ChooseK:
    """How many clusters, by whom, and why."""

    ks: Array  # (m,) the numbers of clusters looked at
    votes: tuple[Vote, ...]
    sweep: Sweep = field(repr=False)  # the fits that indices judge
    results: dict[str, Any] = field(
        repr=False
    )  # by criterion: `Curve`, `Gap`, `Stability`, `Tendency`, ...; 'mixtures'
    rows: int  # looked at
    n: int  # that there are

    @property
    def support(self) -> Array:
        """For each K (m,), from 0 to 1, by all votes together."""
        return together(self.votes, self.ks)

    @property
    def recommended(self) -> int:
        """The number of clusters; 1 means that there are none to be told apart."""
        return int(self.ks[self.support.argmax()])

    @property
    def confidence(self) -> float:
        """From 0 to 1: the support of the recommended K; 1 if it is the best by every criterion that counts."""
        return float(self.support.max())

    @property
    def tendency(self) -> Tendency | None:
        """Whether there are clusters at all; None where that was not asked, or there are too few rows to tell."""
        return self.results.get("tendency")

    @property
    def reason(self) -> str:
        """Two sentences: who agrees, and why the others do not."""
        return reason_for(self, NAMES)

    def table(self) -> list[dict[str, Any]]:
        """A row for each K: what every criterion measured, and the support; None where it measured nothing."""
        columns = self._columns()
        support, best = self.support, self.recommended
        return [
            {
                "k": k,
                **{name: values.get(k) for name, values in columns.items()},
                "support": float(support[i]),
                "recommended": k == best,
            }
            for i, k in enumerate(self.ks.tolist())
        ]

    def _columns(self) -> dict[str, dict[int, float]]:
        found = {"objective": _by_k(self.sweep.ks, self.sweep.objectives)}
        for name, result in self.results.items():
            if name in ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn"):
                found[name] = _by_k(result.ks, result.values)
            elif name == "gap":
                found |= {"gap": _by_k(result.ks, result.gap), "gap_se": _by_k(result.ks, result.se)}
            elif name == "mixtures":
                found |= {name: _by_k(result.ks, getattr(result, name).min(axis=1)) for name in ("bic", "icl")}
            elif name in ("prediction_strength", "stability"):
                found[name] = _by_k(result.ks, result.mean)
        return found

    def plot(self, axes: Any = None) -> Any:
        """Every criterion over K, the recommended one marked: see `coterie.plots.criteria`."""
        from coterie.plots import criteria

        return criteria(self, axes)

    def __str__(self) -> str:
        said = [
            {"criterion": NAMES[vote.criterion], "K": vote.k, "confidence": vote.confidence, "weight": vote.weight}
            for vote in self.votes
        ]
        notes = [f"  {NAMES[vote.criterion]}: {vote.note}" for vote in self.votes if vote.note]
        looked = "" if self.rows == self.n else f" (of {self.rows} of {self.n} rows)"
        return "\n".join([f"K = {self.recommended}{looked}: {self.reason}", "", aligned(said), *notes])


def _by_k(ks: Array, values: Array) -> dict[int, float]:
    return {k: value for k, value in zip(ks.tolist(), values.tolist(), strict=True) if np.isfinite(value)}
