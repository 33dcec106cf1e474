import os
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from coterie import KMeans
from coterie.datasets import make_blobs, write_demo
from coterie.errors import FitInterruptedWarning, InputError, ParameterError
from coterie.jobs import Job, run


@pytest.fixture
def blobs(tmp_path):
    """Forty rows in two groups far apart: an id, a name, two measures."""
    X, y = make_blobs(40, centers=[[0, 0], [30, 30]], random_state=0)
    frame = pl.DataFrame(
        {"id": range(40), "name": [f"row {i}" for i in range(40)], "width": X[:, 0], "height": X[:, 1]}
    )
    path = tmp_path / "blobs.csv"
    frame.write_csv(path)
    return path, y


@pytest.fixture
def penguins(tmp_path):
    return write_demo("penguins", tmp_path / "penguins.csv")


def write_lines(folder: Path, *lines: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def same_partition(a, b) -> bool:
    pairs = set(zip(np.asarray(a).tolist(), np.asarray(b).tolist(), strict=True))
    return len(pairs) == len(set(a)) == len(set(b))


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


# What is found


def test_groups_far_apart_are_found(blobs):
    path, y = blobs
    result = run(Job(path, k=2))
    assert same_partition(result.labels, y)
    assert [cluster.rows for cluster in result.clusters] == [20, 20]
    assert result.converged


def test_the_summary_is_what_the_labels_say(penguins):
    result = run(Job(penguins, k=3, missing="drop", exclude=("year",)))
    frame = pl.read_csv(penguins).with_columns(label=pl.Series(result.labels)).filter(pl.col("label") >= 0)
    assert result.rows_used == frame.height == 342
    for cluster in result.clusters:
        rows = frame.filter(pl.col("label") == cluster.label)
        assert cluster.rows == rows.height
        assert cluster.share == pytest.approx(rows.height / 342)
        for name, mean in cluster.means.items():
            assert mean == pytest.approx(rows[name].mean())
        for trait in cluster.stands_out_by:
            distance = rows[trait.column].mean() - frame[trait.column].mean()
            assert trait.deviation == pytest.approx(distance / frame[trait.column].std(ddof=0))


def test_what_stands_out_most_comes_first_and_what_does_not_stay_out(penguins):
    result = run(Job(penguins, k=3, missing="drop"))
    for cluster in result.clusters:
        sizes = [abs(trait.deviation) for trait in cluster.stands_out_by]
        assert sizes == sorted(sizes, reverse=True)
        assert all(size >= 0.5 for size in sizes)


def test_the_same_seed_gives_the_same_result(penguins):
    first, again = (run(Job(penguins, k=5, missing="drop", seed=11, options={"n_init": 1})) for _ in range(2))
    np.testing.assert_array_equal(first.labels, again.labels)
    assert first.scores["inertia"] == again.scores["inertia"]


def test_the_inertia_is_the_sum_of_the_squared_distances_written(penguins, tmp_path):
    out = tmp_path / "out.parquet"
    result = run(Job(penguins, k=4, missing="drop", output=out))
    assert (pl.read_parquet(out)["cluster_distance"] ** 2).sum() == pytest.approx(result.scores["inertia"])


def test_every_stage_is_announced(blobs, tmp_path):
    steps = []
    run(Job(blobs[0], k=2, output=tmp_path / "out.csv"), steps.append)
    assert list(dict.fromkeys(step.step for step in steps)) == [
        "reading blobs.csv",
        "fitting K-means",
        "silhouettes",
        "writing out.csv",
    ]


# Columns


def test_identifiers_and_text_are_skipped_with_a_reason(blobs):
    result = run(Job(blobs[0], k=2))
    assert result.columns == ("width", "height")
    assert {column.name: column.reason for column in result.skipped} == {"id": "identifier", "name": "text"}
    assert result.notes == ("skipped as identifier: id.", "skipped as text: name.")


@pytest.mark.parametrize("name, is_skipped", [("id", True), ("User_ID", True), ("rowid", True), ("width", False)])
def test_unique_integers_are_an_identifier_only_by_name(tmp_path, name, is_skipped):
    path = write_lines(tmp_path, f"{name},x", *(f"{i},{i % 3}" for i in range(9)))
    assert (name not in run(Job(path, k=2)).columns) is is_skipped


def test_an_id_that_repeats_is_a_measure(tmp_path):
    path = write_lines(tmp_path, "id,x", "1,1", "1,2", "2,3")
    assert run(Job(path, k=2)).columns == ("id", "x")


def test_the_result_of_an_earlier_run_is_not_a_measure(blobs, tmp_path):
    out = tmp_path / "out.csv"
    run(Job(blobs[0], k=2, output=out))
    assert run(Job(out, k=2)).columns == ("width", "height")


def test_columns_named_are_the_columns_used(penguins):
    result = run(Job(penguins, k=2, columns=("body_mass_g", "bill_depth_mm"), missing="drop"))
    assert set(result.columns) == {"body_mass_g", "bill_depth_mm"}
    assert result.notes == ()


def test_a_column_excluded_is_not_used(penguins):
    result = run(Job(penguins, k=2, exclude=("year",), missing="drop"))
    assert "year" not in result.columns
    assert ("year", "excluded") in [(column.name, column.reason) for column in result.skipped]


def test_a_misspelt_column_gets_a_suggestion_whatever_its_case(penguins):
    with pytest.raises(InputError, match=r'no column "BILL_LENGHT_MM"\. Did you mean "bill_length_mm"\?'):
        run(Job(penguins, columns=("BILL_LENGHT_MM",)))
    with pytest.raises(InputError, match=r'no column "yeer"\. Did you mean "year"\?'):
        run(Job(penguins, exclude=("yeer",)))


def test_a_text_column_asked_for_is_refused(penguins):
    with pytest.raises(InputError, match='"species" holds text'):
        run(Job(penguins, columns=("species",)))


def test_a_true_false_column_counts_when_asked_for_only(tmp_path):
    path = tmp_path / "flags.parquet"
    pl.DataFrame({"x": [0.0, 0.1, 0.2, 0.3], "flag": [True, True, False, False]}).write_parquet(path)
    assert run(Job(path, k=2)).columns == ("x",)
    assert same_partition(run(Job(path, k=2, columns=("flag",))).labels, [0, 0, 1, 1])


def test_a_constant_column_is_dropped_with_a_warning(tmp_path):
    path = write_lines(tmp_path, "x,same", "1,5", "2,5", "9,5")
    result = run(Job(path, k=2))
    assert result.columns == ("x",)
    assert any('"same" is constant' in warning for warning in result.warnings)


def test_a_table_of_constants_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"every column is constant \(x\)"):
        run(Job(write_lines(tmp_path, "x", "1", "1"), k=1))


def test_a_table_without_numbers_is_refused_with_what_it_has(tmp_path):
    path = write_lines(tmp_path, "name,country", "Rome,Italy", "Oslo,Norway", name="city.csv")
    with pytest.raises(InputError, match=r"no numeric columns in city.csv \(name: text, country: text\)"):
        run(Job(path))


# Missing values


def test_missing_values_are_refused_with_counts_and_choices(tmp_path):
    path = write_lines(tmp_path, "age,income", "1,2", ",3", ",", "4,5")
    with pytest.raises(InputError) as caught:
        run(Job(path, k=2))
    assert str(caught.value) == (
        "2 of 4 rows have missing values (age: 2, income: 1).\n"
        "  Choose one: --missing drop (keeps 2 rows), --missing median, or --exclude age,income."
    )


def test_rows_dropped_have_no_label_and_an_empty_cluster_in_the_output(penguins, tmp_path):
    out = tmp_path / "out.csv"
    result = run(Job(penguins, k=3, missing="drop", output=out))
    written = pl.read_csv(out)
    assert written.height == 344
    np.testing.assert_array_equal(result.labels == -1, written["cluster"].is_null().to_numpy())
    assert written["cluster_distance"].is_null().sum() == 2
    assert written.filter(pl.col("cluster").is_null())["bill_length_mm"].is_null().all()
    np.testing.assert_array_equal(result.labels, written["cluster"].fill_null(-1).to_numpy())


@pytest.mark.parametrize("how, value", [("mean", 4.0), ("median", 2.0)])
def test_missing_values_are_filled_from_their_column(tmp_path, how, value):
    path = write_lines(tmp_path, "x,y", "1,0", "2,0", "9,0", ",1")
    result = run(Job(path, k=2, missing=how, columns=("x", "y"), scale="none"))
    assert result.rows_used == 4
    assert result.missing == f"1 filled with the {how} of the column"
    overall = sum(cluster.means["x"] * cluster.rows for cluster in result.clusters) / 4
    assert overall == pytest.approx((1 + 2 + 9 + value) / 4)


def test_na_is_a_missing_number_not_text(tmp_path):
    path = write_lines(tmp_path, "x", "1", "NA", "3", "7.5")
    result = run(Job(path, k=2, missing="drop"))
    assert result.columns == ("x",)
    assert result.missing == "dropped 1 row"


def test_nan_in_an_array_is_missing(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([[1.0, 2.0], [np.nan, 3.0], [5.0, 9.0]]))
    with pytest.raises(InputError, match=r"1 of 3 rows have missing values \(x0: 1\)"):
        run(Job(path, k=2))


def test_an_empty_column_is_skipped_and_refused_when_asked_for(tmp_path):
    path = write_lines(tmp_path, "x,nothing", "1,", "2,", "9,")
    result = run(Job(path, k=2))
    assert ("nothing", "empty") in [(column.name, column.reason) for column in result.skipped]
    with pytest.raises(InputError, match='"nothing" holds nothing'):
        run(Job(path, k=2, columns=("nothing",)))


def test_no_complete_row_is_refused(tmp_path):
    with pytest.raises(InputError, match="no row is complete"):
        run(Job(write_lines(tmp_path, "x,y", "1,", ",2"), k=1, missing="drop"))


def test_infinite_values_are_refused_by_column(tmp_path):
    with pytest.raises(InputError, match=r"infinite \(y: 1\)"):
        run(Job(write_lines(tmp_path, "x,y", "1,2", "2,inf", "3,4"), k=2))


# Scale


@pytest.mark.parametrize("scale", ["standard", "robust", "minmax"])
def test_scaling_makes_the_unit_of_a_column_irrelevant(blobs, tmp_path, scale):
    path, _ = blobs
    other = tmp_path / "millimetres.parquet"
    pl.read_csv(path).with_columns(pl.col("width") * 1000 - 7).write_parquet(other)
    first, second = (run(Job(p, k=5, scale=scale, options={"n_init": 1})) for p in (path, other))
    assert same_partition(first.labels, second.labels)
    assert first.scores["inertia"] == pytest.approx(second.scores["inertia"])


def test_without_scaling_the_larger_unit_decides(tmp_path):
    path = write_lines(tmp_path, "big,small", "0,0", "1000,1", "0,2", "1000,3")
    assert same_partition(run(Job(path, k=2, scale="none")).labels, [0, 1, 0, 1])


def test_a_table_is_standardised_and_an_array_is_not_and_both_say_so(blobs, tmp_path):
    array = tmp_path / "x.npy"
    np.save(array, np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32))
    assert run(Job(blobs[0], k=2)).scale == "standard"
    assert run(Job(array, k=2)).scale == "none"


def test_robust_scaling_of_a_column_that_is_mostly_one_value_warns(tmp_path):
    path = write_lines(tmp_path, "x,y", *(f"0,{i}" for i in range(9)), "5,9")
    result = run(Job(path, k=2, scale="robust"))
    assert any('"x"' in warning for warning in result.warnings)
    assert np.isfinite(result.scores["inertia"])


# Doubts and options


def test_a_tiny_cluster_is_warned_about_but_not_among_many_small_ones(tmp_path):
    path = write_lines(tmp_path, "x", *["1"] * 300, *["2"] * 300, "1000")
    assert any("very few rows in cluster" in warning for warning in run(Job(path, k=2)).warnings)
    even = write_lines(tmp_path, "x", *(str(i) for i in range(250)))
    assert run(Job(even, k=125, options={"n_init": 1})).warnings == ()


def test_too_few_distinct_rows_are_warned_about_once(tmp_path, recwarn):
    result = run(Job(write_lines(tmp_path, "x", "1", "1", "2", "2"), k=3))
    assert any("only 2 of 3 clusters have rows" in warning for warning in result.warnings)
    assert len(recwarn) == 0


@pytest.mark.parametrize(
    "bad",
    [
        {"k": 0},
        {"options": {"n_init": 0}},
        {"seed": -1},
        {"seed": 2**32},
        {"scale": "log"},
        {"missing": "zero"},
        {"method": "x"},
    ],
)
def test_an_option_that_is_never_right_is_named(blobs, bad):
    with pytest.raises(ParameterError, match=str(next(iter(bad.get("options", bad))))):
        run(Job(blobs[0], **bad))


def test_more_clusters_than_rows_are_refused(blobs):
    with pytest.raises(InputError, match=r"-k 41 asks for more clusters than there are rows \(40\)"):
        run(Job(blobs[0], k=41))


# Files


def test_a_missing_file_gets_a_suggestion(penguins):
    with pytest.raises(InputError, match=r'no file "pengins.csv" in .* Did you mean .*penguins.csv\?'):
        run(Job(penguins.with_name("pengins.csv")))


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        run(Job(tmp_path / "nowhere" / "x.csv"))


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("empty.csv", b"", "empty.csv is empty"),
        ("header.csv", b"x,y\n", "header.csv has no rows"),
        ("broken.parquet", b"PAR1 this is not Parquet", "cannot read"),
        ("broken.npy", b"not an array", "cannot read"),
        ("ragged.csv", b"x,y\n1,2\n1,2,3,4\n", "cannot read"),
        ("binary.csv", b"x,y\n\x00\x01,1\n2,3\n", "it is not text"),
        ("page.html", b"<p>", "tables end in .csv, .tsv"),
    ],
)
def test_an_unreadable_file_is_refused_in_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        run(Job(path, k=1))
    assert "\n" not in str(caught.value)


def test_a_folder_is_not_a_table(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        run(Job(tmp_path))


@pytest.mark.parametrize(
    "array, message",
    [
        (np.zeros(5), "1 dimensions"),
        (np.array([["a"], ["b"]]), "not numbers"),
        (np.zeros((2, 2), dtype=complex), "not numbers"),
        (np.array([[object()]], dtype=object), "cannot read"),
    ],
)
def test_an_array_that_is_no_table_of_numbers_is_refused(tmp_path, array, message):
    path = tmp_path / "x.npy"
    np.save(path, array, allow_pickle=True)
    with pytest.raises(InputError, match=message):
        run(Job(path, k=1))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy"])
def test_every_format_gives_the_same_clusters(tmp_path, suffix):
    X, y = make_blobs(30, centers=3, cluster_std=0.1, random_state=2)
    path = tmp_path / f"x{suffix}"
    frame = pl.DataFrame({"x0": X[:, 0], "x1": X[:, 1]})
    match suffix:
        case ".npy":
            np.save(path, X)
        case ".parquet":
            frame.write_parquet(path)
        case _:
            frame.write_csv(path, separator="\t" if suffix == ".tsv" else ",")
    result = run(Job(path, k=3))
    assert result.columns == ("x0", "x1")
    assert same_partition(result.labels, y)


def test_a_name_with_wildcards_is_a_plain_name(tmp_path):
    write_lines(tmp_path, "x", "1", "2", name="a1.csv")
    path = write_lines(tmp_path, "x", "1", "2", "3", name="a[1].csv")
    assert run(Job(path, k=2)).rows == 3


# Output


def test_fields_of_a_text_table_come_out_as_they_went_in(tmp_path):
    lines = ["code,x,note", "007,1.50,", '010,2.0,"a, b"', "100,9,NA"]
    out = tmp_path / "out.csv"
    run(Job(write_lines(tmp_path, *lines), k=2, columns=("x",), output=out))
    kept = [line.rsplit(",", 2)[0] for line in out.read_text(encoding="utf-8").splitlines()]
    assert kept == lines


def test_a_text_table_written_as_parquet_has_typed_columns(penguins, tmp_path):
    out = tmp_path / "out.parquet"
    run(Job(penguins, k=3, missing="drop", output=out))
    schema = pl.read_parquet_schema(out)
    assert schema["body_mass_g"] == pl.Int64
    assert schema["bill_length_mm"] == pl.Float64
    assert schema["species"] == pl.String
    assert schema["cluster"] == pl.Int64


def test_an_existing_output_stays_unless_forced(blobs, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("mine")
    with pytest.raises(FileExistsError):
        run(Job(blobs[0], k=2, output=out))
    assert out.read_text() == "mine"
    run(Job(blobs[0], k=2, output=out, force=True))
    assert "cluster" in out.read_text()


def test_a_file_that_appears_during_the_fit_is_not_replaced(blobs, tmp_path):
    out = tmp_path / "out.csv"

    def someone_else(stage):
        if stage.step.startswith("writing"):
            out.write_text("theirs")

    with pytest.raises(FileExistsError):
        run(Job(blobs[0], k=2, output=out), someone_else)
    assert out.read_text() == "theirs"


def test_a_table_with_clusters_already_is_not_written_over_them_unless_forced(blobs, tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    run(Job(blobs[0], k=2, output=first))
    with pytest.raises(ParameterError, match="has cluster and cluster_distance already"):
        run(Job(first, k=3, output=second))
    assert not second.exists()
    run(Job(first, k=3, output=second, force=True))
    assert pl.read_csv(second)["cluster"].n_unique() == 3


@pytest.mark.parametrize("name, message", [("out.xlsx", "ends in"), ("nowhere/out.csv", "no folder")])
def test_an_output_that_cannot_be_written_is_refused_before_the_table_is_read(tmp_path, name, message):
    with pytest.raises(ParameterError, match=message):
        run(Job(tmp_path / "absent.csv", output=tmp_path / name))


def test_an_interrupted_fit_ends_the_job_and_writes_nothing(blobs, tmp_path, monkeypatch):
    class Interrupted(KMeans):
        def fit(self, X, y=None, sample_weight=None):
            warnings.warn("stopped from the keyboard", FitInterruptedWarning, stacklevel=2)
            return super().fit(X)

    monkeypatch.setattr("coterie.kmeans.kmeans.KMeans", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(Job(blobs[0], k=2, output=tmp_path / "out.csv"))
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "error, raised", [(OSError(28, "No space left"), InputError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_a_write_that_fails_keeps_the_old_file_only(blobs, tmp_path, monkeypatch, error, raised):
    def fail(*_):
        assert leftovers(tmp_path), "the part file should be there by now"
        raise error

    out = tmp_path / "out.csv"
    out.write_text("mine")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(raised):
        run(Job(blobs[0], k=2, output=out, force=True))
    assert leftovers(tmp_path) == []
    assert out.read_text() == "mine"
