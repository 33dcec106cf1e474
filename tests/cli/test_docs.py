"""The page on the command line: its commands run, and it names every command, algorithm and option."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from coterie.cli import main
from coterie.cli.commands import app
from coterie.cli.options import AlgorithmOptions, DataOptions, RunOptions
from coterie.jobs.methods import METHODS

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ coterie (.*)$", PAGE, re.MULTILINE)


def test_every_command_of_the_page_runs_as_it_stands(folder, capsys, monkeypatch):
    for command in COMMANDS:
        line, _, source = command.partition(" < ")
        if source:
            stream = io.TextIOWrapper(io.BytesIO((folder / source).read_bytes()))
            monkeypatch.setattr(sys, "stdin", stream)
        assert main(shlex.split(line)) == 0, f"{command}\n{capsys.readouterr().err}"
    assert {command.split()[0] for command in COMMANDS} == {"demo", "info", "fit", "predict", "choose-k", "compare"}


@pytest.mark.parametrize("name", METHODS)
def test_every_algorithm_is_on_the_page_with_its_options(name):
    row = next(line for line in PAGE.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1])
    for option in METHODS[name].options:
        assert f"--{option.replace('_', '-')}" in row


def test_every_command_and_option_is_on_the_page():
    commands = [name for name in app if not name.startswith("-")]
    assert {"fit", "predict", "choose-k", "compare", "info", "doctor", "demo"} == set(commands)
    assert all(f"`{name}`" in PAGE or f"[`{name}`]" in PAGE for name in commands)
    options = {name for kind in (DataOptions, AlgorithmOptions, RunOptions) for name in kind.__dataclass_fields__}
    for name in options - {"columns", "as_json", "quiet"}:
        assert f"--{name.replace('_', '-')}" in PAGE, name
