"""Results and fitted estimators in notebooks: HTML without scripts, in the colours of the notebook."""

import re
from collections.abc import Mapping, Sequence
from functools import cache, singledispatch
from importlib.resources import files
from itertools import zip_longest
from typing import Any

import numpy as np

from coterie import selection
from coterie.core.formatting import count
from coterie.core.protocols import is_estimator
from coterie.diagnosis.findings import Diagnosis
from coterie.explanation.rules import Explanation
from coterie.hierarchy.linkage_matrix import LinkageMatrix
from coterie.palette import colours
from coterie.plots import DendrogramDisplay
from coterie.plots.display import plain
from coterie.report.build.fitted_clusters import FittedClusters, fitted_clusters
from coterie.report.formatting import compact, number, percent, short_name, two_places
from coterie.report.html.blocks import cluster_name, numbers
from coterie.report.html.charts.curves import ChosenK, Line, drawn_curves
from coterie.report.html.charts.svg import scrollable
from coterie.report.html.charts.trees import dendrogram
from coterie.report.html.sections.diagnosis import findings
from coterie.report.html.sections.n_clusters import VOTE_HEADER, vote_rows
from coterie.report.html.styles import stylesheet as report_stylesheet
from coterie.report.results import JobResult
from coterie.report.text import CRITERIA, RULE_HEADER, cluster_rows, fit_line, preparation_lines, written_files
from coterie.selection.mixture_table import CRITERIA as INFORMATION_CRITERIA
from coterie.web import Markup, tag
from coterie.web.page import stylesheet as page_stylesheet

CLASS = "coterie-result"  # of the element that contains a result; every rule of the style is inside of it
# Rules of the pages about charts and tables, which are the same in notebooks.
SHARED = re.compile(
    r"^(?:svg\.chart|\.chart|\.axis|line\.grid|ul\.legend|\.legend|\.swatch|\.who |\.severity|\.findings|\.numbers|"
    r"\.drawn\.slim)[^{}]*\{[^{}]*\}$",
    re.MULTILINE,
)
MAX_CLUSTERS = 30  # rows of the table of clusters
MAX_ROWS = 60  # rows of other tables
HEADERS = {"k": "K", "left": "ratio to the K before", "log_w": "log W", "se": "standard error", "p_value": "p-value"}


@singledispatch
def as_html(result: Any) -> str | None:
    """Render a result or a fitted estimator as HTML for a notebook; None if there is nothing to show.

    The HTML has its own style and no scripts. It loads nothing, and all text of the data is escaped.
    """
    if not is_estimator(result):
        return _block(tag("pre", str(result)))
    clusters = fitted_clusters(result)
    if clusters is None:
        return None
    Z = getattr(result, "linkage_matrix_", None)
    tree = None if Z is None or len(Z) == 0 else DendrogramDisplay.from_estimator(result)
    return _block(*_clusters(clusters), None if tree is None else _tree(tree, str(getattr(result, "linkage", ""))))


@as_html.register
def _(result: selection.ChooseK) -> str:
    sample = "" if result.rows == result.n else f" (from a sample of {result.rows:,} of {result.n:,} rows)"
    table = result.table()
    cells = {name: cell for name, cell in CRITERIA.items() if any(cell(row) != "–" for row in table)}
    rows = [[str(row["k"]), *(cell(row) for cell in cells.values())] for row in table]
    votes = vote_rows(sorted(result.votes, key=lambda vote: -vote.weight))
    chart = drawn_curves(
        "Support", "support of all criteria", [Line("support", result.ks.tolist(), result.support.tolist())],
        choice=ChosenK(result.recommended, f"K = {result.recommended}"),
    )  # fmt: skip
    best = [row["recommended"] for row in table].index(True)
    vote_table = _numbers(VOTE_HEADER, votes, left=(0, 4))
    details = tag("details", tag("summary", "Votes of the criteria"), vote_table)
    return _result(result.heading, f"{sample}: {result.reason}", _numbers(["K", *cells], rows, best), chart, details)


@as_html.register
def _(result: selection.Sweep) -> str:
    line = Line("objective", result.ks.tolist(), result.objectives.tolist())
    model = type(result.models[0]).__name__
    ks = count(len(result.ks), "number of clusters", "numbers of clusters")
    note = f": {ks}, {count(len(result.labels[0]))}. The objective falls with K, so it does not choose K."
    chart = drawn_curves("Objective", "objective", [line])
    return _result(f"Sweep of {model}", note, _dicts(result.table()), chart)


@as_html.register
def _(result: selection.Curve) -> str:
    errors = None if result.errors is None else result.errors.tolist()
    name = result.name.replace("_", " ")
    choice = None if result.best is None else ChosenK(result.best, f"best at K = {result.best}")
    line = Line(name, result.ks.tolist(), result.values.tolist(), errors)
    direction = "Higher is better." if result.higher_is_better else "Lower is better."
    note = f"{direction} {result.note[:1].upper()}{result.note[1:]}." if result.note else direction
    chart = drawn_curves(name, name, [line], choice=choice) if len(result.ks) else None
    return _result(name, f": {note}", _dicts(result.table()), chart)


@as_html.register
def _(result: selection.Gap) -> str:
    k = result.recommended
    line = Line("gap", result.ks.tolist(), result.gap.tolist(), result.se.tolist())
    chart = drawn_curves("Gap statistic", "gap ± standard error", [line], choice=ChosenK(k, f"K = {k}"))
    references = count(len(result.reference_log_w), "reference data set")
    note = f" by the gap statistic (rule {result.rule}, {references})"
    return _result(f"K = {k}", note, _dicts(result.table()), chart)


@as_html.register
def _(result: selection.Stability) -> str:
    line = Line("stability", result.ks.tolist(), result.mean.tolist(), result.standard_error.tolist())
    pairs = zip(result.ks.tolist(), result.clusters, strict=True)
    dots = [(k, float(value)) for k, values in pairs for value in values if np.isfinite(value)]
    best = result.best
    chart = drawn_curves(
        "Stability", "agreement of resamples", [line], dots=dots, threshold=(result.threshold, "stable above"),
        choice=None if best is None else ChosenK(best, f"stable: K = {best}"),
    )  # fmt: skip
    verdict = f"No K reaches {result.threshold:g}." if best is None else f"{best} clusters are stable."
    measure = {"adjusted_rand": "adjusted Rand index"}.get(result.measure, result.measure.replace("_", " "))
    note = f" Mean {measure} of {count(result.values.shape[1], 'resample')} ({result.resampling})."
    return _result(verdict, note, _dicts(result.table()), chart)


@as_html.register
def _(result: selection.MixtureTable) -> str:
    best = result.best(3)
    lines = []
    for name, colour, values in zip(result.structures, colours(len(result.structures)), result.bic.T, strict=True):
        known = np.isfinite(values)
        if known.any():
            lines.append(Line(name, result.ks[known].tolist(), values[known].tolist(), None, colour))
    chart = None
    if best:
        choice = ChosenK(best[0].k, f"{best[0].structure}, K = {best[0].k}")
        chart = drawn_curves("BIC", "BIC, lower is better", lines, choice=choice, along="number of components K")
    first = [
        [name.upper(), *(f"{choice} ({number(choice.value)})" for choice in result.best(3, name))]
        for name in INFORMATION_CRITERIA
    ]
    first = [[*row, *[""] * (4 - len(row))] for row in first]
    heading = "no valid fit" if not best else f"{best[0].structure} with {count(best[0].k, 'component')}"
    table = _numbers(["criterion", "best (value)", "second", "third"], first)
    bic = _dicts(result.table(), best=None if not best else result.ks.tolist().index(best[0].k))
    tables = [table, tag("details", tag("summary", "BIC of all mixtures"), bic)]
    return _result(heading, " by BIC; lower is better.", tables, chart)


@as_html.register
def _(result: selection.Tendency) -> str:
    mean, deviation = result.by_chance
    verdict = "The data have clusters." if result.clustered else "No evidence of clusters."
    rows = [
        ["best silhouette of the data", two_places(result.best)],
        ["best silhouette without clusters", f"{two_places(mean)} ± {deviation:.2f}"],
        ["p-value", number(result.p_value)],
    ]
    return _titled(verdict, "", _numbers(["measure", "value"], rows))


@as_html.register
def _(result: selection.DendrogramGap) -> str:
    k = result.best
    line = Line("jump", result.ks.tolist(), result.jumps.tolist())
    chart = drawn_curves("Jumps", "jump of the merge heights", [line], choice=ChosenK(k, f"K = {k}"))
    note = f", the largest jump of the merge heights (clarity {result.clarity:.2g})"
    best = result.ks.tolist().index(k) if k in result.ks else None
    return _result(f"K = {k}", note, _dicts(result.table(), best=best), chart)


@as_html.register
def _(result: selection.Knee) -> str:
    x, y = result.points.T.tolist()
    chart = None
    if all(value.is_integer() for value in x):  # ticks are whole numbers
        choice = None if result.x is None else ChosenK(int(result.x), f"knee at {result.x:g}")
        chart = drawn_curves("Curve", "y", [Line("curve", [int(value) for value in x], y)], choice=choice, along="x")
    note = ". A knee shows where a larger x brings little; it does not show whether there are clusters."
    heading = f"{result.heading[:1].upper()}{result.heading[1:]}"
    rows = [[number(a), number(b), f"{height:.3f}"] for a, b, height in zip(x, y, result.difference, strict=True)]
    best = x.index(result.x) if result.x is not None else None
    table = _numbers(["x", "y", "height above the diagonal"], rows, best)
    return _result(heading, note, table, chart)


@as_html.register
def _(result: selection.Splitting) -> str:
    note = f", inertia {number(result.inertia)}, BIC {number(result.bic)}"
    return _titled(count(result.n_clusters, "cluster"), note, _dicts(result.table()))


@as_html.register
def _(result: Diagnosis) -> str:
    facts = [count(result.rows), count(result.columns, "column")]
    facts += [f"sample of {result.sample:,}"] if result.sample < result.rows else []
    facts += [result.clusters] if result.clusters else []
    return _block(tag("p", " · ".join(facts), cls="muted"), *findings(result))


@as_html.register
def _(result: Explanation) -> str:
    rows = [
        [rule.label, f"{rule.rows:,}", percent(rule.coverage, 0), percent(rule.precision, 0),
         tag("span", tag("bdi", rule.text) if rule.describes else "no short rule", cls="prose")]
        for rule in result.rules
    ]  # fmt: skip
    cost = None
    if result.cost_ratio is not None:
        leaves = count(len(result), "leaf", "leaves")
        cost = tag("p", f"A tree of thresholds with {leaves} has {result.cost_text}.", cls="muted")
    note = ". Coverage: share of the cluster that fits its rule. Precision: share of the rows that fit that is in it."
    table = _numbers(["cluster", "rows", "coverage", "precision", "rule"], rows, left=(0, 4))
    return _titled(f"Rules of {count(len(result), 'cluster')}", note, table, cost)


@as_html.register
def _(result: LinkageMatrix) -> str | None:
    if not result.is_tree():
        return None  # a slice, or the result of arithmetic: notebooks show its text
    display = DendrogramDisplay.from_result(result)
    note = f": a matrix {result.shape} in SciPy's format."
    return _titled(f"Tree of {count(display.n)}", note, _tree(display, result.method))


@as_html.register
def _(result: JobResult) -> str:
    (*header, last), *rows = cluster_rows(result)
    rules = [None if cluster.rule is None else str(cluster.rule) for cluster in result.clusters]
    cells = [[*row[:-1], tag("span", tag("bdi", row[-1]), cls="prose")] for row in rows]
    if any(rules):  # the row of noise has none
        cells = [[*row, tag("span", tag("bdi", rule or ""), cls="prose")] for row, rule in zip_longest(cells, rules)]
    titles = [*header, last, *([RULE_HEADER] if any(rules) else [])]
    choice = result.choice
    return _block(
        *(tag("p", line, cls="muted") for line in preparation_lines(result)),
        None if choice is None else tag("p", tag("strong", choice.heading), f": {choice.reason}"),
        tag("p", fit_line(result)), _numbers(titles, cells, left=(0, *range(len(header), len(titles)))),
        *(tag("p", f"Warning: {warning}") for warning in result.warnings),
        *(tag("p", line, cls="muted") for line in written_files(result)),
    )  # fmt: skip


def _tree(display: DendrogramDisplay, method: str) -> Markup:
    data = plain(display)
    if display.k == 1:  # no cut: leaves have no colours of clusters
        data["leaf_cluster"] = [-1] * len(data["leaf_cluster"])
    return dendrogram(data, of_centers=False, method=f"{method} linkage".strip())


def _clusters(clusters: FittedClusters) -> list[Markup]:
    """The clusters of a fitted model: sizes, and the columns in which each stands out."""
    shown = sorted(sorted(range(clusters.k), key=lambda j: -clusters.shares[j])[:MAX_CLUSTERS])
    header = ["cluster", *(["rows"] if clusters.sizes is not None else []), "share"]
    header += ["stands out by"] if clusters.traits is not None else []
    largest = max(clusters.shares) or 1.0
    shades = colours(clusters.k)
    rows: list[list[Any]] = []
    for j in shown:
        bar = tag("rect", width=round(60 * clusters.shares[j] / largest, 1), height=8, rx=2, fill=shades[j])
        bar = tag("svg", bar, viewBox="0 0 60 8", width=60, height=8, cls="portion", aria_hidden="true")
        sizes = [] if clusters.sizes is None else [f"{clusters.sizes[j]:,}"]
        traits = [] if clusters.traits is None else [_traits(clusters.traits[j])]
        rows.append([cluster_name(shades[j], str(j)), *sizes, [bar, percent(clusters.shares[j])], *traits])
    table, notes = _numbers(header, rows), []
    if clusters.traits is not None:
        table = _numbers(header, rows, left=(0, len(header) - 1))
        notes.append("Value of the center, and mean of all centers, in the units of X.")
    if len(shown) < clusters.k:
        notes.append(f"The {len(shown)} largest of {clusters.k:,} clusters.")
    note = tag("p", " ".join(notes), cls="muted") if notes else None
    return [tag("p", " · ".join(clusters.facts)), scrollable(table), note or Markup()]


def _traits(traits: Sequence[tuple[str, float, float]]) -> Markup:
    parts: list[Any] = []
    for i, (column, value, mean) in enumerate(traits):
        parts += [", " if i else "", tag("bdi", short_name(column)), f" {compact(value)} (mean {compact(mean)})"]
    return tag("span", parts or "nothing: close to the mean", cls="prose" if parts else "muted")


def _dicts(rows: Sequence[Mapping[str, Any]], best: int | None = None) -> Markup:
    """A table of dictionaries with the same keys; the row whose `best` or `recommended` is true is marked."""
    marks = [i for i, row in enumerate(rows) if row.get("best") or row.get("recommended")]
    keys = [key for key in (rows[0] if rows else {}) if key not in ("best", "recommended")]
    header = [HEADERS.get(key, key.replace("_", " ")) for key in keys]
    cells = [[_cell(row[key]) for key in keys] for row in rows]
    return _numbers(header, cells, marks[0] if marks else best)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if value is None or isinstance(value, int | float) else str(value)


def _numbers(
    header: Sequence[str], rows: Sequence[Sequence[Any]], best: int | None = None, left: Sequence[int] = (0,)
) -> Markup:
    """A table whose row `best` is marked, shortened to `MAX_ROWS` rows."""
    marked = [[f"{row[0]} ◀", *row[1:]] if i == best else row for i, row in enumerate(rows)]
    n_hidden = len(rows) - MAX_ROWS
    note = tag("p", f"… and {n_hidden:,} more rows: see table()", cls="muted") if n_hidden > 0 else None
    return tag("div", numbers(header, marked[:MAX_ROWS], left), note, cls="scroll")


def _result(heading: str, note: str, table: Any, chart: Any, details: Any = None) -> str:
    """A heading with a note, and a table and a chart, side by side where there is space."""
    drawing = tag("div", chart, cls="drawing") if chart is not None else None
    beside = tag("div", tag("div", table), drawing, cls="side")
    return _titled(heading, note, beside, details)


def _titled(heading: str, note: str, *content: Any) -> str:
    return _block(tag("p", tag("strong", heading), note), *content)


def _block(*content: Any) -> str:
    return f'<div class="{CLASS}"><style>{_style()}</style>{tag("div", *content)}</div>'


@cache
def _style() -> str:
    """The rules of charts and tables, nested so that they apply to results only."""
    shared = "\n".join(SHARED.findall(page_stylesheet() + report_stylesheet()))
    notebook = files("coterie.report").joinpath("notebook.css").read_text(encoding="utf-8")
    return f".{CLASS} {{\n{shared}\n}}\n{notebook}"
