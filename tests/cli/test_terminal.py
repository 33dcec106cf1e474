"""Text from files and options cannot control the terminal: law over every command, stream and kind of text."""

import json
import re
import sys
import warnings

import numpy as np
import polars as pl
import pytest

from coterie.cli import main
from coterie.cli.options import PrintOptions
from coterie.cli.printable import CONTROL, printable
from coterie.cli.screen import progress_of
from coterie.jobs import Progress
from coterie.preparation.name_lists import join_names

HOSTILE = "a\x1b]0;x\x07\x1b[2Jb\x9b31m\x7f\u202egnp\u2066[red]c[/red]\t\r\nd"
NOT_SHOWN = re.compile(CONTROL.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))  # our own lines end in line breaks
RNG = np.random.default_rng(0)


@pytest.fixture
def hostile(folder):
    """A table, a file name and categories of which each is hostile."""
    X = np.concatenate([RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2)) + 20])
    frame = pl.DataFrame(
        {
            HOSTILE: X[:, 0],
            HOSTILE + "2": X[:, 1],
            HOSTILE + " words": [HOSTILE if i % 2 else f"{HOSTILE} other" for i in range(40)],
            HOSTILE + " constant": [1.0] * 40,
            HOSTILE + " almost": ["1.5"] * 39 + [HOSTILE],
        }
    )
    path = folder / f"t{HOSTILE.replace('/', '')}.parquet"
    frame.write_parquet(path)
    return path.name


def check(captured, code=0):
    for stream in captured:
        assert not NOT_SHOWN.search(stream)
    if code == 0:
        assert "\\x1b" in captured.out
        assert not re.search(r"\\r$", captured.out, re.MULTILINE)  # line breaks in names are shown as escapes, too


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "-k", "2"],
        ["fit", "-k", "2", "--one-hot", join_names([HOSTILE + " words"])],
        ["fit", "-k", "2", "-a", "mixture", "--missing", "ignore"],
        [
            "fit",
            "-k",
            "2",
            "-o",
            HOSTILE.replace("/", "") + ".csv",
            "--model",
            HOSTILE.replace("/", "") + ".safetensors",
        ],
        ["choose-k", "-k", "1:3", "--criteria", "silhouette"],
        ["compare", "-k", "2", "-a", "kmeans", "-a", "ward"],
        ["report", "--labels", HOSTILE + " words"],
        ["info"],
    ],
    ids=["fit", "one-hot", "mixture", "files", "choose-k", "compare", "report", "info"],
)
def test_no_command_prints_a_control_character(hostile, capsys, command):
    assert main([command[0], hostile, *command[1:]]) == 0
    check(capsys.readouterr())
    words = [word for word in command[1:] if not word.endswith((".csv", ".safetensors"))]
    if len(words) == len(command) - 1:
        extra = ["-o", "again.html"] if command[0] == "report" else []
        assert main([command[0], hostile, *words, *extra, "--json"]) == 0
        captured = capsys.readouterr()
        assert not NOT_SHOWN.search(captured.out)
        assert any(HOSTILE in text for text in strings(json.loads(captured.out)))


def strings(value):
    if isinstance(value, str):
        yield value
    for each in value.items() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from strings(each)


def test_predict_prints_no_control_character(hostile, capsys):
    assert main(["fit", hostile, "-k", "2", "--model", "m.safetensors"]) == 0
    capsys.readouterr()
    assert main(["predict", "m.safetensors", hostile]) == 0
    check(capsys.readouterr())
    assert main(["info", "m.safetensors"]) == 0
    check(capsys.readouterr())


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "none\x1b[2J.csv"],
        ["fit", "{table}", "--columns", "none\x1b[2J"],
        ["fit", "{table}", "-k", "\x1b[2J"],
        ["fit", "{table}", "--bogus\x1b[2J"],
        ["fit", "{table}", "-a", "\x1b[2J"],
        ["fit", "{table}", "-k", "2", "-o", "none\x1b[2J/x.csv"],
        ["fit", "{table}", "-k", "2", "--columns", join_names([HOSTILE + " words"])],
        ["fit", "{table}", "-k", "2", "-o", "{table}"],
        ["predict", "none\x1b[2J.safetensors", "{table}"],
        ["demo", "none\x1b[2J"],
        ["\x1b[2J"],
    ],
)
@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_no_error_prints_a_control_character(hostile, capsys, command, debug):
    assert main([word.replace("{table}", hostile) for word in command] + debug) in (2, 3)
    captured = capsys.readouterr()
    check(captured, code=2)
    assert "\\x1b" in captured.err
    if not debug:  # a line break in data starts no line
        assert all(line.startswith(("Error: ", "  ")) for line in captured.err.splitlines())


@pytest.mark.parametrize("cell", ["1\nError: x", "1\r\nd", "\x85", "\u2028"])
def test_a_line_break_in_a_cell_or_a_name_starts_no_line(folder, capsys, cell):
    pl.DataFrame({"a": [1.0, 2.0, 8.0], "b\nc": [1.0, 3.0, 9.0]}).write_csv("good.csv")
    pl.DataFrame({"a": [1.0, 2.0, 8.0], "b\nc": ["1.5", "2.5", cell]}).write_csv("bad.csv")
    pl.DataFrame({"a": [1.0, 2.0, 8.0], "b\nc": [1.0, None, 9.0]}).write_csv("missing.csv")
    assert main(["fit", "good.csv", "-k", "2", "--model", "m.safetensors", "-q"]) == 0
    for command in (["predict", "m.safetensors", "bad.csv"], ["fit", "missing.csv"], ["fit", "good.csv", "-k", "b\nc"]):
        capsys.readouterr()
        assert main(command) in (2, 3)
        lines = capsys.readouterr().err.split("\n")
        assert lines.pop() == ""
        assert all(line.startswith(("Error: ", "  ")) for line in lines)


def test_no_note_warning_or_bug_prints_a_control_character(hostile, capsys, monkeypatch):
    assert main(["fit", hostile, "-k", "2"]) == 0
    err = capsys.readouterr().err
    assert "skipped as text" in err
    assert "is constant" in err
    assert not NOT_SHOWN.search(err)

    def fail(*_):
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("coterie.jobs.run", fail)
    assert main(["fit", hostile]) == 1
    check(capsys.readouterr(), code=1)


def test_a_warning_of_python_prints_no_control_character(capsys, monkeypatch):
    monkeypatch.setattr("coterie.jobs.examine", lambda: warnings.warn(HOSTILE, UserWarning, stacklevel=1))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main(["doctor", "--json"])
    captured = capsys.readouterr()
    check(captured, code=1)
    assert captured.err.startswith("warning: a\\x1b")


def test_progress_shows_names_as_they_are(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    with progress_of(PrintOptions()) as tell:
        tell(Progress("reading [red]x[/red]\\[bold]\x1b]0;x\x07"))
        tell(Progress("reading [/nothing]", 1, 2))
    assert "\x1b]0" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "character", [chr(i) for i in range(0x20)] + ["\x7f", "\x80", "\x9b", "\u202e", "\u2069", "\udc80"]
)
def test_every_control_character_is_shown_as_an_escape(character):
    assert printable(f"a{character}b").isascii()
    assert printable(f"a{character}b").startswith("a\\")


def test_ordinary_text_stays_as_it_is():
    assert (
        printable("Größe → 身長 'a' \"b\" [red] \\n é e\u0301 👩‍🚀")
        == "Größe → 身長 'a' \"b\" [red] \\n é e\u0301 👩‍🚀"
    )
