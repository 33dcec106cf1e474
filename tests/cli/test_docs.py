"""Pages that show commands: these run, and the page on the command line names every command, algorithm and option."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from coterie.algorithms import ALGORITHMS
from coterie.cli import main
from coterie.cli.commands import app
from coterie.cli.options import (
    AlgorithmOptions,
    DataOptions,
    PageOptions,
    PlaceOptions,
    RunOptions,
    TableOptions,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
# Commands that pages show, each at least once
COMMANDS = {"demo", "info", "fit", "predict", "choose-k", "compare", "compare-labels", "report", "export"}


def with_commands() -> list[Path]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if "$ coterie " in page.read_text(encoding="utf-8")]


def shown(page: Path) -> list[tuple[str, list[str]]]:
    """Every command of a page, with the lines that the page says it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ coterie "):
                found.append((line.removeprefix("$ coterie "), []))
            else:
                found[-1][1].append(line)
    return found


def is_printed(lines: list[str], out: str) -> bool:
    """Whether the lines stand in what was printed, one after the other; … is anything, in a line or of lines."""
    pattern = "\n".join(".*" if line == "…" else re.escape(line).replace("…", "[^\n]*") for line in lines)
    return re.search(f"^{pattern}$", out, re.MULTILINE | re.DOTALL) is not None


@pytest.mark.parametrize("page", with_commands(), ids=lambda page: page.name)
def test_every_command_of_a_page_runs_as_it_stands_and_prints_what_the_page_shows(page, folder, capsys, monkeypatch):
    if "coterie demo penguins" not in page.read_text(encoding="utf-8"):
        assert main(["demo", "penguins"]) == 0
    for command, lines in shown(page):
        line, _, source = command.partition(" < ")
        if source:
            stream = io.TextIOWrapper(io.BytesIO((folder / source).read_bytes()))
            monkeypatch.setattr(sys, "stdin", stream)
        assert main(shlex.split(line)) == 0, f"{command}\n{capsys.readouterr().err}"
        out = capsys.readouterr().out
        assert is_printed(lines, out), f"{command}\n{out}"


def test_every_console_block_is_of_commands_that_are_tried():
    text = "".join(page.read_text(encoding="utf-8") for page in with_commands())
    tried = [command for page in with_commands() for command, _ in shown(page)]
    assert len(tried) == text.count("$ coterie ")
    assert {command.split()[0] for command in tried} == COMMANDS


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_is_on_the_page_with_its_options(name):
    row = next(line for line in PAGE.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1])
    for option in ALGORITHMS[name].options:
        assert f"--{option.replace('_', '-')}" in row


def test_every_command_and_option_is_on_the_page():
    commands = [name for name in app if not name.startswith("-")]
    assert {*COMMANDS, "app", "doctor", "warm"} == set(commands)
    assert all(f"`{name}`" in PAGE or f"[`{name}`]" in PAGE for name in commands)
    kinds = (DataOptions, AlgorithmOptions, RunOptions, PlaceOptions, PageOptions, TableOptions)
    options = {"batch_rows", "force"} | {name for kind in kinds for name in kind.__dataclass_fields__}
    for name in options - {"columns", "as_json", "quiet", "output"}:
        assert f"--{name.replace('_', '-')}" in PAGE, name
