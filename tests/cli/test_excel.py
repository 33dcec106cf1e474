"""Workbooks, with the package that reads them."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from zipfile import ZipFile

import polars as pl
import pytest

from coterie.cli import main
from coterie.data.tables.reader import read
from coterie.errors import InputError

SCHEMAS = "http://schemas.openxmlformats.org"
RELATIONS = f"{SCHEMAS}/officeDocument/2006/relationships"
CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PARTS = {
    "[Content_Types].xml": f"""<Types xmlns="{SCHEMAS}/package/2006/content-types">
        <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
        <Default Extension="xml" ContentType="{CONTENT}.sheet.main+xml"/>
        <Override PartName="/xl/sheet.xml" ContentType="{CONTENT}.worksheet+xml"/></Types>""",
    "_rels/.rels": f"""<Relationships xmlns="{SCHEMAS}/package/2006/relationships">
        <Relationship Id="r1" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>""",
    "xl/workbook.xml": f"""<workbook xmlns="{SCHEMAS}/spreadsheetml/2006/main" xmlns:r="{RELATIONS}">
        <sheets><sheet name="rows" sheetId="1" r:id="r1"/></sheets></workbook>""",
    "xl/_rels/workbook.xml.rels": f"""<Relationships xmlns="{SCHEMAS}/package/2006/relationships">
        <Relationship Id="r1" Type="{RELATIONS}/worksheet" Target="sheet.xml"/></Relationships>""",
}


def write_workbook(path: Path, rows: list[list[object]]) -> None:
    """A workbook of one sheet."""
    lines = [f'<row r="{r}">{"".join(map(_cell, row))}</row>' for r, row in enumerate(rows, 1)]
    sheet = f'<worksheet xmlns="{SCHEMAS}/spreadsheetml/2006/main"><sheetData>{"".join(lines)}</sheetData></worksheet>'
    with ZipFile(path, "w") as file:
        for name, part in (PARTS | {"xl/sheet.xml": sheet}).items():
            file.writestr(name, part)


def _cell(value: object) -> str:
    if value is None:
        return "<c/>"
    return f'<c t="inlineStr"><is><t>{value}</t></is></c>' if isinstance(value, str) else f"<c><v>{value}</v></c>"


def test_the_first_sheet_is_a_table(folder, capsys):
    pytest.importorskip("fastexcel")
    rows = [["customer", "age", "size"], *([f"no. {i}", 20 + i % 3, 1.5 + 90 * (i % 2)] for i in range(30))]
    rows[4][2] = None
    write_workbook(folder / "t.xlsx", rows)
    assert main(["fit", "t.xlsx", "-k", "2", "--missing", "drop", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["rows"], result["rows_used"], result["columns"]) == (30, 29, ["age", "size"])
    assert sorted(cluster["rows"] for cluster in result["clusters"]) == [14, 15]


def test_other_files_than_workbooks_are_rejected_in_a_line(folder, capsys):
    pytest.importorskip("fastexcel")
    (folder / "t.xlsx").write_bytes(b"PK, but nothing else")
    assert main(["fit", "t.xlsx", "-k", "2"]) == 3
    err = capsys.readouterr().err
    assert err.startswith('Error: cannot read "t.xlsx"')
    assert err.count("\n") == 1


def test_sheet_and_header_row_are_chosen_and_the_output_is_a_workbook(folder, capsys):
    pytest.importorskip("xlsxwriter")
    from xlsxwriter import Workbook

    with Workbook(folder / "two.xlsx", {"strings_to_formulas": False}) as workbook:
        workbook.add_worksheet("about").write_row(0, 0, ["nothing", "here"])
        sheet = workbook.add_worksheet("May")
        sheet.write_row(0, 0, ["Sales of May"])
        sheet.write_row(2, 0, ["shop", "amount", "share"])
        for i in range(30):
            sheet.write_row(
                3 + i, 0, [f"=no. {i}", f"${1000 + 5000 * (i % 2) + 90 * (i % 7):,}.50", 0.5 + i % 2 + i / 40]
            )
    command = [
        "fit",
        "two.xlsx",
        "-k",
        "2",
        "--sheet",
        "May",
        "--header-row",
        "3",
        "-o",
        "out.xlsx",
        "--model",
        "m.safetensors",
    ]
    assert main([*command, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["columns"] == ["amount", "share"]
    assert sorted(cluster["rows"] for cluster in result["clusters"]) == [15, 15]
    written = pl.read_excel(folder / "out.xlsx")
    assert written.columns == ["shop", "amount", "share", "cluster", "cluster_distance"]
    assert (written["shop"][3], written["cluster"].n_unique()) == ("=no. 3", 2)
    assert main(["predict", "m.safetensors", "two.xlsx", "--sheet", "May", "--header-row", "3", "-o", "new.xlsx"]) == 0
    assert pl.read_excel(folder / "new.xlsx")["cluster"].to_list() == written["cluster"].to_list()
    capsys.readouterr()
    assert main(["fit", "two.xlsx", "--sheet", "June"]) == 3
    assert 'two.xlsx has no sheet "June". Sheets: about, May' in capsys.readouterr().err
    assert main(["fit", "t.csv", "--sheet", "June"]) == 3


def test_the_header_row_of_a_text_file_is_chosen(folder, capsys):
    lines = ["made,by,us", "a,b", "x,y", *(f"{i},{i % 2}" for i in range(9))]
    (folder / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    assert main(["fit", "t.csv", "-k", "2", "--header-row", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == ["x", "y"]
    assert main(["fit", "t.csv", "--sheet", "May"]) == 2
    assert "--sheet is for .xlsx, .xls and .ods" in capsys.readouterr().err


def test_merged_cells_dates_and_digits_of_a_sheet_are_kept(folder):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    start = datetime(2024, 5, 1)
    with xlsxwriter.Workbook(folder / "t.xlsx") as workbook:
        day = workbook.add_format({"num_format": "yyyy-mm-dd"})
        workbook.add_worksheet("secret").hide()
        workbook.add_worksheet("cover").write(0, 0, "Sales of May, by us")
        workbook.add_chartsheet("chart")
        workbook.add_worksheet("empty")
        sheet = workbook.add_worksheet("sales")
        sheet.merge_range(1, 1, 1, 6, "Sales\nof May")
        sheet.merge_range(3, 1, 4, 1, "region")
        sheet.merge_range(3, 2, 3, 4, "2024")
        sheet.merge_range(3, 5, 3, 6, "2025")
        sheet.write_row(4, 2, ["day", "size", "flag", "size", "name\nof it"])
        for i in range(0, 9, 3):
            sheet.merge_range(5 + i, 1, 7 + i, 1, "north" if i else "south")
        for i in range(9):
            sheet.write_datetime(5 + i, 2, start + timedelta(days=i), day)
            sheet.write_row(5 + i, 3, [(i + 1) / 3e6, bool(i % 2), i, f"line\n{i}"])
        sheet.write_row(14, 1, ["Total", None, 45 / 3e6])
    table = read(folder / "t.xlsx")
    assert table.columns == ["region", "2024 day", "2024 size", "2024 flag", "2025 size", "2025 name of it"]
    assert table.notes == (
        'sheet "sales" was read; --sheet reads another: secret, cover, chart, empty.',
        'the first 3 rows are not part of the table ("Sales of May"): the header is row 4.',
        'rows 4 and 5 both have names of columns: they were joined ("region, 2024 day, 2024 size, 2024 flag, …").',
        'row 15 is a total ("Total"), not a row: it was left out.',
    )
    assert table.column("region").to_list() == ["south"] * 3 + ["north"] * 6
    assert table.column("2024 day").to_list() == [(start + timedelta(days=i)).date() for i in range(9)]
    assert table.column("2024 size").to_list() == [float(f"{(i + 1) / 3e6:.16g}") for i in range(9)]
    assert table.column("2025 name of it").to_list() == [f"line\n{i}" for i in range(9)]
    with pytest.raises(
        InputError, match=r'sheet "empty" of t.xlsx is empty\. Sheets: secret, cover, chart, empty, sales'
    ):
        read(folder / "t.xlsx", sheet="empty")
