"""Rows of every container come out as the same numbers, and are copied only where that is needed."""

import numpy as np
import pytest
from scipy import sparse

from coterie import KMeans
from coterie.data import as_source
from coterie.data.memory import part_bounds
from coterie.errors import InputError

NAMES = ("a", "b", "c")


@pytest.fixture
def X():
    """Three groups; a third of the values are zero, so that sparse forms differ from dense ones."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, 3)) + np.repeat([[0, 0, 0], [8, 0, 0], [0, 8, 8]], 20, axis=0)
    return np.where(rng.random(rows.shape) < 1 / 3, 0.0, rows)


def pandas_frame(X):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=list(NAMES[: X.shape[1]]))


def polars_frame(X):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})


def arrow_table(X):
    arrow = pytest.importorskip("pyarrow")
    return arrow.table({name: X[:, j] for j, name in enumerate(NAMES)})


FRAMES = pytest.mark.parametrize("frame", [pandas_frame, polars_frame, arrow_table])
SPARSE = pytest.mark.parametrize(
    "form",
    [
        sparse.csr_array, sparse.csc_array, sparse.coo_array,
        sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.lil_matrix,
    ],
)  # fmt: skip


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


# NumPy


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_array_in_c_order_is_used_as_it_is(X, dtype):
    X = X.astype(dtype)
    source = as_source(X)
    assert source.X.dtype == dtype
    assert np.shares_memory(source.X, X)
    assert source.shape == X.shape
    assert source.dtype == dtype


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda X: X[::-1],
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: np.repeat(X, 2, 0)[::2],
    ],
    ids=["Fortran", "backwards", "every other column", "every other row"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_other_layouts_come_out_in_c_order_with_the_same_values(X, dtype, layout):
    laid = layout(X.astype(dtype))
    rows = as_source(laid).X
    assert rows.flags.c_contiguous
    assert rows.dtype == dtype
    np.testing.assert_array_equal(rows, laid)


def test_a_read_only_array_is_neither_copied_nor_written_to(X):
    X.setflags(write=False)
    assert np.shares_memory(as_source(X).X, X)
    before = X.copy()
    KMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("n", [60, 6000])
def test_a_fit_writes_neither_to_rows_nor_to_weights_nor_to_the_start(n):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, 8)), rng.random(n)
    start = X[:5].copy()
    before = X.copy(), w.copy(), start.copy()
    KMeans(5, init=start).fit(X, sample_weight=w).transform(X)
    for now, then in zip((X, w, start), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_a_memory_map_is_not_loaded(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert np.shares_memory(as_source(mapped).X, mapped)


@pytest.mark.parametrize("as_path", [str, lambda path: path], ids=["str", "Path"])
def test_the_path_of_an_npy_file_is_memory_mapped(X, as_path, tmp_path):
    np.save(tmp_path / "rows.npy", X.astype(np.float32))
    rows = as_source(as_path(tmp_path / "rows.npy")).X
    base = rows
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, X.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.bool_, np.float16, ">f8"])
def test_other_numbers_become_float64(X, dtype):
    given = np.round(X).astype(dtype)
    rows = as_source(given).X
    assert rows.dtype == np.float64
    assert rows.dtype.isnative
    np.testing.assert_array_equal(rows, given.astype(np.float64))


def test_lists_of_numbers_are_rows():
    np.testing.assert_array_equal(as_source([[1, 2], [3, 4.5]]).X, [[1.0, 2.0], [3.0, 4.5]])


# frames


@FRAMES
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_frames_keep_values_type_and_names(X, frame, dtype):
    source = as_source(frame(X.astype(dtype)))
    assert source.X.dtype == dtype
    assert source.X.flags.c_contiguous
    assert source.columns == list(NAMES)
    np.testing.assert_array_equal(source.X, X.astype(dtype))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_mixed_numbers_becomes_float64(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame(
        {"whole": [1, 2, 3], "single": np.array([0.5, 1.5, 2.5], np.float32), "flag": [True, False, True]}
    )
    source = as_source(frame)
    assert source.X.dtype == np.float64
    np.testing.assert_array_equal(source.X, [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]])


@FRAMES
def test_missing_values_of_a_frame_are_rejected_by_the_name_of_the_column(X, frame):
    X[[2, 5], 1] = np.nan
    with pytest.raises(InputError, match=r"NaN: b \(2\)"):
        KMeans(2).fit(frame(X))


@pytest.mark.parametrize("values", [[1.0, None, 3.0], [1, None, 3]], ids=["floats", "integers"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_nulls_are_missing_values(library, values):
    frames = pytest.importorskip(library)
    if library == "pandas":
        kind = "Int64" if isinstance(values[0], int) else "Float64"
        frame = frames.DataFrame({"a": [1.0, 2.0, 3.0], "b": frames.array(values, dtype=kind)})
    else:
        frame = (frames.table if library == "pyarrow" else frames.DataFrame)({"a": [1.0, 2.0, 3.0], "b": values})
    assert np.isnan(as_source(frame).X[1, 1])
    with pytest.raises(InputError, match=r"NaN: b \(1\)"):
        KMeans(2).fit(frame)


@pytest.mark.parametrize("columns", [[0, 1, 2], [2, 0, 1], [10, "b", 2.5]], ids=["numbered", "shuffled", "mixed"])
def test_columns_of_a_pandas_frame_may_have_any_names(X, columns):
    pandas = pytest.importorskip("pandas")
    source = as_source(pandas.DataFrame(X, columns=columns))
    np.testing.assert_array_equal(source.X, X)
    assert source.columns == [str(name) for name in columns]


def test_the_index_of_a_pandas_frame_changes_nothing(X):
    frame = pandas_frame(X)
    frame.index = np.arange(len(X))[::-1]
    np.testing.assert_array_equal(as_source(frame).X, X)


def test_weights_may_be_a_column_of_a_frame(X):
    pandas = pytest.importorskip("pandas")
    weight = pandas.Series(np.arange(60.0), index=np.arange(60)[::-1])
    np.testing.assert_array_equal(as_source(X, weight).w, np.arange(60.0))


# sparse


@SPARSE
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_stay_sparse_with_the_same_values(X, form, dtype):
    source = as_source(form(X.astype(dtype)))
    assert sparse.issparse(source.X)
    assert source.X.format == "csr"
    assert source.dtype == dtype
    np.testing.assert_array_equal(dense(source.X), X.astype(dtype))


def test_csr_values_are_not_copied(X):
    rows = sparse.csr_array(X)
    source = as_source(rows)
    assert np.shares_memory(source.X.data, rows.data)
    assert np.shares_memory(source.parts()[0]().X.data, rows.data)


def test_sparse_integers_become_float64(X):
    assert as_source(sparse.csr_array(np.round(X).astype(np.int64))).X.dtype == np.float64


def untidy_csr(X):
    """`X` with the entries of every row backwards, and each of them in two halves."""
    n, d = X.shape
    columns = np.tile(np.r_[np.arange(d)[::-1], np.arange(d)], n)
    values = 0.5 * np.hstack([X[:, ::-1], X]).ravel()
    return sparse.csr_array((values, columns, 2 * d * np.arange(n + 1)), shape=X.shape)


@pytest.mark.parametrize("n", [60, 6000], ids=["few rows", "many rows"])
def test_unsorted_and_repeated_entries_of_csr_rows_mean_their_sum(n):
    X = np.random.default_rng(0).normal(size=(n, 8))
    rows = untidy_csr(X)
    np.testing.assert_allclose(rows.toarray(), X, rtol=1e-15)
    data, indices = rows.data.copy(), rows.indices.copy()
    untidy = KMeans(5, init=X[:5]).fit(rows)
    tidy = KMeans(5, init=X[:5]).fit(sparse.csr_array(X))
    np.testing.assert_array_equal(untidy.labels_, tidy.labels_)
    assert untidy.inertia_ == pytest.approx(tidy.inertia_, rel=1e-9)
    np.testing.assert_array_equal(rows.data, data)  # the user's matrix is left as it is
    np.testing.assert_array_equal(rows.indices, indices)


# parts


SHAPES = [(1, 1), (7, 3), (2047, 4), (2049, 1), (20_000, 2), (40_000, 40), (300, 5000)]


@pytest.mark.parametrize("n, d", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_cover_every_row_once_in_order(n, d, weighted):
    X = np.arange(n * d, dtype=np.float32).reshape(n, d)
    w = np.arange(1.0, n + 1) if weighted else None
    chunks = [part() for part in as_source(X, w).parts()]
    assert [chunk.part for chunk in chunks] == list(range(len(chunks)))
    assert all(len(chunk.X) > 0 for chunk in chunks)
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in chunks]), X)
    if weighted:
        np.testing.assert_array_equal(np.concatenate([chunk.w for chunk in chunks]), w)
    else:
        assert all(chunk.w is None for chunk in chunks)


def test_parts_of_sparse_rows_cover_every_row_once_in_order():
    X = sparse.random_array((20_000, 30), density=0.1, format="csr", rng=np.random.default_rng(0))
    chunks = [part() for part in as_source(X).parts()]
    assert len(chunks) > 1
    assert (sparse.vstack([chunk.X for chunk in chunks]) != X).nnz == 0


def test_bounds_of_parts_depend_on_the_shape_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 10))

    def lengths(source):
        return [part().X.shape[0] for part in source.parts()]

    expected = lengths(as_source(X))
    assert len(expected) > 1
    for other in (X * 1e9, np.zeros_like(X), np.asfortranarray(X), sparse.csr_array(X)):
        assert lengths(as_source(other)) == expected
    assert lengths(as_source(X, rng.random(30_000))) == expected


@pytest.mark.parametrize("n, d", SHAPES)
def test_parts_are_of_equal_size_and_as_many_as_the_shape_says(n, d):
    lengths = [len(part().X) for part in as_source(np.zeros((n, d))).parts()]
    assert len(lengths) == len(part_bounds(n, d, 8)) - 1
    assert max(lengths) - min(lengths) <= 1


# pick and join


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rows", [[5, 0, 5], slice(2, 6), slice(None), np.array([59])])
def test_pick_gives_the_rows_asked_for_in_that_order(X, form, rows):
    w = np.arange(60.0)
    chunk = as_source(form(X), w).pick(rows)
    np.testing.assert_array_equal(dense(chunk.X), X[rows])
    np.testing.assert_array_equal(chunk.w, w[rows])
    assert as_source(form(X)).pick(rows).w is None


def test_join_puts_the_answers_of_the_parts_one_after_the_other():
    X = np.random.default_rng(0).normal(size=(200_000, 3))
    source = as_source(X)
    for answer in (lambda chunk: chunk.X[:, 0], lambda chunk: chunk.X[:, :2]):
        pieces = [answer(part()) for part in source.parts()]
        assert len(pieces) > 1
        np.testing.assert_array_equal(source.join(pieces), np.concatenate(pieces))
    np.testing.assert_array_equal(source.join([part().X for part in source.parts()]), X)


# weights


def test_weights_become_float64_and_are_not_copied_when_they_are(X):
    w = np.linspace(1, 2, 60)
    assert np.shares_memory(as_source(X, w).w, w)
    for given in (w.astype(np.float32), list(range(1, 61)), np.ones(60, np.int8)):
        found = as_source(X, given).w
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, np.asarray(given, np.float64))


def test_one_weight_is_the_weight_of_every_row(X):
    np.testing.assert_array_equal(as_source(X, 2.5).w, np.full(60, 2.5))


# the same numbers, the same answer


def containers(X, folder):
    np.save(folder / "rows.npy", X)
    padded = np.zeros((len(X), 2 * X.shape[1]), X.dtype)
    padded[:, ::2] = X
    return {
        "Fortran": np.asfortranarray(X),
        "strided": padded[:, ::2],
        "list": X.tolist(),
        "path": folder / "rows.npy",
        "memory map": np.load(folder / "rows.npy", mmap_mode="r"),
        "pandas": pandas_frame(X),
        "polars": polars_frame(X),
        "arrow": arrow_table(X),
        "csr": sparse.csr_array(X),
        "csc": sparse.csc_matrix(X),
        "coo": sparse.coo_array(X),
    }


@pytest.mark.parametrize("n", [60, 9000], ids=["few rows", "many rows"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_numbers_get_the_same_labels_in_every_container(n, dtype, tmp_path):
    """Whole numbers, so that all sums are exact in every container; 9000 rows are the work of compiled kernels."""
    rng = np.random.default_rng(5)
    X = (rng.integers(-20, 20, size=(n, 3)) * rng.integers(0, 2, size=(n, 3))).astype(dtype)
    expected = KMeans(6, init=X[:6], max_iter=20, tol=0.1).fit(X)
    for name, given in containers(X, tmp_path).items():
        found = KMeans(6, init=X[:6], max_iter=20, tol=0.1).fit(given)
        np.testing.assert_array_equal(found.labels_, expected.labels_, err_msg=name)
        np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-5, err_msg=name)
        np.testing.assert_array_equal(found.predict(given), expected.labels_, err_msg=name)
