"""Comparison of the clusters of two runs: agreement, matched clusters, and rows that moved."""

from typing import Any

import numpy as np

from coterie.app.blob import blob
from coterie.app.failures import FieldError
from coterie.app.session import Session
from coterie.core.arrays import Array
from coterie.metrics import adjusted_mutual_info_score, adjusted_rand_score, matched_confusion
from coterie.plots.display import plain

MAX_ROWS = 1000  # rows that moved, in an answer


def compare(session: Session, a: str, b: str) -> dict[str, Any]:
    """Agreement of two runs, on the rows that are in a cluster of both; clusters are matched one to one."""
    before, after = (session.outcome(run).clusters.result.labels for run in (a, b))
    in_both = _in_both(before, after)
    x, y = before[in_both], after[in_both]
    confusion = matched_confusion(x, y)
    moved = np.flatnonzero(_moved(before, after))
    return plain({
        "a": a, "b": b, "rows": len(x), "moved": len(moved), "moved_rows": moved[:MAX_ROWS],
        "adjusted_rand": adjusted_rand_score(x, y), "adjusted_mutual_information": adjusted_mutual_info_score(x, y),
        "agreement": confusion.accuracy, "before": confusion.classes, "after": confusion.clusters,
        "table": confusion.table, "matching": {str(new): int(old) for new, old in confusion.matching.items()},
    })  # fmt: skip


def moved_rows(session: Session, a: str, b: str) -> bytes:
    """A byte for each displayed row: 1 if it is in another cluster."""
    moved = _moved(*(session.outcome(run).clusters.result.labels for run in (a, b)))[session.open_table().displayed]
    return blob({"a": a, "b": b, "m": len(moved)}, {"moved": moved.astype(np.uint8)})


def _moved(before: Array, after: Array) -> Array:
    """Mask of the rows whose cluster does not match the one before."""
    in_both = _in_both(before, after)
    matching = matched_confusion(before[in_both], after[in_both]).matching
    matched = np.full(int(after.max()) + 2, -1)
    for new, old in matching.items():
        matched[int(new)] = int(old)
    moved: Array = in_both & (matched[after] != before)
    return moved


def _in_both(before: Array, after: Array) -> Array:
    in_both: Array = (before >= 0) & (after >= 0)
    if not in_both.any():
        raise FieldError("No row is in a cluster of both runs.", "run", 409)
    return in_both
