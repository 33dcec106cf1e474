"""Tables in DuckDB databases, and results of queries."""

import json
from datetime import date, timedelta

import polars as pl
import pytest

from coterie import KMeans
from coterie.cli import main

duckdb = pytest.importorskip("duckdb")
ROWS = pl.DataFrame(
    {"id": range(40), "a": [i % 2 * 9.0 + i / 40 for i in range(40)], "b": [float(i % 5) for i in range(40)]}
)
SIZES = ["-k", "2", "--json"]


@pytest.fixture
def database(folder):
    ROWS.write_parquet(folder / "orders.parquet")
    with duckdb.connect(str(folder / "sales.db")) as connection:
        connection.execute("CREATE TABLE orders AS SELECT * FROM 'orders.parquet'")
    return folder / "sales.db"


def columns_of(capsys, *arguments) -> list[str]:
    capsys.readouterr()
    assert main(["fit", *arguments, *SIZES]) == 0
    result = json.loads(capsys.readouterr().out)
    assert sorted(cluster["rows"] for cluster in result["clusters"]) == [20, 20]
    return result["columns"]


def test_a_table_and_a_query_are_fitted_and_predicted(database, folder, capsys):
    assert columns_of(capsys, "duckdb:///sales.db?table=orders") == ["a", "b"]
    assert columns_of(capsys, f"duckdb:///{database}?table=orders") == ["a", "b"]
    assert columns_of(capsys, "sales.db", "--sql", "SELECT a, b + 1 AS c FROM orders") == ["a", "c"]
    assert columns_of(capsys, "orders.parquet", "--sql", "SELECT a, b AS d FROM data") == ["a", "d"]
    assert columns_of(capsys, "duckdb://", "--sql", "SELECT a FROM 'orders.parquet'") == ["a"]
    assert main(["fit", "duckdb:///sales.db?table=orders", "-k", "2", "--model", "m.safetensors", "-o", "out.csv"]) == 0
    assert main(["predict", "m.safetensors", "sales.db", "--sql", "FROM orders", "-o", "new.csv"]) == 0
    assert pl.read_csv(folder / "new.csv")["cluster"].equals(pl.read_csv(folder / "out.csv")["cluster"])


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_query_is_about_the_table_of_a_file_without_its_titles_and_totals(folder, capsys, suffix):
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(40)]
    cells = [["Sales"], [], ["shop", "day", "amount"]]
    cells += [[f"shop {i}", str(day), f"{i % 2 * 90 + i / 4}"] for i, day in enumerate(days)]
    cells += [["Total", "", "1995"]]
    if suffix == ".csv":
        (folder / "t.csv").write_text("\n".join(";".join(row).replace(".", ",") for row in cells), encoding="utf-8")
    else:
        with pytest.importorskip("xlsxwriter").Workbook(folder / "t.xlsx", {"strings_to_numbers": True}) as workbook:
            sheet = workbook.add_worksheet("sales")
            for i, row in enumerate(cells):
                sheet.write_row(i, 0, row)
    query = "SELECT amount * 2 AS double FROM data WHERE month(day) < 13"
    assert columns_of(capsys, f"t{suffix}", "--sql", query) == ["double"]
    assert main(["fit", f"t{suffix}", "--sql", query, "-k", "2"]) == 0
    assert 'is a total ("Total"), not a row' in capsys.readouterr().err


def test_what_cannot_be_queried_is_told(database, capsys):
    for arguments, code, message in [
        (["sales.db"], 2, 'is a database: add --sql "SELECT'), (["sales.db", "--sql", "FROM nothing"], 3, "nothing"),
        (["absent.db", "--sql", "FROM orders"], 3, 'no file "absent.db"'),
        (["orders.parquet", "--sql", "FROM orders"], 3, "The table of the file is named data."),
        (["duckdb:///sales.db?table=orders", "--sql", "FROM orders"], 2, "leave out one"),
        (["sales.db", "--sql", "FROM orders WHERE a > 99"], 3, "no rows"),
        (["sales.db", "--sql", "DROP TABLE orders"], 3, "read-only"),
        (["sales.db", "--sql", "FROM orders", "--sheet", "May"], 2, "--sheet is for .xlsx"),
        (["sales.db", "--sql", "FROM orders", "--batch-rows", "5"], 2, "--batch-rows is not for databases"),
    ]:  # fmt: skip
        assert main(["fit", *arguments]) == code, arguments
        assert message in capsys.readouterr().err, arguments


def test_a_relation_is_fitted_like_its_rows(database):
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT a, b FROM 'orders.parquet' ORDER BY id")
        model = KMeans(2, random_state=0).fit(relation)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert model.labels_.tolist() == KMeans(2, random_state=0).fit(ROWS[["a", "b"]]).labels_.tolist()


def test_a_column_of_a_type_that_no_frame_has_is_an_error_in_words(database, capsys):
    assert main(["fit", "sales.db", "--sql", "SELECT a, INTERVAL 1 MONTH AS m FROM orders", "-k", "2"]) == 3
    assert "cannot read the table" in capsys.readouterr().err
