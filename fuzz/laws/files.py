"""Tables as people write them, in any file, with any options of `coterie fit`; and files that ask for much memory."""

from __future__ import annotations

import resource
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import polars as pl

from coterie.cli.commands import app
from coterie.cli.failures import Exit
from fuzz.draw import Draw
from fuzz.finding import Rejected, require
from fuzz.law import Case, law
from fuzz.laws.command_line import COMMON, FORMATS, OTHER_FORMATS, damaged_text, frame_of, run, started, write
from fuzz.laws.persistence import CHILD_SECONDS

CELLS = (
    ("1", "2", "-60", "3.5", "1,5", "1.234", "$1,001.35", "12k", "5 kg", "(120)", "1e308", "-1e200", "1e-320", "0",
     "007", "inf", "1 234", "99999999999999999999", "68.2%", "1e400", "-0", "+3", "0x10"),
    ("2024-01-05", "05.03.2021", "3/4/2020", "2024-02-30", "2024-05-01 10:00", "Jan 5, 2020", "1.1.99", "20200101"),
    ("yes", "no", "a", "b", "true", "False", "ü", '"x,y"', "'", "=cmd()", "女", "a b", "-k 3", "--x"),
    ("1", "2", "3"), ("yes", "no"), ("2024-01-01", "2025-06-01"), ("1.5",), ("1e200", "-1e200", "3", "1e-200"),
)  # fmt: skip
MARKS = (None, None, "", "(blank)", "n/a", "-", "?", "NaN", "null", "#REF!")
NAMES = ("date", "x", "a=b", "é", "cluster", "id", " y ", "1", "-k", "profit --net of -k 3", 'q"uote', "select")
QUERIES = (
    "select * from data",
    "select * from data limit 5",
    "select count(*) as n from data",
    "select 1",
    "drop x",
    "select *, interval 1 day as i, [1, 2] as l, {'a': 1} as s from data",
)
OUTPUTS = {
    "--report": "r.html",
    "--profiles": "p.csv",
    "--animate": "a.html",
    "-o": "o.csv",
    "--model": "m.safetensors",
}
VALUES: dict[Any, tuple[str, ...]] = {
    int: ("1", "2", "5", "30", "9" * 25), float: ("0.5", "1.5", "1e308"), str: ("standard", "none", "euclidean"),
    "-k": ("1", "2", "2", "2:4", "2:4", "2:99999999999"),
}  # fmt: skip
NOT_HERE = ("--device", "--engine", "--checkpoint", "--output")
SMALL = 3 << 30  # bytes of address space of a command
FAR = '<row r="{0}"><c r="{1}{0}"><v>1</v></c></row>'


def text_table(draw: Draw) -> tuple[str, list[str]]:
    """Lines as people write them, and the names of the columns."""
    d, n, separator = draw.integer(1, 4), draw.one_of([1, 3, 6, 14, 40, 40]), draw.one_of([",", ",", ";", "\t", "|"])
    names = [draw.one_of(NAMES) + (str(j) if draw.happens(0.8) else "") for j in range(d)]
    pools = [draw.one_of(CELLS) for _ in range(d)]
    pools = [[draw.one_of(pool) for _ in range(draw.integer(1, 5))] for pool in pools]
    marks = [draw.one_of(MARKS) for _ in range(d)]
    lines = [separator.join(names)]
    for _ in range(n):
        is_missing = [mark is not None and draw.happens(0.3) for mark in marks]
        cells = [str(mark) if missing else draw.one_of(pool)
                 for mark, missing, pool in zip(marks, is_missing, pools, strict=True)]  # fmt: skip
        lines.append(separator.join(cells))
    return draw.one_of(["\n", "\r\n"]).join(lines), names


@cache
def options() -> dict[str, Any]:
    """The options of `coterie fit` and their types, from its declaration."""
    arguments = app["fit"].assemble_argument_collection()
    return {each.names[0]: each.hint for each in arguments if each.show and each.names[0].startswith("-")}


def random_options(draw: Draw, names: list[str]) -> list[str]:
    """Some options with values of their types; columns by their names."""
    words = ["-k", draw.one_of(VALUES["-k"]), "--missing", draw.one_of(["drop", "median", "median", "ignore", "mean"])]
    for name, hint in options().items():
        if name in (*NOT_HERE, *words, *COMMON, *OUTPUTS) or not draw.happens(0.03):
            continue
        kinds = [each for each in (hint, *get_args(hint)) if each in VALUES]
        choices = get_args(hint) if get_origin(hint) is Literal else VALUES[kinds[0]] if kinds else ()
        column = '"' + draw.one_of(names).replace('"', '""') + '"'
        if hint is bool:
            words.append(name)
        elif choices and name not in ("--sql", "--sheet", "--id", "--weight"):
            words.append(f"{name}={draw.one_of(choices)}")
        elif name == "--transform":
            words.append(f"{name}=log:{column}")
        elif name == "--sql":
            words.append(f"{name}={draw.one_of(QUERIES)}")
        else:
            words.append(f"{name}={column if 'list' in str(hint) else draw.one_of(names)}")
    return words + [word for option, file in OUTPUTS.items() if draw.happens(0.25) for word in (option, file)]


def workbook(path: Path, text: str, separator: str) -> None:
    """The cells of a text as a sheet; numbers are numbers."""
    import xlsxwriter

    with xlsxwriter.Workbook(path, {"strings_to_numbers": True, "strings_to_formulas": False}) as book:
        sheet = book.add_worksheet("Rows")
        for i, line in enumerate(text.splitlines()):
            for j, cell in enumerate(line.split(separator)):
                with suppress(TypeError):  # infinite numbers
                    sheet.write(i, j, cell)


@law(["jobs.run"], weight=6, hypothesis=False)
def no_option_and_no_table_looks_like_a_bug(case: Case) -> None:
    """A text file or a workbook, any options, and any of the files that a fit writes."""
    text, names = text_table(case.draw)
    path = Path(case.draw.one_of(["t.csv", "t.csv", "t.xlsx"]))
    separator = next((each for each in "\t;|" if each in text), ",")
    if path.suffix == ".csv":
        path.write_text(text, encoding="utf-8")
    else:
        workbook(path, text, separator)
    words = random_options(case.draw, names)
    case.note(f"{text!r} {words}")
    code, text = run("fit", str(path), *words, *COMMON)
    require("encountered in" not in text, f"a warning of NumPy: {text}")
    if code != Exit.DONE:
        raise Rejected(text)


def far_workbook(draw: Draw, path: Path) -> None:
    """A workbook whose last cell may be in any place."""
    pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]}).write_excel(path)
    with ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    cell = FAR.format(draw.one_of([9, 2000, 1 << 20]), draw.one_of(["A", "C", "ZZ", "XFD"])).encode()
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = parts[sheet].replace(b"</sheetData>", cell + b"</sheetData>")
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)


def large_table(draw: Draw, path: Path) -> None:
    """A small file of a table that takes up to some GB of memory."""
    n = draw.one_of([10**5, 10**7])
    if path.suffix == ".xlsx":
        far_workbook(draw, path)
    elif path.suffix == ".npz":
        with ZipFile(path, "w", ZIP_DEFLATED) as file, file.open("x.npy", "w") as part:
            header = {"descr": "<f8", "fortran_order": False, "shape": (n * draw.one_of([1, 10**4]), 4)}
            np.lib.format.write_array_header_1_0(part, header)
            part.write(bytes(1 << 16))
    else:
        frame = pl.select(pl.repeat(1, n, dtype=pl.Int8).alias("a"), pl.repeat(0.5, n, dtype=pl.Float32).alias("b"))
        if draw.happens(0.6):  # rows that are long, or share a text
            kind = draw.one_of([pl.List(pl.Int8), pl.String, pl.Categorical])
            row = [1] * draw.one_of([300, 10**6]) if kind == pl.List else "x" * draw.one_of([5000, 10**5])
            frame = frame.head(200 if kind == pl.List else 10**5)
            frame = frame.with_columns(pl.Series("c", [row], dtype=kind).new_from_index(0, frame.height))
        frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_ipc(path, compression="zstd")


@law(["jobs.inspect", "jobs.run"], hypothesis=False)
def no_file_ends_the_process(case: Case) -> None:
    """With little memory, a table is read or refused, whatever its file says about its size."""
    if case.draw.happens(0.5):
        path = Path(case.draw.one_of(["large.xlsx", "large.npz", "large.parquet", "large.arrow"]))
        large_table(case.draw, path)
    else:
        path = Path(f"bad.{case.draw.one_of([*FORMATS, *OTHER_FORMATS, 'xlsx'])}")
        write(frame_of(case, case.draw.integer(1, 30)) if path.suffix != ".xlsx" else pl.DataFrame({"a": [1, 2]}), path)
        path.write_bytes(damaged_text(case, path.read_bytes()))
    command = ["info", str(path)] if case.subject == "jobs.inspect" else ["fit", str(path), "-k", "2", *COMMON]
    case.note(f"{command} of {path.stat().st_size} bytes")
    code = started(command, preexec_fn=little_memory).wait(CHILD_SECONDS)
    require(code in (Exit.DONE, Exit.USAGE, Exit.DATA, Exit.NOT_CONVERGED), f"coterie {' '.join(command)}: {code}")
    path.unlink()


def little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (SMALL, SMALL))
