"""The rows of a table that are in a cluster: noise is left out of means, silhouettes, rules and profiles."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from coterie.core.formatting import count
from coterie.data.tables.reader import Table
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.scaling import Matrix, blocks


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
    X = rows.X
    if n_without:
        X = table.allocate((int(np.count_nonzero(mask)), rows.X.shape[1]), rows.X.dtype)
        _copy_rows(rows.X, mask, X)
    has_missing = rows.has_missing and any(bool(np.isnan(block).any()) for block in blocks(X))
    rows = replace(
        rows, X=X, model_input=X, row_mask=rows.row_mask & table_mask, treatment=treatment, has_missing=has_missing
    )
    return replace(prepared, rows=rows, weight=None if prepared.weight is None else prepared.weight[mask])


def _copy_rows(X: Matrix, mask: NDArray[np.bool_], target: Matrix) -> None:
    start = stop = 0
    for block in blocks(X):
        selected = block[mask[start : start + len(block)]]
        target[stop : stop + len(selected)] = selected
        start, stop = start + len(block), stop + len(selected)
