"""Tables in files, through the command line: formats agree, damage is never called a bug."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import coterie
from coterie.cli import main
from coterie.cli.failures import Exit
from coterie.cli.printable import CONTROL
from fuzz import tables
from fuzz.finding import LawBroken, Rejected, require, require_same
from fuzz.law import Case, law
from fuzz.laws.persistence import CHILD_SECONDS, fill_disk

COMMON = ("--seed", "0", "--threads", "1", "-q", "--force")
FITS = ("jobs.run", "jobs.predict")
COMMANDS: dict[str, tuple[str, ...]] = {  # what to do with a damaged table; predict has a law of its own
    "jobs.run": ("fit", "bad", "-k", "2", "-o", "out.csv", *COMMON),
    "jobs.inspect": ("info", "bad"),
    "jobs.choose": ("choose-k", "bad", "-k", "1-3", "--budget", "quick", "--threads", "1", "-q"),
    "jobs.compare": ("compare", "bad", "-k", "2", "-a", "kmeans,ward", "--threads", "1", "-q"),
}
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*\w")
CONTROL_BUT_LINES = re.compile(CONTROL.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
FORMATS = ("csv", "tsv", "parquet", "ndjson", "arrow")
OTHER_FORMATS = ("feather", "npy", "npz")  # and workbooks, which have laws of their own: a fault seldom reaches cells
METHODS = ("kmeans", "kmedoids", "ward", "gmm", "fuzzy", "minibatch", "spherical")


def call(*arguments: str) -> tuple[int, str]:
    """Exit code and output of the command line; an error names options of its own command only."""
    code, text = run(*arguments)
    if code != Exit.DONE:
        foreign = foreign_options(arguments[0], text)
        require(not foreign, f"coterie {' '.join(arguments)} has no {foreign}, but its error says: {text}")
    return code, text


def foreign_options(command: str, text: str) -> set[str]:
    """The options in a text that a command does not have."""
    return set(OPTION.findall(text)) - options_of(command)


@cache
def options_of(command: str) -> frozenset[str]:
    _, text = run(command, "--help")
    return frozenset(OPTION.findall(text)) | {"--debug"}


def run(*arguments: str) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(arguments))
        except SystemExit as stop:
            code = int(stop.code or 0)
    text = out.getvalue() + err.getvalue()
    if code == Exit.BUG:
        raise LawBroken(f"coterie {' '.join(arguments)}: {text}")
    control = CONTROL_BUT_LINES.search(text)
    require(control is None, f"coterie {' '.join(arguments)} prints {control}")
    return code, text


def write(frame: pl.DataFrame, path: Path) -> None:
    {
        ".csv": lambda: frame.write_csv(path),
        ".tsv": lambda: frame.write_csv(path, separator="\t"),
        ".parquet": lambda: frame.write_parquet(path),
        ".ndjson": lambda: frame.write_ndjson(path),
        ".arrow": lambda: frame.write_ipc(path),
        ".feather": lambda: frame.write_ipc(path, compression="zstd"),
        ".xlsx": lambda: frame.write_excel(path),
        ".npy": lambda: np.save(path, frame.to_numpy()),
        ".npz": lambda: np.savez_compressed(path, x=frame.to_numpy()),
    }[path.suffix]()


def read(path: Path) -> pl.DataFrame:
    return {
        ".csv": pl.read_csv,
        ".tsv": lambda file: pl.read_csv(file, separator="\t"),
        ".parquet": pl.read_parquet,
        ".ndjson": pl.read_ndjson,
        ".arrow": pl.read_ipc,
    }[path.suffix](path)


def frame_of(case: Case, n: int) -> pl.DataFrame:
    """A table with names and values that are awkward in text files."""
    X = tables.hostile(case.draw, n, case.draw.integer(1, 4), scaled=False).astype(float)
    names = case.draw.one_of([["a", "b c", "ü,;", "=d"], ["a\x1b[2J", "b\n\x9b1m", "\u202ec", "[red]d\x07"]])
    return pl.DataFrame({name: X[:, j] for j, name in enumerate(names[: X.shape[1]])})


@law(FITS, weight=3, hypothesis=False)
def formats_of_files_agree(case: Case) -> None:
    """The same table in two formats gives the same labels, and predict gives them again."""
    n = case.draw.integer(6, 60)
    frame, method = frame_of(case, n), case.draw.one_of(METHODS)
    labels = {}
    for kind in (case.draw.one_of(FORMATS), case.draw.one_of(FORMATS)):
        source, result, model = Path(f"table.{kind}"), Path(f"result.{kind}"), Path("model.safetensors")
        write(frame, source)
        case.note(f"coterie fit {source} -a {method} -k 2, {n} rows")
        code, text = call(
            "fit", str(source), "-a", method, "-k", "2", "-o", str(result), "--model", str(model), *COMMON
        )
        if code != Exit.DONE:
            require(code in (Exit.USAGE, Exit.DATA, Exit.NOT_CONVERGED), f"exit code {code}: {text}")
            raise Rejected(text)
        labels[kind] = read(result)["cluster"].to_numpy()
        require(read(result).columns[: frame.width] == frame.columns, f"columns of {result}: {read(result).columns}")
        if method not in ("ward", "kmedoids"):
            code, text = call("predict", str(model), str(source), "-o", str(result), "-q", "--force")
            require(code == Exit.DONE, f"coterie predict: exit code {code}: {text}")
            require_same(read(result)["cluster"].to_numpy(), labels[kind], "labels of fit and of predict")
    first, *rest = labels.values()
    for other in rest:
        require_same(other, first, f"labels of {' and '.join(labels)}")


def damaged_text(case: Case, data: bytes) -> bytes:
    """A text file with a random fault: a bad cell, bytes that are no text, missing or extra fields, quotes."""
    draw = case.draw
    lines = data.split(b"\n")
    row = draw.integer(0, len(lines) - 1)
    junk = draw.one_of([b"x", b"", b"nan", b"inf", b"-", b"1e999", b'"', b"\xff\xfe", b"\x00", b"1,5", b"\r", b"=1+1",
                        b"\x1b[2J", b'"a\nb"', b"9" * 400])  # fmt: skip
    fault = draw.one_of(["cell", "line", "cut", "append", "insert"])
    case.note(f"{fault} {junk[:20]!r} in line {row} of {len(lines)}")
    if fault == "cell":
        lines[row] = b",".join([junk, *lines[row].split(b",")[1:]])
    elif fault == "line":
        lines[row] = junk
    elif fault == "insert":
        lines.insert(row, junk)
    text = b"\n".join(lines)
    return text[: draw.integer(0, len(text))] if fault == "cut" else text + junk if fault == "append" else text


@law(COMMANDS, weight=2, hypothesis=False)
def damaged_tables_never_look_like_a_bug(case: Case) -> None:
    """A result, or an error of the data with its exit code; never "This is a bug in coterie"."""
    _, bad = good_and_bad(case)
    call(*(str(bad) if argument == "bad" else argument for argument in COMMANDS[case.subject]))


@law(["jobs.predict"], weight=5, hypothesis=False)
def damaged_tables_to_predict_never_look_like_a_bug(case: Case) -> None:
    good, bad = good_and_bad(case)
    code, text = call("fit", str(good), "-k", "2", "-o", "out.csv", "--model", "model.safetensors", *COMMON)
    if code != Exit.DONE:
        raise Rejected(text)
    call("predict", "model.safetensors", str(bad), "-o", "out.csv", "-q", "--force")


def good_and_bad(case: Case) -> tuple[Path, Path]:
    """A file, and the same with a random fault."""
    frame = frame_of(case, case.draw.integer(1, 30))
    kind = case.draw.one_of(["csv", "csv", *FORMATS, *OTHER_FORMATS])
    good, bad = Path(f"good.{kind}"), Path(f"bad.{kind}")
    write(frame, good)
    bad.write_bytes(damaged_text(case, good.read_bytes()))
    return good, bad


@law(["jobs.run"], hypothesis=False)
def two_runs_give_the_same_output(case: Case) -> None:
    write(frame_of(case, case.draw.integer(6, 60)), Path("table.csv"))
    command = ("fit", "table.csv", "-k", "2", "-o", "out.csv", "--json", *COMMON)
    outputs = [call(*command) for _ in range(2)]
    if outputs[0][0] != Exit.DONE:
        raise Rejected(outputs[0][1])
    results = [_without_times(json.loads(text)) for _, text in outputs]
    require(results[0] == results[1], f"two runs differ: {results[0]} and {results[1]}")


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if "seconds" not in key and "time" not in key}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


LONGEST_DELAY = 4.0  # seconds, longer than most of these commands take
OUTPUTS = {"-o": "out.csv", "--model": "model.safetensors", "--report": "page.html"}


def fit_with_outputs(case: Case) -> tuple[Path, list[str], dict[str, bytes]]:
    """A folder with old output files, the command that replaces them, and the contents that it writes."""
    folder = Path(f"outputs-{case.draw.integer(0, 10**9)}")
    folder.mkdir()
    table = folder / "table.csv"
    write(frame_of(case, case.draw.integer(12, 40)), table)
    outputs = {option: str(folder / name) for option, name in OUTPUTS.items()}
    command = ["fit", str(table), "-k", "2", *(word for pair in outputs.items() for word in pair), *COMMON]
    code, text = call(*command)
    if code != Exit.DONE:
        shutil.rmtree(folder)
        raise Rejected(text)
    new = {name: Path(name).read_bytes() for name in outputs.values()}
    for name in new:
        Path(name).write_bytes(b"old")
    return folder, command, new


def started(command: list[str], **options: Any) -> subprocess.Popen[Any]:
    """The command in a process of its own: a fork would hang in the threads that read files."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options
    return subprocess.Popen([sys.executable, "-m", "coterie", *command], **options)


def signalled(case: Case, command: list[str], by: int) -> tuple[int, str]:
    """Exit code and error output of the command, which gets the signal at a random moment if it still runs."""
    delay = float(case.draw.rng.uniform(0.0, LONGEST_DELAY))
    case.note(f"signal {by} after {delay:.4f} s")
    process = started(command, stderr=subprocess.PIPE, text=True)
    try:
        _, text = process.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        process.send_signal(by)
        _, text = process.communicate(timeout=CHILD_SECONDS)
    return process.returncode, text


def is_interrupted_python(text: str) -> bool:
    """Whether Python itself was interrupted, before it ran the command; it then ends with 1."""
    return "KeyboardInterrupt" in text and str(Path(coterie.__file__).parent) not in text


@law(["jobs.run"], hypothesis=False)
def a_killed_command_leaves_whole_files(case: Case) -> None:
    folder, command, new = fit_with_outputs(case)
    signalled(case, command, signal.SIGKILL)
    outputs = {name: Path(name).read_bytes() for name in new}
    left_over = temporary_files(folder)
    call(*command)
    require(not temporary_files(folder), f"the next command did not remove {left_over}")
    require(all(outputs[name] in (b"old", new[name]) for name in new), "a killed command left a part of a file")
    shutil.rmtree(folder)


@law(["jobs.run"], weight=2, hypothesis=False)
def an_interrupted_command_leaves_the_old_outputs_or_the_new_ones(case: Case) -> None:
    folder, command, new = fit_with_outputs(case)
    code, text = signalled(case, command, signal.SIGINT)
    if not is_interrupted_python(text):
        expected = Exit.DONE, Exit.INTERRUPTED, -signal.SIGINT
        require(code in expected, f"an interrupted command ended with {code}: {text}")
    require(not temporary_files(folder), f"an interrupted command left {temporary_files(folder)}")
    is_new = [Path(name).read_bytes() == content for name, content in new.items()]
    is_old = [Path(name).read_bytes() == b"old" for name in new]
    require(all(is_new) or all(is_old), f"an interrupted command wrote some of its outputs: {is_new}")
    shutil.rmtree(folder)


@law(["jobs.run"], hypothesis=False)
def a_full_disk_leaves_the_old_outputs(case: Case) -> None:
    folder, command, new = fit_with_outputs(case)
    limit = case.draw.integer(0, max(map(len, new.values())) - 1)
    case.note(f"files of at most {limit} bytes")
    code = started(command, preexec_fn=partial(fill_disk, limit)).wait(CHILD_SECONDS)
    require(code == Exit.DATA, f"a command on a full disk ended with {code}")
    require({Path(name).read_bytes() for name in new} == {b"old"}, "a command on a full disk changed its outputs")
    require(not temporary_files(folder), f"left on the full disk: {temporary_files(folder)}")
    shutil.rmtree(folder)


def temporary_files(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".coterie")]
