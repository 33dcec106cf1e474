"""Five numbers to begin with."""

from __future__ import annotations

from coterie.report.html.report import Absent, Measure, Report
from coterie.report.html.words import count, two_places
from coterie.web import Markup, tag


def cards(report: Report) -> Markup:
    """Clusters, silhouette, what is explained, stability, iterations."""
    explained = report.explained
    shown = [
        _clusters(report),
        _silhouette(report),
        explained if isinstance(explained, Measure) else Measure("variance explained", "–", explained.why),
        _stability(report),
        _iterations(report),
    ]
    return tag("div", [_card(measure) for measure in shown], cls="cards")


def _card(measure: Measure) -> Markup:
    return tag(
        "div",
        tag("div", measure.label, cls="label"),
        tag("div", measure.value, cls="value"),
        tag("div", measure.about, cls="about"),
        cls="card",
    )


def _clusters(report: Report) -> Measure:
    return Measure("clusters", f"{len(report.names):,}", f"K asked: {report.asked}")


def _silhouette(report: Report) -> Measure:
    found = report.silhouettes
    if isinstance(found, Absent):
        return Measure("mean silhouette", "–", found.why)
    about = f"of {found.sampled:,} of {found.n:,} rows" if found.sampled else f"of all {count(found.n, 'row')}"
    return Measure("mean silhouette", two_places(found.mean), about)


def _stability(report: Report) -> Measure:
    found = report.stable
    if isinstance(found, Absent):
        return Measure("stability", "–", found.why)
    drawn = "" if found.rows == report.result.rows_used else f" of {found.rows:,} rows"
    return Measure("stability", two_places(found.mean), f"mean ARI of {found.resamples} resamples{drawn}")


def _iterations(report: Report) -> Measure:
    result = report.result
    if report.asked == "given":
        return Measure("iterations", "–", "clusters were given")
    if result.iterations is None:
        return Measure("iterations", "–", "this algorithm has none")
    n_init = result.options.get("n_init")
    starts = [f"best of {n_init} starts"] if isinstance(n_init, int) and n_init > 1 else []
    ended = "converged" if result.converged else "not converged"
    return Measure("iterations", f"{result.iterations:,}", ", ".join([ended, *starts]))
