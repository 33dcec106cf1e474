"""The rows of a table that are in a cluster: noise is left out of means, silhouettes, rules and profiles."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from coterie.core.formatting import count
from coterie.data.tables.reader import Table
from coterie.preparation.fit_preparation import PreparedTable, selected_rows
from coterie.preparation.scaling import blocks


def clustered_rows(
    table: Table, prepared: PreparedTable, labels: NDArray[np.integer]
) -> tuple[PreparedTable, NDArray[np.integer]]:
    """The prepared rows with a label of at least 0, and their labels."""
    is_member = labels >= 0
    if is_member.all():
        return prepared, labels
    return select_rows(table, prepared, prepared.rows.expand(labels) >= 0), labels[is_member]


def select_rows(table: Table, prepared: PreparedTable, table_mask: NDArray[np.bool_]) -> PreparedTable:
    """The prepared rows that are also in a mask of the rows of the table."""
    rows, mask = prepared.rows, table_mask[prepared.rows.row_mask]
    n_without = int((~mask).sum())
    note = f"{count(n_without)} in no cluster left out"
    treatment = rows.treatment if n_without == 0 else note if rows.treatment == "none" else f"{rows.treatment}; {note}"
    X = selected_rows(table, rows.X, mask)
    has_missing = rows.has_missing and any(bool(np.isnan(block).any()) for block in blocks(X))
    rows = replace(
        rows, X=X, model_input=X, row_mask=rows.row_mask & table_mask, treatment=treatment, has_missing=has_missing
    )
    return replace(prepared, rows=rows, weight=None if prepared.weight is None else prepared.weight[mask])
