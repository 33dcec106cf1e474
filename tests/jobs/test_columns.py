"""Which columns and rows of a table a job uses."""

import numpy as np
import polars as pl
import pytest

from coterie.errors import InputError
from coterie.jobs import Job, run
from jobs.tables import same_partition, write_lines

# Columns


def test_identifiers_and_text_are_skipped_with_a_reason(blobs):
    result = run(Job(blobs[0], k=2))
    assert result.columns == ("width", "height")
    assert {column.name: column.reason for column in result.skipped} == {
        "id": "identifier",
        "name": "text that hardly repeats",
    }
    assert result.notes == (
        "skipped as identifier: id (to use it: --include id).",
        "skipped as text that hardly repeats: name.",
    )


@pytest.mark.parametrize(
    "name, is_skipped",
    [("id", True), ("User_ID", True), ("rowid", True), ("width", False), ("Kundennr", True), ("Patient", True),
     ("Mitgliedsnummer", True), ("patients", False), ("summer", False)],
)  # fmt: skip
def test_a_few_unique_integers_are_an_identifier_only_by_name(tmp_path, name, is_skipped):
    path = write_lines(tmp_path, f"{name},x", *(f"{i * i},{i % 3}" for i in range(9)))
    assert (name not in run(Job(path, k=2)).columns) is is_skipped


@pytest.mark.parametrize(
    "numbers, is_numbering",
    [
        (range(1, 41), True), (range(40, 0, -1), True), ([70_000 + i * 7 % 40 for i in range(40)], True),
        ([i + i // 10 for i in range(40)], True), ([float(i) for i in range(40)], True),
        ([i + 0.5 for i in range(40)], False), ([2 * i for i in range(40)], False), ([*range(39), 5], False),
        (range(19), False),
    ],
)  # fmt: skip
def test_numbers_of_the_rows_are_skipped_whatever_their_name_unless_asked_for(tmp_path, numbers, is_numbering):
    path = write_lines(tmp_path, "measure,x", *(f"{number},{i % 7}" for i, number in enumerate(numbers)))
    result = run(Job(path, k=2))
    skipped = [(column.name, column.reason, column.option) for column in result.skipped]
    assert skipped == ([("measure", "numbers of the rows", "--include")] if is_numbering else [])
    for options in ({"include": ("measure",)}, {"columns": ("measure", "x")}):
        assert run(Job(path, k=2, **options)).columns == ("measure", "x")


def test_a_table_of_row_numbers_alone_is_rejected_with_the_option_that_uses_them(tmp_path):
    path = write_lines(tmp_path, "x", *map(str, range(40)))
    with pytest.raises(InputError, match=r"\(x: numbers of the rows\). Use --include x if they are quantities"):
        run(Job(path, k=2))


def test_an_id_is_an_identifier_in_any_spelling_also_if_it_repeats(tmp_path):
    for name in ("id", "CustomerID", "customerId", "customer id", "customerid", "USER_ID", "store-id", "uuid"):
        path = write_lines(tmp_path, f"{name},x", "1,1", "1,2", "2,3")
        assert run(Job(path, k=2)).columns == ("x",), name
        assert run(Job(path, k=2, include=(name,))).columns == (name, "x"), name
    for name in ("paid", "valid", "humid", "grid", "identity", "number of rooms", "code", "Hausnummer", "store"):
        path = write_lines(tmp_path, f"{name},x", "1,1", "1,2", "2,3")
        assert run(Job(path, k=2)).columns == (name, "x"), name


def test_numbers_of_orders_rows_post_and_telephones_are_skipped(tmp_path):
    for name, values, reason in [
        ("Order No", [7, 8, 9], "identifier"), ("Nr", [7, 8, 9], "identifier"), ("", [0, 1, 2], "identifier"),
        ("ZIP", [10115, 10115, 80331], "postal code"), ("postal_code", [10115, 10115, 80331], "postal code"),
        ("phone", [1705551234, 1705551235, 1705551236], "phone number"),
        ("Phone Number", ["+1 555 1234"] * 3, "phone number"),
        ("mobile", [0, 1, 1], None), ("price index", [1.5, 2.5, 3.5], None), ("index", [3, 1, 1], None),
    ]:  # fmt: skip
        path = write_lines(tmp_path, f"{name},x", *(f"{value},{i}" for i, value in enumerate(values)))
        result = run(Job(path, k=2))
        assert [one.reason for one in result.skipped] == ([] if reason is None else [reason]), name


def test_a_copy_of_a_column_in_other_units_is_skipped_unless_asked_for(tmp_path):
    rows = [(i % 7 + i / 100, (i % 7 + i / 100) * 2.54 + 1, i % 5) for i in range(60)]
    path = write_lines(tmp_path, "inch,cm,y", *(f"{a},{b:.5f},{c}" for a, b, c in rows))
    result = run(Job(path, k=2))
    assert result.columns == ("inch", "y")
    assert "skipped as near-duplicate of inch: cm (to use it: --include cm)." in result.notes
    assert run(Job(path, k=2, include=("cm",))).columns == ("inch", "cm", "y")
    assert run(Job(path, k=2, columns=("cm", "inch"))).columns == ("inch", "cm")


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


def test_a_text_column_asked_for_is_rejected(penguins):
    with pytest.raises(InputError, match='"species" holds text'):
        run(Job(penguins, columns=("species",)))


def test_a_true_false_column_is_zeros_and_ones(tmp_path):
    path = tmp_path / "flags.parquet"
    pl.DataFrame({"x": [0.0, 0.1, 0.2, 0.3], "flag": [True, True, False, False]}).write_parquet(path)
    assert run(Job(path, k=2)).columns == ("x", "flag")
    assert same_partition(run(Job(path, k=2, columns=("flag",))).labels, [0, 0, 1, 1])


def test_a_constant_column_is_dropped_with_a_warning(tmp_path):
    path = write_lines(tmp_path, "x,same", "1,5", "2,5", "9,5")
    result = run(Job(path, k=2))
    assert result.columns == ("x",)
    assert any('"same" is constant' in warning for warning in result.warnings)


def test_a_table_of_constants_is_rejected(tmp_path):
    with pytest.raises(InputError, match=r"every column is constant \(x\)"):
        run(Job(write_lines(tmp_path, "x", "1", "1"), k=1))


def test_a_table_without_numbers_is_rejected_with_what_it_has(tmp_path):
    path = write_lines(tmp_path, "name,country", "Rome,Italy", "Oslo,Norway", name="city.csv")
    with pytest.raises(InputError, match=r"no numeric columns in city.csv \(name: text, country: text\)"):
        run(Job(path))


# Missing values


def test_missing_values_are_rejected_with_counts_and_choices(tmp_path):
    path = write_lines(tmp_path, "age,income", "1,2", ",3", ",", "4,5")
    with pytest.raises(InputError) as caught:
        run(Job(path, k=2))
    assert str(caught.value) == (
        "2 of 4 rows have missing values (age: 2, income: 1).\n"
        "  Choose one: --missing drop (keeps 2 rows), --missing median, --missing ignore, or --exclude age,income."
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
    assert result.missing == f"1 value in 1 column filled with the {how} of the column"
    complete = write_lines(tmp_path, "x,y", "1,0", "2,0", "9,0", f"{value},1", name="complete.csv")
    assert run(Job(complete, k=2, columns=("x", "y"), scale="none")).scores == result.scores


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


def test_an_empty_column_is_skipped_and_rejected_when_asked_for(tmp_path):
    path = write_lines(tmp_path, "x,nothing", "1,", "2,", "9,")
    result = run(Job(path, k=2))
    assert ("nothing", "empty") in [(column.name, column.reason) for column in result.skipped]
    with pytest.raises(InputError, match='"nothing" holds nothing'):
        run(Job(path, k=2, columns=("nothing",)))


def test_no_complete_row_is_rejected(tmp_path):
    with pytest.raises(InputError, match="no row is complete"):
        run(Job(write_lines(tmp_path, "x,y", "1,", ",2"), k=1, missing="drop"))


def test_infinite_values_are_rejected_by_column(tmp_path):
    with pytest.raises(InputError, match=r"infinite \(y: 1\)"):
        run(Job(write_lines(tmp_path, "x,y", "1,2", "2,inf", "3,4"), k=2))
