"""Vectors in a column: the same rows as with a column for each of their places."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from coterie import AgglomerativeClustering, KMeans
from coterie.data import as_source
from coterie.data.tables import scan as tables
from coterie.data.tables import vector_columns
from coterie.errors import InputError

ARRAY, LIST = pl.Array(pl.Float32, 5), pl.List(pl.Float32)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return ((6 * rng.normal(size=(3, 5)))[rng.integers(3, size=90)] + rng.normal(size=(90, 5))).astype(np.float32)


def frame(X, kind):
    return pl.DataFrame({"size": X[:, 0], "text": pl.Series(X.tolist(), dtype=kind), "end": X[:, 1]})


def plain(X):
    return pl.DataFrame({"size": X[:, 0], **{f"text_{j}": X[:, j] for j in range(5)}, "end": X[:, 1]})


@pytest.mark.parametrize("kind", [ARRAY, LIST])
def test_a_vector_is_a_column_for_each_place_wherever_it_is(X, tmp_path, kind):
    given = frame(X, kind)
    given.write_parquet(tmp_path / "t.parquet")
    given.write_ipc(tmp_path / "t.arrow")
    expected = KMeans(3, random_state=0).fit(plain(X))
    for rows in (given, given.lazy(), tmp_path / "t.parquet", tmp_path / "t.arrow"):
        model = KMeans(3, random_state=0).fit(rows)
        assert list(model.feature_names_in_) == plain(X).columns
        assert model.cluster_centers_.dtype == np.float32
        np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
        np.testing.assert_array_equal(model.predict(rows), expected.labels_)
        assert AgglomerativeClustering(3).fit(rows).n_features_in_ == 7


@pytest.mark.parametrize("rows", [1, 40, 1000])
@pytest.mark.parametrize("kind", [ARRAY, LIST])
def test_batches_have_the_places_of_vectors_as_columns(X, kind, rows):
    found = tables.scan_frame(frame(X, kind).lazy())
    assert found.schema == dict(plain(X).schema)
    assert_frame_equal(pl.concat(found.batches(rows=rows)), plain(X))
    some = ["text_3", "end", "text_0"]
    assert_frame_equal(pl.concat(found.batches(some, rows=rows)), plain(X).select(some))
    assert pl.concat(found.batches(["text_2"]))["text_2"].to_list() == X[:, 2].tolist()


@pytest.mark.parametrize("kind", [ARRAY, LIST])
def test_a_vector_that_is_missing_is_missing_in_every_place(X, kind):
    given = frame(X, kind).with_columns(pl.when(pl.int_range(pl.len()) > 2).then("text"))
    holes = np.isnan(as_source(given).X)
    assert holes.sum() == 15
    np.testing.assert_array_equal(holes, np.isnan(as_source(given.lazy()).X))


@pytest.mark.parametrize("lazy", [False, True])
def test_lists_of_other_lengths_are_rejected_by_the_number_of_the_row(lazy, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 2)
    given = pl.DataFrame({"v": [None, [1.0, 2.0], [3.0, 4.0], None, [5.0], [1.0, 2.0]]})
    with pytest.raises(InputError, match=r"'v' has a list of 1 numbers in row 4 .* of 2 in the first row"):
        as_source(given.lazy() if lazy else given)


def test_existing_names_are_rejected():
    with pytest.raises(InputError, match="'v' holds lists, which become 'v_0' and others"):
        as_source(pl.DataFrame({"v": [[1.0, 2.0]], "v_0": [3.0]}))


def test_lists_of_anything_but_numbers_stay_what_they_are():
    given = pl.DataFrame(
        {"words": [["a"], ["b"]], "lists": [[[1]], [[2]]], "nothing": pl.Series([None, None], dtype=LIST)}
    )
    assert vector_columns.flatten(given) is given
    with pytest.raises(InputError, match="not numbers: 'words'"):
        as_source(given)
