"""What `choose_k` measured, a chart for each criterion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.palette import colours
from coterie.report.html.charts.curves import Choice, Line, curves
from coterie.web import Markup

STRUCTURES = {
    "EII": "round, equal size",
    "VII": "round",
    "EEI": "along the axes, equal",
    "VEI": "along the axes, equal shape",
    "EVI": "along the axes, equal volume",
    "VVI": "along the axes",
    "EEE": "all alike",
    "VVV": "each its own",
    "E": "equal variance",
    "V": "each its own variance",
}

RULES = {
    "tibs2001SEmax": "the first K whose gap is within a standard error of that of K + 1",
    "firstSEmax": "the first K whose gap is within a standard error of the first maximum",
    "globalSEmax": "the first K whose gap is within a standard error of the highest",
}


def elbow(shown: Mapping[str, Any]) -> Markup:
    """Of the dictionary of an `ElbowDisplay`."""
    knee = shown["knee"]
    choice = None if knee is None else Choice(int(knee), f"knee at K = {knee:g}")
    note = "A knee says where more clusters stop to pay, by the eye; it counts nothing in the choice."
    none = "The curve has no knee."
    line = Line("objective", shown["ks"], shown["objectives"])
    return curves(
        "Elbow", "objective, lower is tighter", [line], choice=choice, note=note if choice else f"{none} {note}"
    )


def gap(shown: Mapping[str, Any], vote: int | None) -> Markup:
    """Of the dictionary of a `GapDisplay`, with the K that it votes for."""
    k = shown["recommended"]
    note = (
        f"How much tighter clusters are than those of {shown['references']} tables without any, ± standard error. "
        f"The rule of one standard error ({shown['rule']}) takes {RULES.get(shown['rule'], 'this K')}; "
        "the vote goes by the height of the gap."
    )
    line = Line("gap", shown["ks"], shown["gap"], shown["errors"])
    same = vote == k
    return curves(
        "Gap statistic", "gap ± standard error", [line], note=note, also=Choice(k, f"1 s.e.: K = {k}"),
        choice=None if vote is None else Choice(vote, f"highest{', 1 s.e.' if same else ''}: K = {vote}"),
    )  # fmt: skip


def index(shown: Mapping[str, Any]) -> Markup:
    """Of the dictionary of an `IndexDisplay`: silhouette, Calinski–Harabasz, Davies–Bouldin, Dunn."""
    best = shown["best"]
    choice = None if best is None else Choice(best, f"best at K = {best}")
    better = "higher is better" if shown["higher_is_better"] else "lower is better"
    line = Line(shown["name"], shown["ks"], shown["values"], shown["errors"])
    note = [better.capitalize() + ".", *([] if shown["note"] is None else [_sentence(shown["note"])])]
    return curves(shown["name"], shown["axis"], [line], choice=choice, note=" ".join(note))


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:].rstrip('.')}."


def information(shown: Mapping[str, Any]) -> Markup:
    """Of the dictionary of an `InformationDisplay`: a curve for each structure, over its own K."""
    lines = []
    for j, colour in enumerate(colours(len(shown["structures"]))):
        known = [(k, row[j]) for k, row in zip(shown["ks"], shown["values"], strict=True) if row[j] is not None]
        if known:
            name = shown["structures"][j]
            ks, values = zip(*known, strict=True)
            lines.append(Line(f"{name} ({STRUCTURES[name]})" if name in STRUCTURES else name, ks, values, None, colour))
    k, structure = shown["best"]
    criterion = shown["criterion"].upper()
    note = "Covariance structures by mclust's names. Curves end where no fit is sound."
    return curves(
        f"{criterion} of Gaussian mixtures", f"{criterion}, lower is better", lines,
        choice=Choice(k, f"{structure}, K = {k}"), note=note, along="number of components K",
    )  # fmt: skip


def stability(shown: Mapping[str, Any]) -> Markup:
    """Of the dictionary of a `StabilityDisplay`."""
    best = shown["best"]
    names = {"prediction_strength": "Prediction strength", "adjusted_rand": "Stability", "jaccard": "Stability"}
    title = names[shown["measure"]]
    dots = [(k, v) for k, own in zip(shown["ks"], shown["clusters"], strict=True) for v in own if v is not None]
    line = Line(title.lower(), shown["ks"], shown["mean"], shown["errors"])
    note = "Whether clusters come back when rows are drawn anew; dots are single clusters."
    if best is None:
        note = f"{note} No K reaches {shown['threshold']:g}."
    return curves(
        title, "agreement of resamples", [line], dots=dots, threshold=(shown["threshold"], "stable above"),
        choice=None if best is None else Choice(best, f"K = {best} comes back"), note=note,
    )  # fmt: skip
