"""Notes about text that is read as numbers."""

import polars as pl

from coterie import Job


def test_columns_whose_separator_is_uncertain_have_one_note():
    values = ["23.110", "24.205", "21.570", "20.151"]
    table = pl.DataFrame({"jan": values, "feb": values[::-1], "other": [1.0, 2.0, 8.0, 9.0]})
    notes = Job(table, k=2, include=("jan", "feb")).run().notes
    (note,) = [note for note in notes if "decimal" in note]
    assert note == 'columns jan, feb: "23.110" is read as 23.11 in jan; decimal="comma" reads them otherwise.'
    (note,) = [note for note in Job(table.drop("feb"), k=2).run().notes if "decimal" in note]
    assert note.startswith('column "jan": "23.110" is read as 23.11;')
