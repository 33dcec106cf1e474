"""Cards with the five main numbers."""

from coterie.core.formatting import count
from coterie.plots import SilhouetteDisplay
from coterie.report.formatting import two_places
from coterie.report.html.report import Absent, Measure, Report
from coterie.web import Markup, tag


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
