"""The results of `choose_k` as curves and votes, and the report about them."""

from dataclasses import replace

import numpy as np

from coterie.plots import ElbowDisplay, GapDisplay, InformationDisplay, StabilityDisplay
from coterie.report.build.report_source import ReportSource, reproducibility
from coterie.report.html.report import Absent, ChoiceReport, Criteria
from coterie.report.results import Choice, ChoiceResult
from coterie.selection import ChooseK, Curve
from coterie.selection.choose_k import EFFORTS
from coterie.selection.choose_k_criteria import CRITERIA
from coterie.selection.votes import NAMES

INDICES = ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn")


def choice_report(result: ChoiceResult, source: ReportSource, details: ChooseK, python: str | Absent) -> ChoiceReport:
    """All data of the report of ``coterie choose-k``."""
    return ChoiceReport(
        result=result,
        requested_k=source.k,
        criteria=criteria(result.choice, details, by_criteria=True),
        reproduce=reproducibility(source, python),
    )


def criteria(choice: Choice, details: ChooseK, by_criteria: bool) -> Criteria:
    """Curves and votes; unused criteria have the option that adds them (``--criteria``, or else ``--budget``)."""
    results = details.results
    mixtures, gap = results.get("mixtures"), results.get("gap")
    used = [vote.criterion for vote in details.votes]
    if by_criteria:
        options = {name: f"--criteria {name}" for name in CRITERIA}
    else:
        smallest = {name: next(key for key, each in EFFORTS.items() if name in each.criteria) for name in CRITERIA}
        options = {name: f"--budget {budget}" for name, budget in smallest.items()}
    known = [results[name] for name in INDICES if results.get(name) is not None]
    indices = [curve if np.any(curve.errors) else replace(curve, errors=None) for curve in known]
    if (valleys := results.get("valleys")) is not None:
        note = "number of clusters with fewer rows between them and their neighbours than at their centers"
        errors = valleys.standard_error
        indices.append(Curve("valleys", valleys.ks, valleys.apart, valleys.best, True, errors, note))
    return Criteria(
        choice=choice,
        ks=details.ks,
        support=details.support,
        votes=sorted(details.votes, key=lambda vote: -vote.weight),
        elbow=ElbowDisplay.from_result(details),
        indices=tuple(curve for curve in indices if len(curve.ks)),
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
