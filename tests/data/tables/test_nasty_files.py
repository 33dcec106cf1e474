"""Text files as they come: each is read right, or rejected with the line and what to do."""

import csv
import io
import re

import pytest

from coterie.data.tables.converted_table import converted
from coterie.data.tables.reader import read
from coterie.errors import InputError
from coterie.preparation import PreparationOptions
from coterie.preparation.detect_readings import detect_readings

A = {"a": [1, 2, 3], "b": [1.5, 2.5, 3.5]}
EUROPEAN = "a;b\n1;1,5\n2;2,5\n3;3,5\n"
PLAIN = "a,b\n1,1.5\n2,2.5\n3,3.5\n"
NAMES = {"n": ["x", "y", "z"], **A}
READ = {  # text, and the columns that a person sees in it
    "plain": (PLAIN, A),
    "semicolons": ("a;b\n1;1.5\n2;2.5\n3;3.5\n", A),
    "tabs": ("a\tb\n1\t1.5\n2\t2.5\n3\t3.5\n", A),
    "pipes": ("a|b\n1|1.5\n2|2.5\n3|3.5\n", A),
    "blanks": ("a  b\n1  1.5\n2  2.5\n3  3.5\n", A),
    "aligned blanks": (" a    b\n 1  1.5\n 2  2.5\n 3  3.5\n", A),
    "decimal comma": (EUROPEAN, A),
    "decimal comma and tabs": (EUROPEAN.replace(";", "\t"), A),
    "windows lines": (PLAIN.replace("\n", "\r\n"), A),
    "old mac lines": (PLAIN.replace("\n", "\r"), A),
    "no newline at the end": (PLAIN.rstrip(), A),
    "blank lines at the end": (PLAIN + "\n\n \n", A),
    "blank lines at the start": ("\n\n" + PLAIN, A),
    "blank line in the middle": (PLAIN.replace("2,2.5\n", "\n"), {"a": [1, None, 3], "b": [1.5, None, 3.5]}),
    "utf-8 with mark": (b"\xef\xbb\xbf" + PLAIN.encode(), A),
    "utf-16": (PLAIN.encode("utf-16"), A),
    "utf-16, big endian": (b"\xfe\xff" + PLAIN.encode("utf-16-be"), A),
    "utf-32": (PLAIN.encode("utf-32"), A),
    "windows-1252": ("größe,b\n1,1.5\n2,2.5\n3,3.5\n".encode("cp1252"), {"größe": [1, 2, 3], "b": A["b"]}),
    "mark and windows lines": (b"\xef\xbb\xbf" + EUROPEAN.replace("\n", "\r\n").encode(), A),
    "quoted numbers": ('"a","b"\n"1","1.5"\n"2","2.5"\n"3","3.5"\n', A),
    "single quotes": ("'n','a','b'\n'x','1','1.5'\n'y','2','2.5'\n'z','3','3.5'\n", NAMES),
    "delimiter in quotes": ('n,a,b\n"x, y",1,1.5\n"z",2,2.5\n"w",3,3.5\n', {"n": ["x, y", "z", "w"], **A}),
    "newline in quotes": ('n,a,b\n"x\ny",1,1.5\n"z",2,2.5\n"w",3,3.5\n', {"n": ["x\ny", "z", "w"], **A}),
    "doubled quotes": ('n,a,b\n"x ""y""",1,1.5\nz,2,2.5\nw,3,3.5\n', {"n": ['x "y"', "z", "w"], **A}),
    "escaped quotes": ('n,a,b\n"x \\"y\\"",1,1.5\n"z",2,2.5\n"w",3,3.5\n', {"n": ['x "y"', "z", "w"], **A}),
    "backslash at the end of quoted fields": (
        '"n","a","b"\n"x","1","1.5"\n"y\\","2","2.5"\n"z","3","3.5"\n',
        {"n": ["x", "y\\", "z"], **A},
    ),
    "backslash at the end of quoted lines": (
        '"a","b","n"\n"1","1.5","x"\n"2","2.5","y\\"\n"3","3.5","z"\n',
        {**A, "n": ["x", "y\\", "z"]},
    ),
    "quote in a field": ('n,a,b\n5" pipe,1,1.5\n6" pipe,2,2.5\n7,3,3.5\n', {"n": ['5" pipe', '6" pipe', "7"], **A}),
    "blanks around fields": ("a , b\n 1 , 1.5\n 2 , 2.5\n 3 , 3.5\n", {"a ": [1, 2, 3], " b": A["b"]}),
    "comment before the header": ("# made by a machine\n# in May\n" + PLAIN, A),
    "comments between rows": ("# made by a machine\n" + PLAIN.replace("2,2.5\n", "2,2.5\n# checked\n"), A),
    "header that starts with #": ("#a,b\n1,1.5\n2,2.5\n3,3.5\n", {"#a": [1, 2, 3], "b": A["b"]}),
    "title before the header": ("Sales of May\n\n" + PLAIN, A),
    "title with a delimiter": ("Sales, May\nn,a,b\nx,1,1.5\ny,2,2.5\nz,3,3.5\n", NAMES),
    "separator line of Excel": ("sep=;\n" + EUROPEAN, A),
    "title in all columns of a sheet": ("Sales of May,,\n,,\nn,a,b\nx,1,1.5\ny,2,2.5\nz,3,3.5\n", NAMES),
    "title of quoted columns": ('"Sales of May"\n"n","a","b"\n"x","1","1.5"\n"y","2","2.5"\n"z","3","3.5"\n', NAMES),
    "title, header and units": ("Sales of May\n,,\nn,a,b\n,kg,cm\nx,1,1.5\ny,2,2.5\nz,3,3.5\n", NAMES),
    "source below the table": ("n,a,b\nx,1,1.5\ny,2,2.5\nz,3,3.5\nTotal,6,7.5\n\nSurvey of May\n\nby us\n", NAMES),
    "source in a row of the table": ("n,a,b\nx,1,1.5\ny,2,2.5\nz,3,3.5\nSource: us,,\n", NAMES),
    "names of groups": (
        "n,2023,,2024,\n,a,b,a,b\nx,1,1.5,1,1.5\ny,2,2.5,2,2.5\nz,3,3.5,3,3.5\n",
        {"n": NAMES["n"], "2023 a": A["a"], "2023 b": A["b"], "2024 a": A["a"], "2024 b": A["b"]},
    ),
    "title and names of groups that repeat": (
        "Sales,,,\n,,,\n,May,May,June\nn,a,b,a\nx,1,1.5,1\ny,2,2.5,2\nz,3,3.5,3\n",
        {"n": NAMES["n"], "May a": A["a"], "May b": A["b"], "June a": A["a"]},
    ),
    "title and few names of groups": (
        "Sales,,,\n,May,,\nn,a,b,c\nx,1,1.5,u\ny,2,2.5,v\nz,3,3.5,w\n",
        {"n": NAMES["n"], "May a": A["a"], "May b": A["b"], "May c": ["u", "v", "w"]},
    ),
    "a row of words before numbers": (
        "n,a,b\nx,low,4\ny,2,2.5\nz,3,3.5\n",
        {"n": NAMES["n"], "a": ["low", "2", "3"], "b": [4, 2.5, 3.5]},
    ),
    "total and empty fields at the end": ("n,a,b\nx,1,1.5\ny,2,2.5\nz,3,3.5\nTotal,6,\n,,\n", NAMES),
    "total at the end": ("n,a,b\nx,1,1.5\ny,2,2.5\nz,3,3.5\nTotal,6,7.5\n", NAMES),
    "grand total and blank lines": ('n;a;b\nx;1;1,5\ny;2;2,5\nz;3;3,5\n"Grand total:";6;7,5\n\n', NAMES),
    "row called total": (
        "n,a,b\nx,1,1.5\ny,3,3.5\nTotal,2,2.5\n",
        {"n": ["x", "y", "Total"], "a": [1, 3, 2], "b": [1.5, 3.5, 2.5]},
    ),
    "row called total, with amounts": (
        'n,a\nx,"$1,000"\ny,"$3,000"\nTotal,"$2,000"\n',
        {"n": ["x", "y", "Total"], "a": ["$1,000", "$3,000", "$2,000"]},
    ),
    "total of amounts": (
        'n,a\nx,"1,200"\ny,950\nz,"1,500"\nTotal,"3,650"\n',
        {"n": ["x", "y", "z"], "a": ["1,200", "950", "1,500"]},
    ),
    "separator at the end of rows": ("a,b\n1,1.5,\n2,2.5,\n3,3.5,\n", A),
    "separator at the end of all lines": ("a,b,\n1,1.5,\n2,2.5,\n3,3.5,\n", {**A, "unnamed_3": [None] * 3}),
    "no header": ("1,1.5\n2,2.5\n3,3.5\n", {"column_1": [1, 2, 3], "column_2": A["b"]}),
    "short lines": ("a,b,c\n1,1.5,x\n2,2.5\n3,3.5,z\n", {**A, "c": ["x", None, "z"]}),
    "empty name": (",a,b\nx,1,1.5\ny,2,2.5\nz,3,3.5\n", {"unnamed_1": ["x", "y", "z"], **A}),
    "header between rows": ("a,b\n1,1.5\na,b\n2,2.5\n3,3.5\na,b\n", A),
    "quoted header between rows": ('"a","b"\n1,1.5\n2,2.5\n"a","b"\n3,3.5\n', A),
    "units after the header": ("a,b\nkg,cm\n1,1.5\n2,2.5\n3,3.5\n", A),
    "units in brackets": ("n;a;b\n;[EUR];(m/s)\nx;1;1,5\ny;2;2,5\nz;3;3,5\n", NAMES),
    "a row in which one field looks like a unit": (
        'a,b,c\n"1,5",s,"two\nlines"\n0,0,0\n1,1,1\n',
        {"a": ["1,5", "0", "1"], "b": ["s", "0", "1"], "c": ["two\nlines", "0", "1"]},
    ),
    "text that looks like units": ("a,b\nm,g\nm,kg\ng,kg\n", {"a": ["m", "m", "g"], "b": ["g", "kg", "kg"]}),
    "names that repeat": ("a,b\na,c\nb,b\nb,a\n", {"a": ["a", "b", "b"], "b": ["c", "b", "a"]}),
    "lines in quotes": ('"a,b"\n"1,1.5"\n"2,2.5"\n"3,3.5"\n', A),
    "lines in quotes, and quotes in them": (
        '"n,a,b"\r\n"""x, y"",1,1.5"\r\n"""z, w"",2,2.5"\r\n"""u, v"",3,3.5"\r\n',
        {"n": ["x, y", "z, w", "u, v"], **A},
    ),
    "one column of quoted names": ('"name"\n"x, y"\n"z, w"\n"u, v"\n', {"name": ["x, y", "z, w", "u, v"]}),
    "formulas of Excel": ('n,a,b\n="x",="1",1.5\n="y",="2",="2.5"\n="z",="3",="3.5"\n', NAMES),
    "same name twice": ("a,b,a\n1,1.5,7\n2,2.5,8\n3,3.5,9\n", {**A, "a_2": [7, 8, 9]}),
    "missing values": ("a,b\n1,1.5\nNA,\n3,N/A\n", {"a": [1, None, 3], "b": [1.5, None, None]}),
    "codes with zeros": ("a,b\n001,1.5\n010,2.5\n300,3.5\n", {"a": ["001", "010", "300"], "b": [1.5, 2.5, 3.5]}),
    "one column": ("a\n1\n2\n3\n", {"a": [1, 2, 3]}),
    "spaces for thousands": (
        "n;a\nx;1 000\ny;2 000\nz;3 500,5\n",
        {"n": NAMES["n"], "a": ["1 000", "2 000", "3 500,5"]},
    ),
}
DIALECTS = {  # which sheets do not have
    "blanks", "aligned blanks", "single quotes", "escaped quotes", "quote in a field", "separator line of Excel",
    "separator at the end of rows", "lines in quotes", "lines in quotes, and quotes in them", "formulas of Excel",
    "old mac lines", "backslash at the end of quoted fields", "backslash at the end of quoted lines",
}  # fmt: skip
PLAIN_NUMBER = re.compile(r"[1-9]\d*(\.\d+)?")
REJECTED = {  # text, and what the error says
    "too many fields": ("a,b\n1,1.5\n2,2.5,9\n3,3.5\n", r"line 3 has 3 fields, the first has 2.*quotes"),
    "comma for decimals and fields": ("a,b\n1,1,5\n2,2,5\n3,3,5\n", r"line 2 has 3 fields, the first has 2"),
    "too many fields after a title": ("Sales of May\n\na,b\n1,1.5\n2,2.5\n2,2.5,9\n3,3.5\n", r"line 6 has 3 fields"),
    "open quote": ('n,a\n"x,1\ny,2\nz,3\n', r"cannot read.* line 2 has a double quote without its partner"),
    "open quote at the end": ('n,a\n"x\ny",1\nz,"3\n', r"line 4 has a double quote"),
    "open quote in the header": ('"n,a\nx,1\ny,2\nz,3\n', r"line 1 has a double quote"),
    "header cut within quotes": ('"n","a', r"the header has a double quote"),
    "open quote before the header": ('"\nn,a\nx,1\ny,2\nz,3\n', r"line 1 has a double quote"),
    "no text": (b"\x00\x01\x02\x03" * 20, r"it is not text.*UTF-8"),
    "utf-16 without mark": (PLAIN.encode("utf-16-le"), r"it is not text.*UTF-8"),
    "nothing": ("", "is empty"),
    "header only": ("a,b\n", "no rows"),
    "blank lines only": ("\n\n\n", "is empty"),
}
NUMBERS = {  # cells for people, which a fit reads as numbers
    "decimal comma in quotes": ('b,a\n1,"1,5"\n2,"2,5"\n3,"3,5"\n', 3.5),
    "thousands in quotes": ('a,b\n"1,000",1\n"2,000",2\n"3,500",3\n', 3500),
    "thousands and decimals": ("a;b\n1.000,5;1\n2.000,5;2\n3.499,5;3\n", 3499.5),
    "spaces": ("a;b\n1 000;1\n2 000,5;2\n3 500;3\n", 3500),
    "apostrophes": ("a;b\n1'000;1\n2'000.5;2\n3'500;3\n", 3500),
    "euros": ("a;b\n1.000,50 €;1\n2.000,00 €;2\n3.500,00 €;3\n", 3500),
    "dollars": ('a,b\n"$1,000.50",1\n"$2,000.00",2\n"$3,500.00",3\n', 3500),
    "percent": ("a,b\n10%,1\n20%,2\n35%,3\n", 35),
    "losses in parentheses": ("a,b\n(10),1\n20,2\n35,3\n", 35),
    "lakhs": ("a;b\n1,00,000;1\n2,50,000;2\n12,34,567;3\n", 1234567),
    "minus signs": ("a;b\n\u22121,5;1\n\u22122,5;2\n3,5;3\n", 3.5),
    "no-break spaces": ("a;b\n1\u00a0000;1\n2\u00a0000,5;2\n3\u00a0500;3\n", 3500),
}


def write(folder, text):
    path = folder / "nasty.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("batch_rows", [None, 2])
def test_every_file_is_read_as_a_person_reads_it(tmp_path, batch_rows):
    for name, (text, columns) in READ.items():
        table = read(write(tmp_path, text), batch_rows)
        assert table.n_rows == 3, name
        frame = table.frame()
        assert frame.to_dict(as_series=False) == columns, name


def test_every_sheet_is_read_like_the_text_file_of_its_cells(tmp_path):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    path = tmp_path / "nasty.xlsx"
    for name, (text, columns) in READ.items():
        if name in DIALECTS or isinstance(text, bytes):
            continue
        delimiter = max(",;\t|", key=text.count)
        cells = list(csv.reader(io.StringIO(text), delimiter=delimiter))
        with xlsxwriter.Workbook(path, {"strings_to_formulas": False}) as workbook:
            workbook.add_worksheet("notes").hide()
            sheet = workbook.add_worksheet("rows")
            for i, row in enumerate(cells):
                for j, cell in enumerate(row):
                    number = cell if delimiter == "," else cell.replace(",", ".")
                    is_number = PLAIN_NUMBER.fullmatch(number)
                    sheet.write_number(i, j, float(number)) if is_number else sheet.write_string(i, j, cell)
        table = read(path)
        assert table.frame().to_dict(as_series=False) == columns, name
        expected = read(write(tmp_path, text)).notes
        assert [*map(plain, table.notes[1:])] == [*map(plain, expected)], name


def plain(note):
    return re.sub(r"[\s,;]+", " ", note.replace("line", "row"))


@pytest.mark.parametrize("batch_rows", [None, 2])
def test_every_other_file_is_rejected_with_line_and_remedy(tmp_path, batch_rows):
    for name, (text, message) in REJECTED.items():
        with pytest.raises(InputError) as caught:
            read(write(tmp_path, text), batch_rows)
        assert re.search(message, str(caught.value)), (name, str(caught.value))


def test_numbers_for_people_are_numbers(tmp_path):
    for name, (text, largest) in NUMBERS.items():
        table = read(write(tmp_path, text))
        readings = detect_readings(table, PreparationOptions(), ["a"], ["number"]).readings
        assert converted(table, readings).column("a").max() == pytest.approx(largest), name


def test_codes_and_questions_are_the_names_of_a_survey(tmp_path):
    lines = ["Q1,Q2", '"How old, in years?",How tall?', *(f"{20 + i % 5},{150 + i}" for i in range(12))]
    table = read(write(tmp_path, "\n".join(lines)))
    assert table.columns == ["Q1 How old, in years?", "Q2 How tall?"]
    assert table.n_rows == 12


def test_there_are_many_files():
    assert len(READ) + len(REJECTED) + len(NUMBERS) >= 60


def test_lines_that_are_no_rows_are_noted(tmp_path):
    total = read(write(tmp_path, READ["total at the end"][0]))
    assert total.notes == ('line 5 is a total ("Total"), not a row: it was left out.',)
    source = read(write(tmp_path, READ["source below the table"][0]))
    assert source.notes == (
        'the last 2 lines are not part of the table ("Survey of May"): left out.',
        'line 5 is a total ("Total"), not a row: it was left out.',
    )
    row = read(write(tmp_path, "n,a,b\nx,1,1.5\ny,2,2.5\nSt. Marys,,\n"))  # a place without values
    assert (row.n_rows, row.notes) == (3, ())
    title = read(write(tmp_path, READ["title before the header"][0]))
    assert title.notes == ('the first 2 lines are not part of the table ("Sales of May"): the header is line 3.',)
    groups = read(write(tmp_path, READ["names of groups"][0]))
    assert groups.notes == (
        'lines 1 and 2 both have names of columns: they were joined ("n, 2023 a, 2023 b, 2024 a, …").',
    )
    repeated = read(write(tmp_path, READ["header between rows"][0]))
    assert repeated.notes == ("line 3 repeats the header, and so do 1 more lines: left out.",)
    units = read(write(tmp_path, READ["units after the header"][0]))
    assert units.notes == ('line 2 has units ("kg, cm"), not a row: it was left out.',)
    comments = read(write(tmp_path, READ["comments between rows"][0]))
    assert "comments" in comments.notes[-1]


def test_a_quote_within_a_field_far_down_a_large_file_is_an_error_with_its_line(tmp_path):
    rows = [f"item number {i:05d} of the list,{i % 7}.123,{i % 5}.456" for i in range(6000)]
    rows[10] = '"with ""quotes"" and\na line break",1,2'
    rows[3000] = '12" pipe,1.5,2.5'
    with pytest.raises(InputError, match="line 3003 has a double quote within a field: put the field"):
        read(write(tmp_path, "name,a,b\n" + "\n".join(rows) + "\n")).frame(("a", "b"))
