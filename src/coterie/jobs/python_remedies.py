"""Remedies that name options of the command line, as arguments of `make_report`."""

import re
from dataclasses import replace
from typing import Any

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


def in_python(text: str) -> str:
    """The text with arguments of `make_report` in place of options."""
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return text


def with_python_remedies(report: Report, is_fitted: bool) -> Report:
    """The report with remedies that are arguments and calls; `is_fitted`: whether it is of an estimator."""
    result = report.result
    texts: dict[str, Any] = {name: tuple(map(in_python, getattr(result, name))) for name in ("notes", "warnings")}
    silhouettes = report.silhouettes
    if isinstance(silhouettes, Absent):
        silhouettes = Absent(in_python(silhouettes.reason))
    return replace(
        report,
        result=replace(result, **texts),
        silhouettes=silhouettes,
        criteria=Absent("The clusters and their number were given. coterie.choose_k compares numbers of clusters."),
        stability=report.stability if is_fitted else Absent("labels cannot be fitted again: pass the estimator"),
    )
