"""Lines that all results over a table have: what was read, and the page that was written."""

from coterie.report.table import TableResult
from coterie.report.text.layout import count, in_bytes, some


def heading(result: TableResult) -> list[str]:
    """What was read, and how it was treated."""
    names = [column.name for column in result.skipped]
    note = f" (skipped: {some(names)})" if names else ""
    counts = f"{count(result.rows, 'row')} · {count(result.n_columns, 'column')}"
    return [
        f"{result.source}  {counts} → using {_used(result)}{note}",
        f"scaling: {result.scale} · missing: {result.missing} · seed {result.seed}",
    ]


def page_lines(result: TableResult) -> list[str]:
    """The page that was written about a result, if there is one."""
    if result.report is None:
        return []
    size = "" if result.report_size is None else f", {in_bytes(result.report_size)}"
    return [f"wrote {result.report} (the report{size})"]


def _used(result: TableResult) -> str:
    parts = {"numeric": len(result.columns), "of categories": len(result.categories)}
    return " and ".join(f"{number:,} {kind}" for kind, number in parts.items() if number)
