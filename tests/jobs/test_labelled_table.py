"""New columns are computed in blocks that always start at the same rows."""

import numpy as np
import pytest

pytest.importorskip("polars")

from coterie.jobs import labelled_table
from coterie.jobs.labelled_table import NewColumns


@pytest.mark.parametrize("step", [1, 3, 10, 25])
def test_new_columns_are_those_of_blocks_that_begin_at_the_same_rows(monkeypatch, step):
    monkeypatch.setattr(labelled_table, "BLOCK_ROWS", 10)
    asked = []

    def ask(rows: slice) -> dict:
        asked.append((rows.start, rows.stop))
        return {"at": np.arange(rows.start, rows.stop), "first": np.full(rows.stop - rows.start, rows.start)}

    found = NewColumns(ask, 25)
    parts = [found(slice(start, min(start + step, 25))) for start in range(0, 25, step)]
    assert np.concatenate([part["at"] for part in parts]).tolist() == list(range(25))
    assert np.concatenate([part["first"] for part in parts]).tolist() == [0] * 10 + [10] * 10 + [20] * 5
    assert asked == [(0, 10), (10, 20), (20, 25)]
