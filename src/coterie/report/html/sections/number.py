"""How many clusters? What every criterion measured, and who votes for what."""

from __future__ import annotations

from coterie.plots.display import plain
from coterie.report.html.charts import criteria as charts
from coterie.report.html.charts.votes import votes
from coterie.report.html.report import Absent, Criteria
from coterie.report.html.sections.section import absent, section
from coterie.report.html.words import listed
from coterie.web import Markup, tag


def number(found: Criteria | Absent, *, reason: bool) -> Markup:
    """Votes first, then a chart for each criterion, then what was not asked; `reason`: why, in words."""
    title = "How many clusters?"
    if isinstance(found, Absent):
        return section("number", title, absent(found))
    drawn = [
        charts.elbow(plain(found.elbow)),
        *([charts.gap(plain(found.gap), found.vote("gap"))] if found.gap is not None else []),
        *(charts.index(plain(index)) for index in found.indices),
        *(charts.information(plain(table)) for table in found.information),
        *(charts.stability(plain(curve)) for curve in found.stability),
    ]
    looked = "" if found.rows == found.n else f" Judged by {found.rows:,} of {found.n:,} rows, drawn at random."
    why = f" {found.reason}" if reason else ""
    intro = f"K = {found.recommended} is recommended, with a support of {found.confidence:.2f} of 1.{why}"
    return section(
        "number",
        title,
        tag("p", f"{intro} Clusters judged are those of {found.clusters_by}.{looked}"),
        votes(plain(found.votes)),
        tag("div", drawn, cls="grid small"),
        _left_out(found.left_out),
    )


def _left_out(options: dict[str, str]) -> Markup | None:
    if not options:
        return None
    by_option: dict[str, list[str]] = {}
    for name, option in options.items():
        by_option.setdefault(option, []).append(name)
    told = "; ".join(f"{listed(names)}: {option}" for option, names in by_option.items())
    return tag("p", f"Not computed: {told}.", cls="muted")
