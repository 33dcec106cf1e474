"""Results of `choose_k`: a chart for each criterion."""

from collections.abc import Mapping
from typing import Any

from coterie.palette import colours
from coterie.report.html.charts.curves import Choice, Line, curves
from coterie.web import Markup

STRUCTURES = {
    "EII": "spherical, equal volume", "VII": "spherical", "EEI": "diagonal, equal", "VEI": "diagonal, equal shape",
    "EVI": "diagonal, equal volume", "VVI": "diagonal", "EEE": "full, equal", "VVV": "full", "E": "equal variance",
    "V": "varying variance",
}  # fmt: skip
RULES = {
    "tibs2001SEmax": "the smallest K whose gap is at least that of K + 1 minus one standard error",
    "firstSEmax": "the smallest K whose gap is within one standard error of the first local maximum",
    "globalSEmax": "the smallest K whose gap is within one standard error of the maximum",
}


def elbow(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of an `ElbowDisplay`."""
    knee = display["knee"]
    choice = None if knee is None else Choice(int(knee), f"elbow at K = {knee:g}")
    note = "The elbow is shown for reference; it is not used in the choice."
    line = Line("objective", display["ks"], display["objectives"])
    return curves("Elbow", "objective", [line], choice=choice, note=note if choice else "The curve has no elbow.")


def gap(display: Mapping[str, Any], vote: int | None) -> Markup:
    """Draw the dictionary of a `GapDisplay`, with the K for which the criterion votes."""
    k = display["recommended"]
    note = (
        f"The gap shows how much more compact the clusters are than those of {display['references']} reference tables "
        f"without clusters. The one-standard-error rule ({display['rule']}) selects "
        f"{RULES.get(display['rule'], 'this K')}. The vote uses the height of the gap."
    )
    line = Line("gap", display["ks"], display["gap"], display["errors"])
    return curves(
        "Gap statistic", "gap ± standard error", [line], note=note, also=Choice(k, f"1 s.e.: K = {k}"),
        choice=None if vote is None else Choice(vote, f"highest{', 1 s.e.' if vote == k else ''}: K = {vote}"),
    )  # fmt: skip


def index(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of an `Index`: silhouette, Calinski–Harabasz, Davies–Bouldin, Dunn."""
    best = display["best"]
    choice = None if best is None else Choice(best, f"best at K = {best}")
    line = Line(display["name"], display["ks"], display["values"], display["errors"])
    note, more = "Higher is better." if display["higher_is_better"] else "Lower is better.", display["note"]
    note += "" if more is None else f" {more[:1].upper()}{more[1:].rstrip('.')}."
    return curves(display["name"], display["axis"], [line], choice=choice, note=note)


def information(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of an `InformationDisplay`: a curve for each covariance structure."""
    lines = []
    for j, colour in enumerate(colours(len(display["structures"]))):
        known = [(k, row[j]) for k, row in zip(display["ks"], display["values"], strict=True) if row[j] is not None]
        if known:
            name = display["structures"][j]
            ks, values = zip(*known, strict=True)
            lines.append(Line(f"{name} ({STRUCTURES[name]})" if name in STRUCTURES else name, ks, values, None, colour))
    k, structure = display["best"]
    criterion = display["criterion"].upper()
    note = "Covariance structures have the names of mclust. A curve ends where no fit is valid."
    return curves(
        f"{criterion} of Gaussian mixtures", f"{criterion}, lower is better", lines,
        choice=Choice(k, f"{structure}, K = {k}"), note=note, along="number of components K",
    )  # fmt: skip


def stability(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of a `StabilityDisplay`."""
    best = display["best"]
    names = {"prediction_strength": "Prediction strength", "adjusted_rand": "Stability", "jaccard": "Stability"}
    title = names[display["measure"]]
    clusters = zip(display["ks"], display["clusters"], strict=True)
    dots = [(k, value) for k, values in clusters for value in values if value is not None]
    line = Line(title.lower(), display["ks"], display["mean"], display["errors"])
    note = "Stability of the clusters under resampling; each dot is one cluster."
    if best is None:
        note = f"{note} No K reaches {display['threshold']:g}."
    return curves(
        title, "agreement of resamples", [line], dots=dots, threshold=(display["threshold"], "stable above"),
        choice=None if best is None else Choice(best, f"stable: K = {best}"), note=note,
    )  # fmt: skip
