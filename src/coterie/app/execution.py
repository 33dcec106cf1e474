"""Runs as jobs: each kind of run becomes clusters of the table in memory, by the code of the command line."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.algorithms import algorithm_of
from coterie.app.blob import MAX_CLUSTERS
from coterie.app.failures import FieldError, NotAvailable
from coterie.app.open_table import OpenTable, Prepared
from coterie.app.preparation_options import options_for
from coterie.app.state import Run
from coterie.core.arrays import Array
from coterie.core.progress import Callback, silent
from coterie.core.protocols import Traceable
from coterie.errors import InputError
from coterie.hierarchy.agglomerative import AgglomerativeClustering, cuts
from coterie.interrupts import Request
from coterie.jobs import ChooseJob, Job, choose_k_job, fit_job
from coterie.jobs.fit_job import ClusteredTable
from coterie.jobs.fitting import fit, fitted_model, from_sweep, sample_rows, scores_of
from coterie.report.build.fitted_model import FittedModel
from coterie.report.results import Choice, ChoiceResult, CriterionVote
from coterie.selection import ChooseK

if TYPE_CHECKING:
    from coterie.app.store import Workspace


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a run in memory: clusters, a comparison of numbers of clusters, or both."""

    prepared: Prepared
    content: ClusteredTable | None = None
    comparison: ChoiceResult | None = None  # of a run that only compares numbers of clusters
    details: ChooseK | None = None

    @property
    def clusters(self) -> ClusteredTable:
        """The clusters; an error if there are none."""
        if self.content is None:
            raise NotAvailable("This run compares numbers of clusters: open one of them.")
        return self.content

    @property
    def choice(self) -> Choice | None:
        if self.comparison is not None:
            return self.comparison.choice
        return None if self.content is None else self.content.result.choice


def job_of(run: Run, path: Path, *, names: tuple[str, ...] = ()) -> Job:
    """The job of a run that has clusters."""
    method = algorithm_of(run.algorithm)
    return Job(
        path, algorithm=run.algorithm, k=number_of(run.k), options=run.options, seed=run.seed, sample=run.sample,
        budget=run.budget, names=names, **options_for(run.preparation, method),
    )  # fmt: skip


def choose_job_of(run: Run, path: Path) -> ChooseJob:
    """The job of a run that compares numbers of clusters."""
    method = algorithm_of(run.algorithm)
    return ChooseJob(
        path, algorithm=run.algorithm, k=number_of(run.k), seed=run.seed, budget=run.budget,
        **options_for(run.preparation, method),
    )  # fmt: skip


def number_of(k: Any) -> Any:
    """The number of clusters of a job: JSON has lists in place of pairs."""
    return tuple(k) if isinstance(k, list) else k


def check_run(run: Run, path: Path) -> None:
    """Reject invalid options before a run starts."""
    if run.kind == "choose":
        choose_k_job.check_job(choose_job_of(run, path))
    else:
        fit_job.check_job(job_of(run, path))


def execute(run: Run, table: OpenTable, parent: Outcome | None, callback: Callback, interrupt: Request) -> Outcome:
    """Run a run; `parent` is the outcome of the run that it was made from. An interrupt keeps the best result so far.

    What describes a result is not interrupted.
    """
    prepared = table.prepared(run.preparation, run.algorithm, callback)
    if run.kind == "choose":
        choose_job = choose_job_of(run, table.path)
        with interrupt.listening():
            comparison, details = choose_k_job.evaluate(choose_job, table.table, prepared.prepared, callback)
        return Outcome(prepared, None, comparison, details)
    job = job_of(run, table.path)
    if run.kind == "merge" and parent is not None and parent.content is not None:
        return Outcome(prepared, merged(run, job, parent.content, callback))
    quick = _quick_fit(run, parent, prepared)
    if quick is not None:
        content = fit_job.describe(job, table.table, prepared.prepared, quick, None, None, callback)
    else:
        with interrupt.listening():
            fitted = fit_job.fit_clusters(job, prepared.prepared, callback, recorded=is_watchable(run.algorithm))
        content = fit_job.describe(job, table.table, prepared.prepared, *fitted, callback)
    if content.result.k > MAX_CLUSTERS:
        raise InputError(f"{content.result.k:,} clusters were found, and the app shows at most {MAX_CLUSTERS:,}.")
    return Outcome(prepared, content, details=content.details)


def is_watchable(algorithm: str) -> bool:
    """Whether the iterations of a fit can be recorded."""
    method = algorithm_of(algorithm)
    return isinstance(method.build(), Traceable) and not method.mixed


def has_tree(algorithm: str) -> bool:
    """Whether the result is a tree of the rows, which can be cut at any height."""
    return algorithm_of(algorithm).class_name in ("AgglomerativeClustering", "DivisiveClustering")


def merged(run: Run, job: Job, parent: ClusteredTable, callback: Callback) -> ClusteredTable:
    """The clusters of another run, some of them together; there is no model of them."""
    groups = np.asarray(run.groups, dtype=np.int64)
    labels = np.where(parent.fitted.labels < 0, -1, groups[parent.fitted.labels])
    fitted = replace(
        parent.fitted, model=None, labels=labels, scores={}, recording=None, restarts=None, iterated=None,
        notes=("Clusters were merged by hand.",), warnings=(),
    )  # fmt: skip
    n_clusters = int(groups.max()) + 1
    return fit_job.describe(job, parent.table, parent.prepared, fitted, None, None, callback, n_clusters)


def _quick_fit(run: Run, parent: Outcome | None, prepared: Prepared) -> FittedModel | None:
    """The fit that another run has made already: one K of a sweep, or another cut of a tree; None if there is none."""
    if parent is None:
        return None
    if run.kind == "open" and parent.details is not None and algorithm_of(run.algorithm).has_sweep:
        sweep = parent.details.reusable_sweep
        if sweep is not None and run.k in sweep.ks:
            return from_sweep(run.algorithm, run.k, prepared.prepared, run.options, sweep)
    model = None if parent.content is None else parent.content.fitted.model
    if run.kind == "cut" and isinstance(model, AgglomerativeClustering) and hasattr(model, "_columns"):
        rows, weight = prepared.prepared.rows.model_input, prepared.prepared.weight
        if len(model.labels_) == len(rows):
            cut_model, _ = next(cuts(model, [run.k], rows, weight))
            options = parent.content.fitted.options if parent.content is not None else {}
            return fitted_model(cut_model, cut_model.labels_, scores_of(cut_model, rows, weight), options=options)
    return None


def recording_of(run: Run, outcome: Outcome, path: Path) -> Any:
    """The recorded iterations of a run; one K of a sweep is fitted again for them, from its beginning."""
    content = outcome.content
    if content is None or content.fitted.model is None or not is_watchable(run.algorithm):
        raise FieldError(f"{algorithm_of(run.algorithm).title} has no iterations to watch.", "run", 404)
    if content.fitted.recording is None:
        job = job_of(run, path)
        fitted = fit(
            job, run.algorithm, content.result.k, outcome.prepared.prepared, run.options, silent, sample=run.sample,
            recorded=True,
        )  # fmt: skip
        object.__setattr__(content.fitted, "recording", fitted.recording)
    return content.fitted.recording


def restored(run: Run, table: OpenTable, workspace: "Workspace", info: dict[str, Any]) -> Outcome:
    """The outcome of a run that was stored: its labels and its model, described again."""
    prepared = table.prepared(run.preparation, run.algorithm)
    labels = workspace.run_labels(run.id, prepared.prepared.rows.n, info["k"] or 0)
    model = workspace.run_model(run.id)
    stored = info["fit"]
    fitted = FittedModel(
        model=model, labels=labels, scores=info["scores"], iterated=None if info["iterations"] is None else model,
        converged=info["converged"], seconds=stored.get("seconds"), options=stored["options"],
        notes=tuple(stored["notes"]), warnings=tuple(stored["warnings"]),
        sweep_ks=None if stored["sweep_ks"] is None else tuple(stored["sweep_ks"]),
        is_renumbered=stored.get("is_renumbered", False),
    )  # fmt: skip
    choice = None if info.get("choice") is None else choice_from(info["choice"])
    job = job_of(run, table.path)
    content = fit_job.describe(job, table.table, prepared.prepared, fitted, choice, None, silent, info["k"])
    return Outcome(prepared, content)


def details_of(run: Run, outcome: Outcome, path: Path) -> ChooseK | None:
    """How K was chosen in a run, with the fits that were compared; a stored run repeats the comparison."""
    if outcome.details is not None or outcome.choice is None:
        return outcome.details
    job, prepared = job_of(run, path), outcome.prepared.prepared
    X, weight, _ = sample_rows(prepared, run.sample, run.seed)
    _, details = choose_k_job.choose(job, run.algorithm, X, weight, prepared, silent, options=run.options)
    object.__setattr__(outcome, "details", details)
    return details


def choice_from(values: dict[str, Any]) -> Choice:
    """A choice of K from its JSON."""
    known = {name: value for name, value in values.items() if name in Choice.__dataclass_fields__}
    votes = tuple(CriterionVote(**vote) for vote in values["votes"])
    return Choice(**known | {"votes": votes, "table": tuple(values["table"]), "warnings": tuple(values["warnings"])})


def centers_of(params: Any) -> Array | None:
    """The centers (k, d) among the parameters of a model during a fit; None if there are none."""
    for centers in (params, getattr(params, "centers", None), getattr(params, "means", None)):
        if isinstance(centers, np.ndarray) and centers.ndim == 2:
            return centers
    return None
