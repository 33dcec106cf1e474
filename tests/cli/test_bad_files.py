"""Files that cannot be used are errors of the data, never of coterie: law over commands and kinds of damage."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from coterie.cli import main
from fuzz.laws.command_line import foreign_options

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2)) + 9])
GOOD = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "g": ["u"] * 20 + ["v"] * 20})
TEXT = GOOD.write_csv()
LINES = TEXT.splitlines()
JUNK = RNG.integers(0, 256, 4000, dtype=np.uint8).tobytes()


def with_cell(value: str, line: int = 8) -> str:
    """The text with another first cell in that line, counted from 1."""
    rows = LINES.copy()
    rows[line - 1] = f"{value},{rows[line - 1].split(',', 1)[1]}"
    return "\n".join(rows)


UNUSABLE = {  # of which no command makes anything
    "empty.csv": b"",
    "header.csv": b"a,b,g\n",
    "blank.csv": b"\n\n\n",
    "ragged.csv": "\n".join([*LINES[:5], LINES[5] + ",1,2", *LINES[6:]]).encode(),
    "junk.csv": JUNK,
    "no mark.csv": TEXT.encode("utf-16-le"),
    "cut.csv": TEXT.encode("utf-16")[:-1],
    "open quote.csv": (TEXT + '"x').encode(),
    **{f"junk{suffix}": JUNK for suffix in (".parquet", ".arrow", ".ndjson", ".npy", ".npz", ".xlsx", ".safetensors")},
    **{f"empty{suffix}": b"" for suffix in (".parquet", ".arrow", ".ndjson", ".npy", ".npz", ".xlsx", ".safetensors")},
    "list.ndjson": b"[1, 2]\n",
    "cut.ndjson": b'{"a": 1, "b": 2}\n{"a": 1,\n',
}
COLUMNS = {  # of other types than the model was fitted to
    "text": ["x", *["1.5"] * 39],
    "dates": [date(2020, 1, 1 + i % 28) for i in range(40)],
    "durations": [timedelta(i) for i in range(40)],
    "lists": [[1.0] * (i % 3) for i in range(40)],
    "records": [{"q": i} for i in range(40)],
    "bytes": [bytes([i, 255]) for i in range(40)],
    "nothing": [None] * 40,
    "infinite": [np.inf, *[1.0] * 39],
}
COMMANDS = {
    "fit": ["fit", "{}", "-k", "2"],
    "some columns": ["fit", "{}", "-k", "2", "-c", "a,b"],
    "one-hot": ["fit", "{}", "-k", "2", "--one-hot", "g"],
    "batches": ["fit", "{}", "-k", "2", "--batch-rows", "7"],
    "mixture": ["fit", "{}", "-k", "2", "-a", "mixture"],
    "weight": ["fit", "{}", "-k", "2", "--weight", "a"],
    "output": ["fit", "{}", "-k", "2", "--missing", "median", "-o", "out.csv", "--force"],
    "choose-k": ["choose-k", "{}", "-k", "2:3", "--criteria", "silhouette"],
    "compare": ["compare", "{}", "-k", "2", "-a", "kmeans"],
    "predict": ["predict", "m.safetensors", "{}", "-o", "out.csv", "--force"],
    "predict in batches": ["predict", "m.safetensors", "{}", "--batch-rows", "7"],
    "predict categories": ["predict", "hot.safetensors", "{}"],
    "predict mixed": ["predict", "mixed.safetensors", "{}"],
    "labels": ["report", "{}", "--labels", "g", "-o", "r.html", "--force"],
    "model": ["report", "{}", "--model", "m.safetensors", "-o", "r.html", "--force"],
}
OF_CATEGORIES = ("one-hot", "mixture", "output", "predict", "predict categories", "predict mixed", "labels")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    GOOD.write_csv(folder / "good.csv")
    for name, options in {"m": [], "hot": ["--one-hot", "g"], "mixed": ["-a", "mixture"]}.items():
        how = ["-k", "2", *options, "--model", str(folder / f"{name}.safetensors"), "--quiet"]
        assert main(["fit", str(folder / "good.csv"), *how]) == 0
    return folder


@pytest.fixture
def here(folder, models):
    for path in models.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


def run(command: str, name: str) -> int:
    return main([word.replace("{}", name) for word in COMMANDS[command]])


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_file_that_cannot_be_read_is_an_error_of_the_data_in_every_command(here, capsys, name):
    (here / name).write_bytes(UNUSABLE[name])
    for command in COMMANDS:
        code, err = run(command, name), capsys.readouterr().err
        assert err.startswith("Error: "), command
        assert code == (2 if "--batch-rows is for" in err else 3), command
        assert foreign_options(COMMANDS[command][0], err) == set(), command
        assert name in err or code == 2, command
    if not name.endswith(".safetensors"):
        assert main(["info", name]) == 3


@pytest.mark.parametrize("column", ["a", "g"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_of_another_type_is_no_bug_in_any_command(here, capsys, kind, column):
    GOOD.with_columns(pl.Series(column, COLUMNS[kind])).write_parquet(here / "x.parquet")
    for command in COMMANDS if column == "a" else OF_CATEGORIES:
        code, err = run(command, "x.parquet"), capsys.readouterr().err
        assert code in (0, 2, 3), command
        assert code == 0 or err.startswith(("Error: ", "note: ", "warning: ")), command
        assert code == 0 or foreign_options(COMMANDS[command][0], err) == set(), (command, err)
        if column == "a" and command.startswith(("predict", "model")):
            assert code == 3, command
            assert "a" in err
    assert main(["info", "x.parquet"]) == 0


@pytest.mark.parametrize("command", ["predict", "predict in batches", "predict categories", "predict mixed", "model"])
@pytest.mark.parametrize(
    "value, shown", [("oops", '"oops"'), ('"x\ny"', r'"x\ny"'), ("1.5.2", '"1.5.2"'), ("y" * 99, f'"{"y" * 39}…"')]
)
def test_a_bad_cell_is_named_by_file_line_column_and_value(here, capsys, command, value, shown):
    before = '"first\nsecond"' if command != "predict mixed" else "u"  # a row of two lines above it
    text = with_cell(value).replace(",u", f",{before}", 1)
    (here / "x.csv").write_text(text)
    assert run(command, "x.csv") == 3
    line = 8 + before.count("\n")
    assert f'Error: x.csv, line {line}: column "a" has the value {shown}, but' in capsys.readouterr().err


def test_numbers_with_a_comma_before_decimals_are_not_the_bad_cell(here, capsys):
    text = with_cell("oops").replace(",", ";").replace(".", ",")
    (here / "x.csv").write_text(text)
    assert run("predict", "x.csv") == 3
    assert 'line 8: column "a" has the value "oops"' in capsys.readouterr().err


def test_a_column_that_is_missing_or_too_many_is_told(here, capsys):
    GOOD.drop("a").write_csv(here / "less.csv")
    GOOD.with_columns(z=pl.lit("q")).write_csv(here / "more.csv")
    assert run("predict", "less.csv") == 3
    assert 'no column "a"' in capsys.readouterr().err
    assert run("predict", "more.csv") == 0


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_every_encoding_with_a_mark_is_read(here, encoding):
    (here / "x.csv").write_bytes(TEXT.replace("u", "ü").encode(encoding))
    assert run("predict", "x.csv") == 0
