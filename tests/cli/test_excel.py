"""Workbooks, with the package that reads them."""

import json
from pathlib import Path
from zipfile import ZipFile

import polars as pl
import pytest

from coterie.cli import main

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
