"""Predicted clusters as plain text for a terminal."""

from coterie.report.prediction import PredictionResult
from coterie.report.text.layout import columns, count


def prediction_text(result: PredictionResult) -> str:
    """The table, and the number of rows in each cluster."""
    rows = [[str(label), f"{size:,}", f"{size / result.rows_used:.1%}"] for label, size in result.sizes.items()]
    lines = [
        f"{result.source}  {count(result.rows, 'row')} · {result.estimator} of {result.model}",
        f"missing: {result.missing}",
        "",
        *columns([["cluster", "rows", "share"], *rows]),
    ]
    if result.output is not None:
        added = "".join(f", + {name}" for name in result.added)
        lines.append(f"wrote {result.output} ({count(result.rows, 'row')}{added})")
    return "\n".join(lines)
