"""The top of a page: its title, how the result was computed, and cards with the five main numbers."""

from coterie.core.formatting import count
from coterie.diagnosis.findings import join_names
from coterie.plots import SilhouetteDisplay
from coterie.report.formatting import short_name, two_places
from coterie.report.html.report import Absent, Measure, PageData, Report
from coterie.web import Markup, tag

MAX_NAMES = 40  # columns that are listed


def heading(title: str, report: PageData, facts: list[str]) -> Markup:
    """The title, one line of facts, and the columns that were used and skipped."""
    result = report.result
    rows = count(result.rows) if result.rows_used == result.rows else f"{result.rows_used:,} of {count(result.rows)}"
    kinds = {"numeric column": len(result.columns), "categorical column": len(result.categories)}
    columns = " and ".join(count(size, kind) for kind, size in kinds.items() if size)
    columns += f", {len(result.skipped):,} skipped" if result.skipped else ""
    line = [rows, columns, f"scaling: {result.scale}", f"missing: {result.missing}", *facts, f"seed {result.seed}"]
    entries = {"numeric": list(result.columns), "categorical": list(result.categories)}
    entries["missing values"] = [f"{name}: {n:,}" for name, n in result.missing_values.items()]
    for column in result.skipped:
        entries.setdefault(f"skipped: {column.reason}", []).append(column.name)
    names = []
    for kind, each in entries.items():
        text = join_names([short_name(name) for name in each], MAX_NAMES)
        names += [(tag("dt", kind), tag("dd", text))] if each else []
    return tag(
        "header",
        tag("h1", title),
        tag("p", " · ".join([*line, f"coterie {report.reproduce.versions['coterie']}"]), cls="facts muted"),
        tag("details", tag("summary", "Columns used and skipped"), tag("dl", names)),
    )


def cards(report: Report) -> Markup:
    """Number of clusters, silhouette, explained variance or likelihood, stability, iterations."""
    k, explained = report.requested_k, report.explained
    measures = [
        Measure(
            "clusters",
            f"{len(report.names):,}",
            "from the given labels or model" if k == "given" else f"K requested: {k}",
        ),
        _silhouette(report.silhouettes),
        explained if isinstance(explained, Measure) else Measure("variance explained", "–", explained.reason),
        _stability(report),
        _iterations(report),
    ]
    card = [
        [tag("div", getattr(measure, part), cls=part) for part in ("label", "value", "about")] for measure in measures
    ]
    return tag("div", [tag("div", parts, cls="card") for parts in card], cls="cards")


def _silhouette(display: SilhouetteDisplay | Absent) -> Measure:
    if isinstance(display, Absent):
        return Measure("mean silhouette", "–", display.reason)
    about = f"of {display.sampled:,} of {display.n:,} rows" if display.sampled else f"of all {count(display.n)}"
    return Measure("mean silhouette", two_places(display.mean), about)


def _stability(report: Report) -> Measure:
    stability = report.stability
    if isinstance(stability, Absent):
        return Measure("stability", "–", stability.reason)
    sample = "" if stability.rows == report.result.rows_used else f" of {stability.rows:,} rows"
    return Measure("stability", two_places(stability.mean), f"mean ARI of {stability.resamples} resamples{sample}")


def _iterations(report: Report) -> Measure:
    result = report.result
    if report.requested_k == "given":
        return Measure("iterations", "–", "clusters were given")
    if result.iterations is None:
        is_from_sweep = result.seconds is None
        reason = "the fit was made while K was chosen" if is_from_sweep else "this algorithm has no iterations"
        return Measure("iterations", "–", reason)
    n_init = result.options.get("n_init")
    restarts = f", best of {n_init} restarts" if isinstance(n_init, int) and n_init > 1 else ""
    state = "converged" if result.converged else "not converged"
    return Measure("iterations", f"{result.iterations:,}", state + restarts)
