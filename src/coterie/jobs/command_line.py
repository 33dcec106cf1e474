"""The command line that runs a job."""

import shlex
from typing import Any

from coterie.core.formatting import escaped
from coterie.data.tables.reader import Table
from coterie.jobs import COLUMN_LISTS, ChooseJob, CompareJob, Job, ReportJob, TableJob
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.name_lists import join_names
from coterie.report.build.report_source import ReportSource
from coterie.report.html.report import Absent

COMMANDS = {Job: "fit", ChooseJob: "choose-k", CompareJob: "compare", ReportJob: "report"}
READING = ("sheet", "header_row", "sql")  # options of `data.tables.reader.read`


def report_source(job: TableJob, table: Table, prepared: PreparedTable) -> ReportSource:
    """The prepared table of a job, with the options that its report needs."""
    k = _k_text(getattr(job, "k", "given"))
    command: str | Absent = command_line(job)
    if job.frame is not None:
        command = Absent("The table is a data frame in memory: save it as a file to run a command.")
    choice = getattr(job, "map", "axes")
    reading = {name: getattr(job, name) for name in READING if getattr(job, name) is not None}
    return ReportSource(
        table, prepared, k, command, reading, job.seed, job.threads, job.weight, job.id, choice, job.in_python
    )


def command_line(job: TableJob) -> str:
    """The command line of a job, without its output files."""
    words = ["coterie", COMMANDS[type(job)], str(job.path)]
    if isinstance(job, Job | ChooseJob):
        words += ["-k", _k_text(job.k), "-a", job.algorithm]
    if isinstance(job, CompareJob):
        words += ["-k", _k_text(job.k), *(word for name in job.algorithms for word in ("-a", name))]
    if isinstance(job, ReportJob):
        words += ["--model", str(job.model)] if job.model is not None else ["--labels", str(job.labels)]
    if isinstance(job, ChooseJob) and job.criteria:
        words += ["--criteria", ",".join(job.criteria)]
    if isinstance(job, Job):
        words += [part for name, value in job.options.items() for part in (_option(name), str(value))]
        words += ["--sample", str(job.sample)] if job.sample is not None else []
        words += ["--names", join_names(job.names)] if job.names else []
        words += ["--engine", job.engine] if job.engine != "local" else []
    if isinstance(job, Job | ChooseJob) and job.budget != "normal":
        words += ["--budget", job.budget]
    for name in ("series", *COLUMN_LISTS):
        if getattr(job, name):
            words += [_option(name), join_names(getattr(job, name))]
    for name in (*READING, "id", "weight", "scale", "dates", "decimal", "missing"):
        if getattr(job, name) != getattr(TableJob, name) and not (name == "id" and job.series):
            words += [_option(name), str(getattr(job, name))]
    return " ".join(map(_quoted, [*words, "--seed", str(job.seed)]))


def _quoted(word: str) -> str:
    """A word for the shell; one with bytes that are not UTF-8 is written with their escapes."""
    if escaped(word) == word:
        return shlex.quote(word)
    return "$'" + escaped(word.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def _k_text(k: Any) -> str:
    return f"{k[0]}:{k[1]}" if isinstance(k, tuple) else str(k)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
