"""What `choose_k` measured, as numbers to draw."""

import numpy as np

from coterie.plots import ElbowDisplay, GapDisplay, InformationDisplay, StabilityDisplay
from coterie.plots.display import plain
from coterie.report.html.displays import Index, Votes
from coterie.report.html.report import Criteria
from coterie.selection import ChooseK, Curve
from coterie.selection.choose import EFFORTS
from coterie.selection.chosen import NAMES
from coterie.selection.study import CRITERIA

INDICES = {
    "silhouette": "mean silhouette",
    "calinski_harabasz": "index",
    "davies_bouldin": "index",
    "dunn": "index",
}


def criteria(found: ChooseK, clusters_by: str, by_methods: bool) -> Criteria:
    """Curves and votes; criteria that were not asked have the option that asks them (`by_methods`: ``--methods``)."""
    results = found.results
    mixtures, gap = results.get("mixtures"), results.get("gap")
    asked = [vote.criterion for vote in found.votes]
    return Criteria(
        recommended=found.recommended,
        confidence=found.confidence,
        reason=found.reason,
        rows=found.rows,
        n=found.n,
        clusters_by=clusters_by,
        votes=_votes(found),
        elbow=ElbowDisplay.from_result(found),
        indices=tuple(_index(results[name], name) for name in INDICES if _has_values(results.get(name))),
        gap=None if gap is None else GapDisplay.from_result(gap),
        information=tuple(
            InformationDisplay.from_result(mixtures, criterion=name)
            for name in ("bic", "icl")
            if mixtures is not None and name in asked and mixtures.best(1, name)
        ),
        stability=tuple(
            StabilityDisplay.from_result(results[name])
            for name in ("prediction_strength", "stability")
            if results.get(name) is not None
        ),
        left_out={
            NAMES[name]: f"--methods {name}" if by_methods else f"--budget {_least_budget(name)}"
            for name in CRITERIA
            if name not in asked
        },
    )


def _votes(found: ChooseK) -> Votes:
    said = [
        {
            "name": NAMES[vote.criterion],
            "k": vote.k,
            "confidence": vote.confidence,
            "weight": vote.weight,
            "support": np.asarray(vote.support, dtype=np.float64),
            "note": vote.note,
        }
        for vote in sorted(found.votes, key=lambda vote: -vote.weight)
    ]
    return Votes(found.ks, found.support, found.recommended, plain(said))


def _has_values(curve: Curve | None) -> bool:
    return curve is not None and len(curve.ks) > 0


def _index(curve: Curve, name: str) -> Index:
    return Index(
        NAMES[name][:1].upper() + NAMES[name][1:],
        INDICES[name],
        curve.ks,
        curve.values,
        curve.errors if curve.errors is not None and np.any(curve.errors) else None,
        curve.best,
        curve.higher_is_better,
        curve.note,
    )


def _least_budget(name: str) -> str:
    return next(budget for budget, effort in EFFORTS.items() if name in effort.methods)
