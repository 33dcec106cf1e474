"""Tables in files, through the command line: formats agree, damage is never called a bug."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import polars as pl

from coterie.cli import main
from coterie.cli.failures import Exit
from fuzz import tables
from fuzz.finding import LawBroken, Rejected, require, require_same
from fuzz.law import Case, law

COMMON = ("--seed", "0", "--threads", "1", "-q", "--force")
FITS = ("jobs.run", "jobs.predict")
COMMANDS: dict[str, tuple[str, ...]] = {  # what to do with a damaged table; predict has a law of its own
    "jobs.run": ("fit", "bad", "-k", "2", "-o", "out.csv", *COMMON),
    "jobs.inspect": ("info", "bad"),
    "jobs.choose": ("choose-k", "bad", "-k", "1-3", "--budget", "quick", "--threads", "1", "-q"),
    "jobs.compare": ("compare", "bad", "-k", "2", "-a", "kmeans,ward", "--threads", "1", "-q"),
}
FORMATS = ("csv", "tsv", "parquet", "ndjson", "arrow")
METHODS = ("kmeans", "kmedoids", "ward", "gmm", "fuzzy", "minibatch", "spherical")


def call(*arguments: str) -> tuple[int, str]:
    """Exit code and output of the command line."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(arguments))
        except SystemExit as stop:
            code = int(stop.code or 0)
    text = out.getvalue() + err.getvalue()
    if code == Exit.BUG:
        raise LawBroken(f"coterie {' '.join(arguments)}: {text}")
    return code, text


def write(frame: pl.DataFrame, path: Path) -> None:
    {
        ".csv": lambda: frame.write_csv(path),
        ".tsv": lambda: frame.write_csv(path, separator="\t"),
        ".parquet": lambda: frame.write_parquet(path),
        ".ndjson": lambda: frame.write_ndjson(path),
        ".arrow": lambda: frame.write_ipc(path),
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
    names = ["a", "b c", "ü,;", "=d"]
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
    kind = case.draw.one_of(["csv", "csv", "tsv", "ndjson", "parquet"])
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
