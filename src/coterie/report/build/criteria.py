"""The results of `choose_k` as curves and votes, and the report about them."""

import numpy as np

import coterie
from coterie.plots import ElbowDisplay, GapDisplay, InformationDisplay, StabilityDisplay
from coterie.plots.display import plain
from coterie.report.build.report_source import ReportSource, reproducibility
from coterie.report.html.report import Absent, ChoiceReport, Criteria, Index, Votes
from coterie.report.results import ChoiceResult
from coterie.selection import ChooseK, Curve
from coterie.selection.choose_k import EFFORTS
from coterie.selection.choose_k_criteria import CRITERIA
from coterie.selection.valleys import Valleys
from coterie.selection.votes import NAMES

INDICES = {"silhouette": "mean silhouette", "calinski_harabasz": "index", "davies_bouldin": "index", "dunn": "index"}


def choice_report(result: ChoiceResult, source: ReportSource, choice: ChooseK, python: str | Absent) -> ChoiceReport:
    """All data of the report of ``coterie choose-k``."""
    return ChoiceReport(
        result=result,
        version=coterie.__version__,
        requested_k=source.k,
        criteria=criteria(choice, result.choice.clusters_by, by_criteria=True),
        reproduce=reproducibility(source, python),
    )


def criteria(choice: ChooseK, clusters_by: str, by_criteria: bool) -> Criteria:
    """Curves and votes; unused criteria have the option that adds them (``--criteria``, or else ``--budget``)."""
    results = choice.results
    mixtures, gap = results.get("mixtures"), results.get("gap")
    used = [vote.criterion for vote in choice.votes]
    if by_criteria:
        options = {name: f"--criteria {name}" for name in CRITERIA}
    else:
        smallest = {name: next(key for key, each in EFFORTS.items() if name in each.criteria) for name in CRITERIA}
        options = {name: f"--budget {budget}" for name, budget in smallest.items()}
    votes = [
        {
            "name": NAMES[vote.criterion], "k": vote.k, "confidence": vote.confidence, "weight": vote.weight,
            "support": np.asarray(vote.support, dtype=np.float64), "note": vote.note,
        }
        for vote in sorted(choice.votes, key=lambda vote: -vote.weight)
    ]  # fmt: skip
    return Criteria(
        recommended=choice.recommended,
        strength=choice.strength,
        runner_up=choice.runner_up,
        confidence=choice.confidence,
        reason=choice.reason,
        rows=choice.rows,
        n=choice.n,
        clusters_by=clusters_by,
        votes=Votes(choice.ks, choice.support, choice.recommended, plain(votes)),
        elbow=ElbowDisplay.from_result(choice),
        indices=tuple(
            _index(results[name], name) for name in INDICES if results.get(name) is not None and len(results[name].ks)
        )
        + (() if results.get("valleys") is None else (_valleys(results["valleys"]),)),
        gap=None if gap is None else GapDisplay.from_result(gap),
        information=tuple(
            InformationDisplay.from_result(mixtures, criterion=name)
            for name in ("bic", "icl")
            if mixtures is not None and name in used and mixtures.best(1, name)
        ),
        stability=tuple(
            StabilityDisplay.from_result(results[name])
            for name in ("prediction_strength", "stability")
            if results.get(name) is not None
        ),
        not_computed={NAMES[name]: option for name, option in options.items() if name not in used},
    )


def _index(curve: Curve, name: str) -> Index:
    title = NAMES[name][:1].upper() + NAMES[name][1:]
    errors = curve.errors if curve.errors is not None and np.any(curve.errors) else None
    return Index(title, INDICES[name], curve.ks, curve.values, errors, curve.best, curve.higher_is_better, curve.note)


def _valleys(result: Valleys) -> Index:
    note = "number of clusters with fewer rows between them and their neighbours than at their centers"
    return Index(
        "Density valleys", "separate clusters", result.ks, result.apart, result.standard_error, result.best, True, note
    )
