"""A comparison of algorithms as plain text for a terminal."""

from coterie.report.comparison import ComparisonResult
from coterie.report.text.heading import heading, page_lines
from coterie.report.text.layout import columns, number, two_places

HEADER = ["run", "K", "inertia", "silhouette", "Davies–Bouldin", "Calinski–Harabasz", "smallest", "seconds"]


def comparison_text(result: ComparisonResult) -> str:
    """A line for each run, and the agreement of the best runs."""
    has_several_ks = len(result.runs) > len(result.agreement)
    rows = [
        [
            f"{run.method}{' ◀' if has_several_ks and run.best else ''}",
            str(run.k),
            number(run.inertia),
            two_places(run.silhouette),
            two_places(run.davies_bouldin),
            number(run.calinski_harabasz),
            f"{run.smallest:,}",
            two_places(run.seconds),
        ]
        for run in result.runs
    ]
    lines = [*heading(result), "", *columns([HEADER, *rows], left=[0])]
    if len(result.agreement) > 1:
        best = [f"{run.method}, {run.k}" for run in result.runs if run.best]
        cells = [[name, *map(two_places, row)] for name, row in zip(best, result.agreement, strict=True)]
        lines += ["", *columns([["agreement (adjusted Rand)", *best], *cells], left=[0])]
    return "\n".join([*lines, *page_lines(result)])
