"""Tables that do not fit into memory are refused by what their files say, before a reader asks for the memory."""

import os
import subprocess
import sys
import zipfile
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import polars as pl
import pytest

from coterie import machine
from coterie.data import scan_files
from coterie.data.tables.reader import read
from coterie.errors import InputError

SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PARTS = "http://schemas.openxmlformats.org/package/2006"
TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
LIMIT = 2 << 30  # bytes of address space
CORNER = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
HOSTILE = {
    "a cell in the last corner": CORNER,
    "single quotes and a bracket in an attribute": CORNER.replace('<c r="XFD1048576"', "<c t='>' r = 'XFD1048576'"),
    "a prefix of the elements": CORNER.replace("<", "<x:").replace("<x:/", "</x:"),
    "cells without a reference": f'<row>{"<c><v>1</v></c>" * 9000}</row><row r="1048576"><c><v>2</v></c></row>',
}


def workbook(path, rows, size=None):
    """An .xlsx file with these rows, which declares that its sheet is A1:B2."""
    sheet = f'<worksheet xmlns="{SHEET}" xmlns:x="{SHEET}"><dimension ref="A1:B2"/><sheetData>{rows}</sheetData>'
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        file.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{PARTS}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{TYPES}.sheet.main+xml"/></Types>',
        )
        for folder, kind, target in [("", "officeDocument", "xl/workbook.xml"), ("xl/", "worksheet", "sheet.xml")]:
            name = "_rels/.rels" if not folder else "xl/_rels/workbook.xml.rels"
            file.writestr(
                name,
                f'<Relationships xmlns="{PARTS}/relationships"><Relationship Id="a" Type="{LINKS}/{kind}" '
                f'Target="{target}"/></Relationships>',
            )
        file.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{SHEET}" xmlns:r="{LINKS}"><sheets><sheet name="s" sheetId="1" r:id="a"/></sheets>'
            "</workbook>",
        )
        file.writestr("xl/sheet.xml", f"{sheet}</worksheet>")
    return path


def spreadsheet(path, repeated):
    """An .ods file of two rows, the second as often as `repeated`."""
    cell = '<table:table-cell table:number-columns-repeated="{}" office:value-type="float" office:value="{}"/>'
    rows = "".join(
        f'<table:table-row table:number-rows-repeated="{n}">{cell.format(2 if n < 9 else 16384, value)}'
        "</table:table-row>"
        for n, value in ((1, 7), (repeated, 5), (1, 2))
    )
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet", zipfile.ZIP_STORED)
        file.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{OFFICE}:manifest:1.0"><manifest:file-entry manifest:full-path="/" '
            'manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/></manifest:manifest>',
        )
        file.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{OFFICE}:office:1.0" xmlns:table="{OFFICE}:table:1.0">'
            f'<office:body><office:spreadsheet><table:table table:name="s">{rows}</table:table></office:spreadsheet>'
            "</office:body></office:document-content>",
        )
    return path


def arrays(path):
    """An .npz file whose array of zeros is a thousand times larger than the file."""
    with ZipFile(path, "w", ZIP_DEFLATED) as file, file.open("x.npy", "w", force_zip64=True) as part:
        np.lib.format.write_array_header_1_0(part, {"descr": "<f8", "fortran_order": False, "shape": (1 << 30, 4)})
        for _ in range(8):
            part.write(bytes(1 << 20))
    return path


def bomb(path):
    """A workbook whose shared texts are 64 MB, although the archive says that they are short."""
    workbook(path, CORNER.replace("XFD1048576", "B2").replace("1048576", "2"))
    with ZipFile(path, "a", ZIP_DEFLATED) as file, file.open("xl/sharedStrings.xml", "w") as part:
        for _ in range(64):
            part.write(b"<si/>" * 200_001)
    size, content = (64 * 5 * 200_001).to_bytes(4, "little"), path.read_bytes()
    assert content.count(size) == 2
    path.write_bytes(content.replace(size, (99).to_bytes(4, "little")))
    return path


def inspected(path):
    """Exit code and messages of `coterie info` within the limit of memory."""
    code = (
        "import resource, sys; from coterie.cli import main; import coterie.jobs.info, polars;"
        f"resource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT})); raise SystemExit(main(['info', sys.argv[1]]))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is that of Linux")
def test_no_small_file_takes_the_memory_of_the_process(tmp_path):
    pytest.importorskip("fastexcel")
    path = workbook(tmp_path / "corner.xlsx", CORNER)
    assert path.stat().st_size < 2000
    code, text = inspected(path)
    assert (code, "1,048,576 rows and 16,384 columns" in text) == (3, True), text
    for path in (spreadsheet(tmp_path / "large.ods", 3_000), arrays(tmp_path / "x.npz")):
        code, text = inspected(path)
        assert (code, text.count("\n")) == (3, 1), text


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_extent_of_a_sheet_is_that_of_its_cells(tmp_path, kind):
    pytest.importorskip("fastexcel")
    with pytest.raises(InputError, match=r"1,048,576 rows and .* of memory, but only"):
        read(workbook(tmp_path / "t.xlsx", HOSTILE[kind]))


def test_sheets_of_ordinary_size_are_read(tmp_path):
    pytest.importorskip("fastexcel")
    rows = "".join(f'<row r="{i}"><c r="B{i}"><v>{i}</v></c></row>' for i in range(1, 40))
    assert read(workbook(tmp_path / "t.xlsx", rows)).n_rows == 39
    assert read(spreadsheet(tmp_path / "t.ods", 5)).n_rows == 7
    with pytest.raises(InputError, match='has no sheet "x"'):
        read(spreadsheet(tmp_path / "t.ods", 5), sheet="x")
    (tmp_path / "t.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(InputError, match=r"t\.xls"):
        read(tmp_path / "t.xls")


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_rows_and_columns_of_the_footer_decide(tmp_path, monkeypatch, suffix):
    path, frame = tmp_path / f"t{suffix}", pl.DataFrame({"a": np.zeros(200_000), "b": np.zeros(200_000)})
    frame.write_parquet(path) if suffix == ".parquet" else frame.write_ipc(path, compression="zstd")
    assert path.stat().st_size < 50_000
    free = 4_000_000
    monkeypatch.setattr(machine, "free_memory", lambda: free)
    table = read(path)
    assert table.n_rows == 200_000
    assert "100,000 rows at a time" in table.notes[0]
    free = 1_000_000
    with pytest.raises(InputError, match=r"200,000 rows and 2 columns, which take about .* only 1 MB are free"):
        read(path)


def test_declared_sizes_of_parts_are_not_trusted(tmp_path, monkeypatch):
    pytest.importorskip("fastexcel")
    path = bomb(tmp_path / "t.xlsx")
    monkeypatch.setattr(machine, "free_memory", lambda: 1 << 24)
    with pytest.raises(InputError, match="decompressed, would take"):
        read(path)


def test_damaged_archives_are_named(tmp_path):
    path = arrays(tmp_path / "x.npz")
    for content in (path.read_bytes()[:-200], path.read_bytes().replace(b"PK\x03\x04", b"PK\x03\x05")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"x\.npz"):
            read(path)


def test_a_library_that_scans_files_is_guarded_too(tmp_path):
    pytest.importorskip("fastexcel")
    with pytest.raises(InputError, match="16,384 columns"):
        scan_files(str(workbook(tmp_path / "t.xlsx", CORNER)))
