"""How many clusters? The votes of the criteria, and a chart for each."""

from collections.abc import Iterable, Mapping
from typing import Any

from coterie.core.formatting import count, join_words
from coterie.palette import colours
from coterie.plots.display import plain
from coterie.report.formatting import two_places
from coterie.report.html.blocks import absent, figure, numbers, section
from coterie.report.html.charts.curves import ChosenK, Line, curves
from coterie.report.html.charts.matrix import Cell, Head, Matrix, step_of
from coterie.report.html.report import Absent, Criteria
from coterie.report.results import Choice
from coterie.selection.votes import NAMES, Vote
from coterie.web import Markup, tag

STRUCTURES = {
    "EII": "spherical, equal volume", "VII": "spherical", "EEI": "diagonal, equal", "VEI": "diagonal, equal shape",
    "EVI": "diagonal, equal volume", "VVI": "diagonal", "EEE": "full, equal", "VVV": "full", "E": "equal variance",
    "V": "varying variance",
}  # fmt: skip
AXES = {"silhouette": "mean silhouette", "valleys": "separate clusters"}  # of other indices: "index"
VOTE_HEADER = ("criterion", "K", "margin", "weight", "note")
MAX_KS = 40  # columns of the heatmap
RULES = {
    "tibs2001SEmax": "the smallest K whose gap is at least that of K + 1 minus one standard error",
    "firstSEmax": "the smallest K whose gap is within one standard error of the first local maximum",
    "globalSEmax": "the smallest K whose gap is within one standard error of the maximum",
}


def n_clusters(criteria: Criteria | Absent, *, with_reason: bool) -> Markup:
    """Votes first, then a chart for each criterion, then the criteria that were not computed."""
    title = "How many clusters?"
    if isinstance(criteria, Absent):
        return section("number", title, absent(criteria))
    drawn = [
        elbow(plain(criteria.elbow)),
        *([gap(plain(criteria.gap), criteria.vote("gap"))] if criteria.gap is not None else []),
        *(index(plain(curve)) for curve in criteria.indices),
        *(information(plain(table)) for table in criteria.information),
        *(stability(plain(curve)) for curve in criteria.stability),
    ]
    choice = criteria.choice
    rows, n = choice.rows_looked_at, choice.rows
    sample = "" if rows == n else f" on a random sample of {rows:,} of {n:,} rows"
    text = (
        f"{_recommendation(choice)}{f' {choice.reason}' if with_reason else ''} "
        f"The criteria evaluate clusters of {choice.clusters_by}{sample}."
    )
    by_option: dict[str, list[str]] = {}
    for name, option in criteria.not_computed.items():
        by_option.setdefault(option, []).append(name)
    options = "; ".join(f"{join_words(names)} (add {option})" for option, names in by_option.items())
    not_computed = tag("p", f"Not computed: {options}.", cls="muted") if options else None
    grid = tag("div", drawn, cls="grid small")
    return section("number", title, tag("p", text), votes(criteria), grid, not_computed)


def _recommendation(choice: Choice) -> str:
    """The recommended K, how clear it is, and the runner-up."""
    k, support = choice.recommended, f"its support is {choice.confidence:.2f} (maximum 1)"
    runner_up = "" if choice.runner_up is None else f" The runner-up is K = {choice.runner_up}."
    if choice.strength == "clear":
        return f"K = {k} is recommended, and it is clear: {support}.{runner_up}"
    if choice.strength == "weak":
        return f"K = {k} is recommended, but the evidence is weak: {support}.{runner_up}"
    return f"No number of clusters is clear. K = {k} is used: {support}.{runner_up}"


def elbow(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of an `ElbowDisplay`."""
    knee = display["knee"]
    choice = None if knee is None else ChosenK(int(knee), f"elbow at K = {knee:g}")
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
        "Gap statistic", "gap ± standard error", [line], note=note, also=ChosenK(k, f"1 s.e.: K = {k}"),
        choice=None if vote is None else ChosenK(vote, f"highest{', 1 s.e.' if vote == k else ''}: K = {vote}"),
    )  # fmt: skip


def index(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of a `Curve`: silhouette, Calinski–Harabasz, Davies–Bouldin, Dunn, density valleys."""
    best, name = display["best"], NAMES[display["name"]]
    title = f"{name[:1].upper()}{name[1:]}"
    choice = None if best is None else ChosenK(best, f"best at K = {best}")
    line = Line(title, display["ks"], display["values"], display["errors"])
    note, more = "Higher is better." if display["higher_is_better"] else "Lower is better.", display["note"]
    note += "" if more is None else f" {more[:1].upper()}{more[1:].rstrip('.')}."
    return curves(title, AXES.get(display["name"], "index"), [line], choice=choice, note=note)


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
        choice=ChosenK(k, f"{structure}, K = {k}"), note=note, along="number of components K",
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
        choice=None if best is None else ChosenK(best, f"stable: K = {best}"), note=note,
    )  # fmt: skip


def votes(criteria: Criteria) -> Markup:
    """Draw the votes: a row for each criterion, a column for each K, darker for more support."""
    ks, recommended = criteria.ks.tolist(), criteria.choice.recommended
    columns = list(range(len(ks)))
    if len(ks) > MAX_KS:  # the first K, and those with votes
        with_votes = {recommended, *(vote.k for vote in criteria.votes)}
        columns = [i for i, k in enumerate(ks) if i < MAX_KS - len(with_votes) or k in with_votes]
    rows = [_row(vote, ks, columns) for vote in criteria.votes]
    supports = [(ks[i], criteria.support[i]) for i in columns]
    combined = [
        Cell(step_of(share), f"{100 * share:.0f}", f"combined support of K = {k}: {two_places(share)}")
        for k, share in supports
    ]
    heads = [
        Head(
            NAMES[vote.criterion],
            None,
            "no vote" if vote.k is None else f"weight {vote.weight:g}" if vote.weight else "not counted",
        )
        for vote in criteria.votes
    ]
    grid = Matrix(
        f"Support of each K by {count(len(rows), 'criterion', 'criteria')}; {recommended} is recommended",
        [*heads, Head("combined, %")],
        [Head(str(ks[i])) for i in columns],
        [*rows, combined],
        marked=[ks[i] for i in columns].index(recommended),
        narrow=True,
    )
    note = (
        "The stronger the colour, the more a criterion supports that K. ✓ marks the choice of each criterion, in "
        "parentheses if it is not counted; the frame marks the recommended K. The weight of a criterion is its weight "
        "in the combined support."
    )
    table = numbers(VOTE_HEADER, vote_rows(criteria.votes), left=(0, 4))
    return figure("Votes of the criteria", grid.drawn(), table, note=note, slim=grid.slim())


def vote_rows(votes: Iterable[Vote]) -> list[list[str]]:
    """The cells of a table of votes."""
    return [
        [NAMES[vote.criterion], "–" if vote.k is None else str(vote.k), two_places(vote.confidence),
         f"{vote.weight:g}", vote.note or ""]
        for vote in votes
    ]  # fmt: skip


def _row(vote: Vote, ks: list[int], columns: list[int]) -> list[Cell]:
    name, has_weight = NAMES[vote.criterion], vote.weight > 0
    cells = []
    for i in columns:
        support, is_choice = float(vote.support[i]), vote.k == ks[i]
        tip = f"{name}, K = {ks[i]}: support {two_places(support)}{', its choice' if is_choice else ''}"
        mark = ("✓" if has_weight else "(✓)") if is_choice else ""
        cells.append(Cell(step_of(support if has_weight else 0.0), mark, tip))
    return cells
