"""Pages about results: what a job has at hand, made into all that a page tells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import coterie
from coterie.algorithms import method_of
from coterie.data.tables import reader as table
from coterie.data.tables.reader import Table
from coterie.hierarchy import linkage
from coterie.hierarchy.cut import cut
from coterie.jobs import ChooseJob, CompareJob, Job, Progress, ReportJob, Step, silent
from coterie.jobs.fitting import Fit
from coterie.plots import ConvergenceDisplay, DendrogramDisplay, SilhouetteDisplay
from coterie.preparation.fit_preparation import Prepared
from coterie.report.build import profiles
from coterie.report.build import python_code as reproduce
from coterie.report.build import reliability as judging
from coterie.report.build.cluster_moments import Moments
from coterie.report.build.criteria import criteria
from coterie.report.build.feature_space import Space, cluster_map, clusters_of, explained, map_note, nearest, space_of
from coterie.report.choice import ChoiceResult
from coterie.report.comparison import ComparisonResult
from coterie.report.html.report import (
    Absent,
    ChoiceReport,
    ComparisonReport,
    Criteria,
    Measure,
    Report,
    Reproduce,
    Tree,
)
from coterie.report.html.words import number, percent
from coterie.report.result import JobResult
from coterie.selection import ChooseK

EXAMPLES = 3  # rows of each cluster that are named
LEAVES = 60  # of a tree of centers
MAPS = 2  # runs of a comparison that are drawn

Codes = NDArray[np.integer]
Identities = Callable[[Sequence[int]], list[str]]  # names of some of the rows that took part


def build(
    result: JobResult,
    source: Table,
    prepared: Prepared,
    job: Job | ReportJob,
    *,
    silhouettes: SilhouetteDisplay | Absent,
    fit: Fit | None = None,
    choice: ChooseK | None = None,
    animation: dict[str, Any] | None = None,
    around: Prepared | None = None,
    progress: Progress = silent,
) -> Report:
    """All that the page of a fit tells; `around` are the rows with those that are in no cluster, for the map."""
    labels = result.labels[prepared.rows.kept]
    codes = np.searchsorted([one.label for one in result.clusters], labels)
    names = [one.called for one in result.clusters]
    model, seed, threads = None if fit is None else fit.model, job.seed, job.threads
    if isinstance(silhouettes, SilhouetteDisplay):
        silhouettes = replace(silhouettes, names=list(names))
    space = space_of(prepared, threads)
    means = profiles.means(prepared, space, result.clusters, names)
    progress(Step("report: stability"))
    stable = judging.comes_back(prepared, len(names), model, seed, threads)
    progress(Step("report: checks"))
    diagnosis = judging.suffers_from(prepared, codes, model, seed, threads)
    progress(Step("report: pictures"))
    clusters = clusters_of(space, codes, len(names))
    first = profiles.telling(means)
    if around is None:
        shown = cluster_map(space, codes, names, model, first, clusters)
    else:
        everywhere = table.spread(codes, prepared.rows.kept)[around.rows.kept]
        shown = cluster_map(space_of(around, threads), everywhere, names, model, first)
    called, ids = _identities(source, prepared, job)
    return Report(
        result=result,
        version=coterie.__version__,
        asked=_asked(job),
        names=names,
        examples=_examples(nearest(space, codes, clusters, EXAMPLES), ids),
        called=called,
        weighted=job.weight,
        explained=_explained(result, space, codes, clusters, prepared.weight),
        stable=stable,
        silhouettes=silhouettes,
        certainty=judging.certainty(fit, prepared, codes, names),
        map=shown,
        map_note=map_note(space, shown),
        criteria=_criteria(choice, result, job),
        profiles=means,
        spreads=profiles.spreads(prepared, codes, means),
        shares=profiles.shares(source, prepared, codes, names, means.sizes),
        tree=_tree(model, clusters, codes, names, ids),
        convergence=_convergence(fit),
        diagnosis=diagnosis,
        checked=judging.checked(prepared),
        reproduce=_reproduce(job, source, prepared, result, fit),
        animation=animation,
    )


def build_choice(
    result: ChoiceResult,
    source: Table,
    prepared: Prepared,
    job: ChooseJob,
    *,
    choice: ChooseK,
) -> ChoiceReport:
    """All that the page of a choice tells."""
    code = reproduce.choice_code(job, source, prepared)
    return ChoiceReport(
        result=result,
        version=coterie.__version__,
        asked=_asked(job),
        criteria=criteria(choice, result.choice.clusters_by, by_methods=True),
        reproduce=_how(code, job, source),
    )


def build_comparison(
    result: ComparisonResult,
    source: Table,
    prepared: Prepared,
    job: CompareJob,
    *,
    labels: Mapping[tuple[str, int], Codes],
    swept: Mapping[tuple[str, int], Fit],
) -> ComparisonReport:
    """All that the page of a comparison tells; `labels` are those of the best run of each algorithm."""
    space = space_of(prepared, job.threads)
    best = sorted((run for run in result.runs if run.best), key=lambda run: -(run.silhouette or -1.0))[:MAPS]
    code = reproduce.comparison_code(
        job, source, prepared, [(run.method, run.k) for run in result.runs if run.best], swept
    )
    codes = _matched([labels[run.method, run.k] for run in best])
    return ComparisonReport(
        result=result,
        version=coterie.__version__,
        asked=_asked(job),
        maps=tuple(
            (f"{method_of(run.method).title}, K = {run.k}", cluster_map(space, *own))
            for run, own in zip(best, codes, strict=True)
        ),
        reproduce=_how(code, job, source),
    )


def _matched(runs: list[Codes]) -> list[tuple[Codes, list[str]]]:
    """Clusters of each run in the order, and so the colours, of those of the first that they share most rows with."""
    found: list[tuple[Codes, list[str]]] = []
    for labels in runs:
        present, codes = np.unique(labels, return_inverse=True)
        names = [str(label) for label in present.tolist()]
        if found:
            first, k = found[0][0], len(names)
            shared = np.zeros((max(k, len(found[0][1])),) * 2)
            np.add.at(shared, (first, codes), 1)
            place = np.argsort(linear_sum_assignment(-shared)[1])[:k]  # of each cluster, where its match is
            order = np.argsort(place)
            codes, names = np.argsort(order)[codes], [names[j] for j in order.tolist()]
        found.append((np.asarray(codes), names))
    return found


def _asked(job: Job | ReportJob | ChooseJob | CompareJob) -> str:
    k = getattr(job, "k", "given")
    return f"{k[0]}:{k[1]}" if isinstance(k, tuple) else str(k)


def _identities(source: Table, prepared: Prepared, job: Job | ReportJob) -> tuple[str, Identities]:
    """What names the rows, and what tells the names of some that took part."""
    own = job.id or next((column.name for column in prepared.skipped if column.reason == "identifier"), None)
    places = np.flatnonzero(prepared.rows.kept)
    if own is None:
        return "row, from 0", lambda rows: [f"{place:,}" for place in places[rows]]
    return own, lambda rows: _values(source, own, places[rows])


def _values(source: Table, column: str, places: Codes) -> list[str]:
    """What stands in some rows of a column, by one look at all of it."""
    order = np.argsort(places)
    found: dict[int, Any] = {}
    start = 0
    for frame in source.batches([column]):
        first, last = np.searchsorted(places[order], [start, start + frame.height])
        own = order[first:last]
        found.update(zip(own.tolist(), frame[column].gather(places[own] - start).to_list(), strict=True))
        start += frame.height
    return [str(found[i]) for i in range(len(places))]


def _examples(rows: list[list[int]], ids: Identities) -> list[list[str]]:
    names = iter(ids([i for own in rows for i in own]))
    return [[next(names) for _ in own] for own in rows]


def _explained(result: JobResult, space: Space, codes: Codes, clusters: Moments, weight: Any) -> Measure | Absent:
    scores = result.scores
    if "BIC" in scores:
        return Measure("log-likelihood a row", number(scores["log-likelihood a row"]), f"BIC {number(scores['BIC'])}")
    if "evidence bound" in scores:
        return Measure("evidence bound", number(scores["evidence bound"]), "of the log evidence, higher is better")
    k = len(clusters.means)
    share = explained(clusters if weight is None else clusters_of(space, codes, k, weight))
    if share is None:
        return Absent("all rows are equal")
    return Measure("variance explained", percent(share, 0), "between clusters, of the total sum of squares")


def _criteria(choice: ChooseK | None, result: JobResult, job: Job | ReportJob) -> Criteria | Absent:
    if choice is not None and result.choice is not None:
        return criteria(choice, result.choice.clusters_by, by_methods=False)
    if isinstance(job, ReportJob):
        return Absent("The clusters were given, and so was their number: coterie choose-k asks the criteria.")
    how = method_of(job.method)
    if how.mixed and job.k == "auto":
        return Absent("The mixture itself found how many components the rows support, by its bound of the evidence.")
    if how.mixed or how.series:
        return Absent("K was asked for; the criteria do not take this kind of rows.")
    return Absent("K was asked for, and no criterion had a say: -k auto, or coterie choose-k, asks them.")


def _tree(model: Any, clusters: Moments, codes: Codes, names: list[str], ids: Identities) -> Tree | Absent:
    if len(names) < 2:
        return Absent("One cluster has no neighbours.")
    own = getattr(model, "linkage_matrix_", None)
    if own is not None and len(own):
        return _tree_of_rows(model, np.asarray(own), codes, names, ids)
    return _tree_of_centers(clusters.means, codes, names)


def _tree_of_rows(model: Any, Z: NDArray[Any], codes: Codes, names: list[str], ids: Identities) -> Tree:
    n = len(Z) + 1
    fitted = codes if n == len(codes) else np.asarray(model.labels_)
    rows = ids(range(n)) if n == len(codes) else None
    display = DendrogramDisplay.from_result(Z, n_clusters=len(names), names=rows)
    own = np.full(len(names) + 1, -1)
    if len(fitted) == n:
        own[cut(Z, n_clusters=len(names))] = fitted  # the numbers that the model gives to the clusters of the cut
    display = replace(display, cluster=own[display.cluster], leaf_cluster=own[display.leaf_cluster])
    method = f"{model.linkage} linkage" if hasattr(model, "linkage") else "divisive clustering"
    return Tree(display, False, method, names)


def _tree_of_centers(means: NDArray[Any], codes: Codes, names: list[str]) -> Tree:
    k = len(names)
    sizes = np.bincount(codes, minlength=k)
    Z = linkage(means, "ward", sample_weight=sizes.astype(np.float64))
    if k > LEAVES:
        display = DendrogramDisplay.from_result(Z, merges=LEAVES - 1, names=names)
    else:
        display = DendrogramDisplay.from_result(Z, names=names, merges=k - 1)
        leaves = np.array([names.index(name) for name in display.leaves])
        display = replace(display, sizes=sizes[leaves], leaf_cluster=leaves)
    return Tree(display, True, "Ward's tree", names)


def _convergence(fit: Fit | None) -> ConvergenceDisplay | Absent:
    if fit is None:
        return Absent("The clusters were given: there was no fit to watch.")
    history = getattr(fit.model, "history_", None)
    if history is None:
        return Absent("This algorithm takes no iterations: there is nothing to converge.")
    kept = ConvergenceDisplay.from_estimator(fit.model)
    if fit.starts is None or kept.bound is not None or kept.label != "objective" or not fit.starts.histories:
        return kept
    every = ConvergenceDisplay.from_result(fit.starts)
    last, best = float(kept.values[0][-1]), float(every.values[every.best][-1])
    same = abs(last - best) <= 1e-6 * max(abs(last), 1e-300)
    return every if same else kept  # a search goes on from the best start: its own way is told then


def _reproduce(
    job: Job | ReportJob, source: Table, prepared: Prepared, result: JobResult, fit: Fit | None
) -> Reproduce:
    if isinstance(job, Job):
        assert fit is not None
        k: int | str = "auto" if method_of(job.method).mixed and job.k == "auto" else result.k
        return _how(reproduce.fit_code(job, source, prepared, k, fit), job, source)
    if job.labels is not None:
        return _how(Absent(f"The clusters are those of the column {job.labels}: there was no fit."), job, source)
    how = prepared.preparation
    return _how(reproduce.model_code(job, source, how.names, bool(how.categories)), job, source)


def _how(code: str | Absent, job: Any, source: Table) -> Reproduce:
    return Reproduce(code, reproduce.command_line(job), reproduce.fingerprint(source), reproduce.versions())
