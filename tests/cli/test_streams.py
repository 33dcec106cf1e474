"""Standard streams that are closed, or full."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from coterie.cli import main

COMMANDS = [["info", "t.csv"], ["fit", "t.csv", "-k", "2", "--json"], ["demo"], ["--help"], ["--version"]]
MESSAGE = "Error: cannot write to standard output: No space left on device. Write it to another place.\n"


@pytest.fixture
def table(folder):
    (folder / "t.csv").write_text("a,b\n1,2\n3,4\n5,9\n6,1\n")
    return folder


@pytest.fixture
def full(monkeypatch):
    """Makes a stream full."""
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")

    with ExitStack() as files:

        def make(name):
            stream = files.enter_context(Path("/dev/full").open("w", buffering=1, encoding="utf-8"))
            monkeypatch.setattr(sys, name, stream)

        yield make


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_closed_streams_lose_the_output_only(table, monkeypatch, command):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(command) == 0
    assert main(["info", "no.csv"]) == 3
    for name in ("stdin", "stdout", "stderr"):
        getattr(sys, name).close()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_full_output_is_named(table, full, capsys, command):
    full("stdout")
    assert main(command) == 3
    assert capsys.readouterr().err.endswith(MESSAGE)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_messages_that_find_no_place_do_not_change_the_result(table, full, capsys, command):
    full("stderr")
    assert main(command) == 0
    assert capsys.readouterr().out
    assert main(["info", "no.csv"]) == 3


def test_no_standard_input_is_an_empty_one(table, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["fit", "-", "-k", "2"]) == 3
    assert capsys.readouterr().err == "Error: standard input is empty.\n"
    sys.stdin.close()


def test_the_interpreter_has_nothing_left_to_write_at_its_end(table, python):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    code = "import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), {}); from coterie.cli import main; {}"
    done = python(code.format(1, "sys.exit(main(['info', 't.csv']))"))
    assert (done.returncode, done.stderr) == (3, MESSAGE)
    done = python(code.format(2, "sys.exit(main(['info', 'no.csv']))"))
    assert (done.returncode, done.stdout) == (3, "")
