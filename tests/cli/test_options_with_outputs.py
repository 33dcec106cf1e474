"""Every option of `coterie fit` works together with all files that a fit writes."""

import json
import re
import shlex
from itertools import pairwise
from typing import Literal, get_args, get_origin

import polars as pl
import pytest

from coterie.cli import main
from coterie.cli.commands import app
from coterie.cli.failures import Exit
from coterie.report.html import Absent

ROWS = 48
OUTPUTS = "--report r.html --profiles p.csv --animate a.html --json -o out.csv --model m.safetensors --safe-csv --force"
WITHOUT_ANIMATION = OUTPUTS.replace(" --animate a.html", "")
CHOICES = [  # each is run with the next value of every option that takes one of a few values
    "table.csv -k 2 --missing drop --columns x,y,day,paid",
    "table.csv -k 2 --missing mean --exclude sort --names low,high --static",
    'table.csv -k 2 --missing median --sql "select * from data where y < 90" --id name --weight w',
    "book.xlsx -k 2 --missing ignore --sheet Rows --header-row 2 --one-hot sort --transform log:x,none:y",
    "table.csv -k 2 --missing error --exclude y --include number --na-values tbd,x",
    "table.csv -k 2:3 --missing drop --search fast --n-init 2 --max-iter 50 --tol 0.01 --budget quick",
    "table.csv -k 2:3 --missing ignore --sample 30 --budget quick --seed 3 --threads 1 --strict -q",
    "table.csv -k 2 --missing drop --engine dask --batch-rows 10",
]
FIXED = [
    "table.csv -k 2 --missing drop --engine local --checkpoint c.safetensors",
    "table.csv -k 2 --missing drop -a gmm --covariance diag",
    "table.csv -k 2 --missing drop -a kmedoids --metric manhattan",
    "table.csv -k 2 --missing drop -a kernel --kernel rbf --gamma 0.5",
    "table.csv -k 2 --missing drop -a fuzzy --fuzzifier 1.5",
    "table.csv -k 2 --missing drop -a minibatch --batch-size 10",
    "table.csv -k 2 --missing drop -a balanced --size-min 5 --size-max 40",
    "table.csv --missing drop -a dbscan --eps 0.9 --min-samples 3",
    "table.csv --missing drop -a hdbscan --min-cluster-size 5",
    "series.csv -k 2 --series id,time,value --window 1",
]
NOT_HERE = {("--device", "cuda")}  # needs a GPU


def declared():
    """The options of the command, and the values of those that take one of a few."""
    arguments = [each for each in app["fit"].assemble_argument_collection() if each.show and each.names[0][0] == "-"]
    return {
        each.parameter.name[0]: get_args(each.hint) if get_origin(each.hint) is Literal else () for each in arguments
    }


def completed(line, number):
    """The line with a value of every option that takes one of a few values and is not in the line."""
    choices = {name: values for name, values in declared().items() if values and name != "--algorithm"}
    more = [f"{name} {values[number % len(values)]}" for name, values in choices.items() if name not in line]
    return " ".join([line, *(option for option in more if tuple(option.split()) not in NOT_HERE)])


LINES = [*(f"{completed(line, i)} {OUTPUTS}" for i, line in enumerate(CHOICES)), *(
    f"{line} {WITHOUT_ANIMATION}" for line in FIXED)]  # fmt: skip


@pytest.fixture
def tables(folder):
    half = [i % 2 for i in range(ROWS)]
    frame = pl.DataFrame({
        "name": [f"row {i}" for i in range(ROWS)],
        "number": list(range(ROWS)),
        "x": [1.0 + 50 * h + i % 7 for i, h in enumerate(half)],
        "y": [None if i % 11 == 3 else 3.0 * h + i % 5 for i, h in enumerate(half)],
        "day": [f"2024-{1 + 6 * h + i % 3:02}-{1 + i % 27:02}" for i, h in enumerate(half)],
        "paid": [f"${1000 + 300 * h + i % 9}" for i, h in enumerate(half)],
        "sort": ["ab"[i % 3 == 0] for i in range(ROWS)],
        "w": [1 + i % 3 for i in range(ROWS)],
    })  # fmt: skip
    frame.write_csv("table.csv")
    with pytest.importorskip("xlsxwriter").Workbook("book.xlsx") as book:
        book.add_worksheet("About").write(0, 0, "about")
        frame.write_excel(book, "Rows", position=(1, 0))
    long = [(s, t, 10 * (s % 2) + (s + t) % 3) for s in range(12) for t in range(4)]
    pl.DataFrame(long, schema=["id", "time", "value"], orient="row").write_csv("series.csv")


@pytest.fixture(autouse=True)
def without_slow_parts(monkeypatch):
    for name in ("resampling_stability", "diagnosis"):
        monkeypatch.setattr(f"coterie.report.build.reliability.{name}", lambda *_: Absent("not looked at"))


def test_no_option_of_fit_is_missing_here():
    words = [shlex.split(line) for line in LINES]
    short = {"--quiet": "-q", "--algorithm": "-a", "--output": "-o"}
    absent = [name for name in declared() if not any(short.get(name, name) in line for line in words)]
    pairs = {pair for line in words for pair in pairwise(line)}
    choices = {(name, value) for name, values in declared().items() for value in values if name != "--algorithm"}
    assert (absent, choices - pairs) == ([], NOT_HERE)


@pytest.mark.parametrize("line", LINES)
def test_every_option_works_with_all_outputs(tables, folder, capsys, line):
    if "--sql" in line:
        pytest.importorskip("duckdb")
    code = main(["fit", *shlex.split(line)])
    out, err = capsys.readouterr()
    result = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert code == (Exit.NOT_CLEAR if result.get("strength") == "none" else Exit.DONE), err
    written = {path.name for path in folder.iterdir()} - {"table.csv", "book.xlsx", "series.csv"}
    assert written == set(re.findall(r"(?:r|a)\.html|p\.csv|out\.csv|m\.safetensors", line))
    assert sum(cluster["rows"] for cluster in result["clusters"]) <= ROWS
