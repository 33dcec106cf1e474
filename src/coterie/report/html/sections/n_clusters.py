"""How many clusters? The votes and the values of all criteria."""

from coterie.core.formatting import join_words
from coterie.plots.display import plain
from coterie.report.html.charts import criteria as charts
from coterie.report.html.charts.criteria import votes
from coterie.report.html.report import Absent, Criteria
from coterie.report.html.sections.section import absent, section
from coterie.report.results import Choice
from coterie.web import Markup, tag


def n_clusters(criteria: Criteria | Absent, *, with_reason: bool) -> Markup:
    """Votes first, then a chart for each criterion, then the criteria that were not computed."""
    title = "How many clusters?"
    if isinstance(criteria, Absent):
        return section("number", title, absent(criteria))
    drawn = [
        charts.elbow(plain(criteria.elbow)),
        *([charts.gap(plain(criteria.gap), criteria.vote("gap"))] if criteria.gap is not None else []),
        *(charts.index(plain(index)) for index in criteria.indices),
        *(charts.information(plain(table)) for table in criteria.information),
        *(charts.stability(plain(curve)) for curve in criteria.stability),
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
