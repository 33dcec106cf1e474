"""Remedies that name options of the command line, as options of a `Job` or arguments of `make_report`."""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from coterie.algorithms import OPTIONS
from coterie.jobs import ChooseJob, CompareJob, Job
from coterie.report.html.report import Absent, Report

REPLACEMENTS = (
    (r"--missing (\w+) or (\w+)", r'missing="\1" or missing="\2"'),
    (r"--missing (\w+)", r'missing="\1"'),
    (r"--scale (\w+)", r'scale="\1"'),
    (r"--exclude [^\n]*?(?=\.$|\.\n|$)", "name the other columns in columns="),
    (r"; --dates cyclic adds the time of year, --dates skip leaves them out", "; columns= can leave them out"),
    (r"--include [^)]*(?=\))", "name it in columns="),
    (r"--one-hot [^),.]*", "one-hot encode it in X"),
    (r"--na-values [^)]*?(?=\.$|$)", "replace these values in X by None"),
)
# An option of the command line, and the word after it, which may be its value.
OPTION = re.compile(r"""(?<![\w-])(?:--([a-z][a-z-]*)|-([ako]))(?![\w-])(?:=?\ ('[^']*'|"[^"]*"|[^\s'"();=]+))?""")
SHORT = {"a": "algorithm", "k": "k", "o": "output"}
# Words after an option that are not its value
WORDS = {
    "adds", "and", "are", "asks", "both", "defines", "for", "has", "in", "is", "leaves", "must", "name", "names",
    "needs", "or", "plays", "reads", "takes", "to", "too", "which",
}  # fmt: skip
NAMES_OF_OPTIONS = {each.name for job in (Job, ChooseJob, CompareJob) for each in fields(job)} | set(OPTIONS)
COMMANDS = (("coterie choose-k", "coterie.choose_k"), ("coterie fit", "coterie.Job with"))


def as_job_options(text: str) -> str:
    """The text with options of a `Job` in place of options of the command line: ``--missing drop``, missing="drop"."""
    for command, call in COMMANDS:
        text = text.replace(command, call)
    return OPTION.sub(_job_option, text)


def _job_option(match: re.Match[str]) -> str:
    name = SHORT.get(match[2]) or match[1].replace("-", "_")
    if name not in NAMES_OF_OPTIONS:
        return match[0]
    word = match[3]
    if word is None or word.rstrip(".,:;?") in WORDS:
        rest = match[0][match.start(3) - match.start() - 1 :] if word is not None else ""
        return (f'options["{name}"]' if name in OPTIONS else name if name == "k" else f"{name}=") + rest
    is_quoted = word[0] in "'\""
    value = word[1:-1] if is_quoted else word.rstrip(".,:;?")
    rest = "" if is_quoted else word[len(value) :]
    code = _code(value)
    return (f'options={{"{name}": {code}}}' if name in OPTIONS else f"{name}={code}") + rest


def _code(value: str) -> str:
    """A value of the command line in Python."""
    if re.fullmatch(r"\d[\d,]*|N", value):
        return value.replace(",", "")
    if re.fullmatch(r"\d+:\d+", value):
        return f"({value.replace(':', ', ')})"
    return repr(value) if '"' in value else f'"{value}"'


def with_job_options(result: Any) -> Any:
    """The result of a job with notes and warnings that name options of the job."""
    choice = getattr(result, "choice", None)
    if choice is not None:
        result = replace(result, choice=replace(choice, warnings=tuple(map(as_job_options, choice.warnings))))
    return _converted(result, as_job_options)


def _converted(result: Any, convert: Callable[[str], str]) -> Any:
    """The result with other notes and warnings."""
    return replace(result, **{name: tuple(map(convert, getattr(result, name))) for name in ("notes", "warnings")})


def with_job_reasons(report: Report) -> Report:
    """The report of a fit from Python: what is not available has reasons that name options of the job."""
    parts = {name: getattr(report, name) for name in ("criteria", "stability", "silhouettes")}
    absent: dict[str, Any] = {
        name: Absent(as_job_options(each.reason)) for name, each in parts.items() if isinstance(each, Absent)
    }
    return replace(report, **absent)


def in_python(text: str) -> str:
    """The text with arguments of `make_report` in place of options."""
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return text


def with_python_remedies(report: Report, is_fitted: bool) -> Report:
    """The report with remedies that are arguments and calls; `is_fitted`: whether it is of an estimator."""
    silhouettes = report.silhouettes
    if isinstance(silhouettes, Absent):
        silhouettes = Absent(in_python(silhouettes.reason))
    return replace(
        report,
        result=_converted(report.result, in_python),
        silhouettes=silhouettes,
        criteria=Absent("The clusters and their number were given. coterie.choose_k compares numbers of clusters."),
        stability=report.stability if is_fitted else Absent("labels cannot be fitted again: pass the estimator"),
    )
