"""Charts and sections of the report for one run, as fragments of HTML."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from coterie.app.execution import Outcome, job_of
from coterie.app.failures import NotAvailable, in_page
from coterie.app.run_views import names_of
from coterie.app.session import Session
from coterie.app.state import Run
from coterie.core.progress import silent
from coterie.jobs import fit_job
from coterie.jobs.fit_job import ClusteredTable
from coterie.jobs.labelled_table import NewColumns
from coterie.plots.display import plain
from coterie.plots.silhouette_display import SilhouetteDisplay
from coterie.report.build import profiles, reliability
from coterie.report.build.fit_report import convergence_of
from coterie.report.html.charts.convergence import convergence, text_without_curve
from coterie.report.html.charts.profiles import boxes, means, shares
from coterie.report.html.charts.silhouettes import CERTAINTY, SILHOUETTES, areas
from coterie.report.html.report import Absent, Report
from coterie.report.html.sections import cards, diagnosis
from coterie.report.html.sections import reliability as reliability_section
from coterie.web.markup import joined, tag


def chart_of(session: Session, run: str, name: str) -> str:
    """A chart of a run by its name."""
    outcome, known = session.outcome(run), session.run(run)
    try:
        if name in SECTIONS:  # for which the whole report is computed
            drawn = SECTIONS[name](session.report(known, outcome))
        else:
            drawn = CHARTS[name](named_content(known, outcome))
        return in_page(str(drawn), outcome.prepared.prepared.table.columns)
    except NotAvailable as error:
        return str(tag("p", str(error), cls="muted"))


def report_of(session: Session, run: Run, outcome: Outcome) -> Report:
    """All data of the report of a run; it is computed at the first call, and kept with the outcome."""
    content = named_content(run, outcome)
    job = job_of(run, session.open_table().path, names=tuple(content.names or ()))
    return fit_job.fit_report(job, content, None, silent)


def named_content(run: Run, outcome: Outcome) -> ClusteredTable:
    """The clusters with the names that the user gave, also in the new columns of the table."""
    content = outcome.clusters
    if not run.names:
        return content
    names, rows = names_of(run, content.result.k), content.prepared.rows
    clusters = tuple(replace(each, name=names[each.label]) for each in content.clusters)
    columns = NewColumns(partial(content.fitted.columns, rows.model_input, names=names), rows.n)
    result = replace(content.result, clusters=clusters)
    return replace(content, clusters=clusters, names=names, columns=columns, result=result)


def _silhouettes(content: ClusteredTable) -> Any:
    display = content.measured
    if not isinstance(display, SilhouetteDisplay):
        raise NotAvailable(f"No silhouettes: {in_page(display.reason)}.")
    names = [one.display_name for one in content.clusters]
    certainty = None
    if content.fitted.model is not None:
        fit = replace(content.fitted, labels=content.labels)
        certainty = reliability.certainty(fit, content.members, _codes(content), names)
    drawn = areas(plain(replace(display, names=names)), SILHOUETTES)
    return joined(drawn, areas(plain(certainty), CERTAINTY)) if certainty else drawn


def _profiles(content: ClusteredTable) -> Any:
    names = [one.display_name for one in content.clusters]
    codes = _codes(content)
    averages = profiles.means(content.members, codes, content.clusters, names)
    spreads = profiles.spreads(content.members, codes, averages)
    categories = profiles.shares(content.table, content.members, codes, names, averages.sizes)
    parts = [means(plain(averages))] if averages.columns else []
    parts += [boxes(plain(spreads))] if spreads.columns else []
    return joined(*parts, *(shares(plain(each)) for each in categories))


def _convergence(content: ClusteredTable) -> Any:
    display = convergence_of(None if content.fitted.model is None else content.fitted)
    text = display.reason if isinstance(display, Absent) else text_without_curve(plain(display))
    if text is not None:
        raise NotAvailable(text)
    return convergence(plain(display))


def _codes(content: ClusteredTable) -> Any:
    return np.searchsorted([one.label for one in content.clusters], content.labels)


CHARTS: dict[str, Callable[[ClusteredTable], Any]] = {
    "silhouettes": _silhouettes,
    "profiles": _profiles,
    "convergence": _convergence,
}
SECTIONS: dict[str, Callable[[Report], Any]] = {
    "reliability": reliability_section.reliability,
    "checks": diagnosis.diagnosis,
    "cards": cards.cards,
}
