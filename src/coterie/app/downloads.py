"""Files to download: the labelled table, the model, the report, and what repeats a result exactly."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coterie.app.charts import named_content
from coterie.app.execution import job_of
from coterie.app.failures import FieldError
from coterie.app.session import Session
from coterie.app.state import Run
from coterie.app.store import SUFFIX
from coterie.core.progress import silent
from coterie.jobs import Job, fit_job
from coterie.jobs.command_line import command_line
from coterie.jobs.fit_job import ClusteredTable
from coterie.report.html import Absent, as_html

TEXT, BINARY = "text/plain; charset=utf-8", "application/octet-stream"
STOPPED = "The run was stopped early, so that repeating it would give another result. Run it to the end first."


@dataclass(frozen=True)
class Download:
    """A file, or the reason why there is none."""

    name: str
    data: bytes
    media_type: str = BINARY
    reason: str | None = None
    is_shown: bool = False  # on the page, not saved

    def shown(self) -> dict[str, Any]:
        """The text for the page."""
        return {"reason": self.reason} if self.reason is not None else {"text": self.data.decode(errors="replace")}


def export(session: Session, kind: str, run: str | None = None, show: str = "0") -> Download:
    """The file of that kind for a run; by default the current one."""
    return replace(_download(session, kind, run or session.history.now.current), is_shown=show == "1")


def _download(session: Session, kind: str, run_id: str | None) -> Download:
    if kind == "workspace":
        session.open_table()
        assert session.workspace is not None
        assert session.source is not None
        return Download(f"{Path(session.source.name).stem}{SUFFIX}", session.workspace.packed())
    if run_id is None:
        raise FieldError("There is no run to export: start one first.", "run", 409)
    run, outcome = session.run(run_id), session.outcome(run_id)
    content = named_content(run, outcome)
    job = job_of(run, session.open_table().path, names=tuple(content.names or ()))
    return EXPORTS[kind](session, run, job, content)


def _written(name: str, option: str) -> Callable[[Session, Run, Job, ClusteredTable], Download]:
    """An output of ``coterie fit``; `option` is its name."""

    def write(session: Session, run: Run, job: Job, content: ClusteredTable) -> Download:
        if option == "model" and content.fitted.model is None:
            raise FieldError("Merged clusters have no model: export the table, or the run before.", "run", 409)
        stem = Path(session.open_table().path.name).stem
        with tempfile.TemporaryDirectory(prefix="coterie-") as folder:
            path = Path(folder) / name
            outputs: dict[str, Any] = {option: path}
            fit_job.write_outputs(replace(job, force=True, **outputs), content, silent)
            return Download(f"{stem}_{name}", path.read_bytes())

    return write


def _report(session: Session, run: Run, job: Job, content: ClusteredTable) -> Download:
    report = session.report(run, session.outcome(run.id))
    stem = Path(session.open_table().path.name).stem
    return Download(f"{stem}_report.html", as_html(report).encode(), "text/html; charset=utf-8")


def _python(session: Session, run: Run, job: Job, content: ClusteredTable) -> Download:
    """The script that gives the same labels; those of merged clusters are mapped at its end."""
    if _is_stopped(session, run):
        return _without("python", STOPPED)
    if run.kind == "merge":
        return _merged_python(session, run, job)
    code = fit_job.python_code(job, content)
    return _without("python", code.reason) if isinstance(code, Absent) else Download("clusters.py", code.encode(), TEXT)


def _merged_python(session: Session, run: Run, job: Job) -> Download:
    parent = session.run(run.parent or "", of_any_state=True)
    content = named_content(parent, session.outcome(parent.id))
    before = _python(session, parent, job_of(parent, job.path), content)
    if before.reason is not None:
        return before
    code = before.data.decode() + (
        f"groups = np.array({run.groups})  # new labels: some clusters are merged\n"
        "labels = np.where(labels < 0, -1, groups[labels])\n"
    )
    code = code if "import numpy as np" in code else f"import numpy as np\n{code}"
    return Download(before.name, code.encode(), TEXT)


def _command(session: Session, run: Run, job: Job, content: ClusteredTable) -> Download:
    """The command line that gives the same labels."""
    if _is_stopped(session, run):
        return _without("command", STOPPED)
    if run.kind == "merge":
        return _without("command", "Clusters were merged by hand, which no command does: use the Python script.")
    if run.kind == "open" and content.fitted.sweep_ks is not None:
        return _without("command", "This fit is one of a comparison of K: use the Python script, which repeats it.")
    return Download("command.sh", (command_line(job) + "\n").encode(), TEXT)


def _is_stopped(session: Session, run: Run) -> bool:
    return session.live[run.id].stopped


def _without(name: str, reason: str) -> Download:
    return Download(name, b"", TEXT, reason)


EXPORTS: dict[str, Callable[[Session, Run, Job, ClusteredTable], Download]] = {
    "table.csv": _written("clusters.csv", "output"),
    "table.parquet": _written("clusters.parquet", "output"),
    "table.xlsx": _written("clusters.xlsx", "output"),
    "model": _written("model.safetensors", "model"),
    "profiles": _written("profiles.csv", "profiles"),
    "report": _report,
    "python": _python,
    "command": _command,
}
