"""Lines that all results have: the table, its preparation, and the report that was written."""

from coterie.report.table import TableResult
from coterie.report.text.layout import count, first_names, in_bytes


def heading(result: TableResult) -> list[str]:
    """The table, and how it was prepared."""
    names = [column.name for column in result.skipped]
    note = f" (skipped: {first_names(names)})" if names else ""
    counts = f"{count(result.rows, 'row')} · {count(result.n_columns, 'column')}"
    return [
        f"{result.source}  {counts} → using {_used(result)}{note}",
        f"scaling: {result.scale} · missing: {result.missing} · seed {result.seed}",
    ]


def page_lines(result: TableResult) -> list[str]:
    """The line about the report, if one was written."""
    if result.report is None:
        return []
    size = "" if result.report_size is None else f", {in_bytes(result.report_size)}"
    return [f"wrote {result.report} (report{size})"]


def _used(result: TableResult) -> str:
    parts = {"numeric": len(result.columns), "categorical": len(result.categories)}
    return " and ".join(f"{number:,} {kind}" for kind, number in parts.items() if number)
