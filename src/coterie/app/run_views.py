"""Runs as JSON: what is stored about a result, and what the page shows of it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from coterie.algorithms import algorithm_of
from coterie.app.execution import Outcome, has_tree, is_watchable
from coterie.app.failures import in_page
from coterie.app.state import Run
from coterie.interrupts import Request
from coterie.palette import colours
from coterie.plots.display import plain
from coterie.report.html.report import Absent
from coterie.report.results import Choice, ClusterSummary
from coterie.selection.choose_k_result import CriterionResult, criterion_values
from coterie.selection.votes import NAMES


@dataclass
class LiveRun:
    """The progress of a run, and what is known about its result."""

    status: str = "queued"  # queued, running, done, failed, cancelled
    stopped: bool = False  # done, but stopped early
    error: dict[str, Any] | None = None
    progress: dict[str, Any] | None = None
    info: dict[str, Any] | None = None  # as stored
    is_cancelled: bool = False
    interrupt: Request = field(default_factory=Request)

    def cancel(self) -> None:
        """Stop with the best result so far, at the next check for interrupts."""
        if self.status in ("queued", "running"):
            self.is_cancelled = self.interrupt.pending = True


def info_of(outcome: Outcome, *, stopped: bool, seconds: float) -> dict[str, Any]:
    """All that the page shows about a result, as JSON that is stored with the workspace."""
    content, choice = outcome.content, outcome.choice
    info: dict[str, Any] = {
        "seconds": seconds, "stopped": stopped, "key": outcome.prepared.key, "k": None, "scores": {}, "sizes": [],
        "silhouette": None, "noise": None, "converged": True, "iterations": None, "clusters": [],
        "choice": None if choice is None else _choice(choice, outcome), "notes": [], "warnings": [],
        "rows_used": outcome.prepared.prepared.rows.n, "columns": list(outcome.prepared.prepared.preparation.names),
    }  # fmt: skip
    result = outcome.comparison if content is None else content.result
    if result is not None:
        names = outcome.prepared.prepared.table.columns
        info |= {name: [in_page(text, names) for text in getattr(result, name)] for name in ("notes", "warnings")}
    if content is None:
        return info
    result, fitted = content.result, content.fitted
    sizes = [0] * result.k
    for cluster in content.clusters:
        sizes[cluster.label] = cluster.rows
    measured = content.measured
    return plain(info | {
        "k": result.k, "scores": result.scores,
        "sizes": sizes, "noise": result.noise, "converged": result.converged, "iterations": result.iterations,
        "silhouette": None if isinstance(measured, Absent) else measured.mean,
        "clusters": [cluster_view(each) for each in content.clusters],
        "fit": {
            "seconds": fitted.seconds,
            "options": {name: value for name, value in fitted.options.items() if _is_plain(value)},
            "notes": list(fitted.notes), "warnings": list(fitted.warnings),
            "sweep_ks": None if fitted.sweep_ks is None else list(fitted.sweep_ks),
            "is_renumbered": fitted.is_renumbered,
        },
    })  # fmt: skip


def cluster_view(cluster: ClusterSummary) -> dict[str, Any]:
    rule = cluster.rule
    return {
        "label": cluster.label, "rows": cluster.rows, "share": cluster.share, "silhouette": cluster.silhouette,
        "rule": None if rule is None or not rule.describes else {
            "text": rule.text, "precision": rule.precision, "coverage": rule.coverage,
        },
        "stands_out_by": [
            {"column": each.column, "deviation": each.deviation, "share": each.share, "overall": each.overall}
            for each in cluster.stands_out_by
        ],
    }  # fmt: skip


def run_view(run: Run, live: LiveRun, options: dict[str, Any] | None) -> dict[str, Any]:
    """A run as it is in the list of runs; `options` are those of the preparation now."""
    info = live.info or {}
    method, n_clusters = algorithm_of(run.algorithm), info.get("k") or 0
    k = n_clusters or (run.k if isinstance(run.k, int) else None)
    choice = info.get("choice")
    return {
        "id": run.id, "kind": run.kind, "title": title_of(run, k), "algorithm": run.algorithm, "k": k,
        "k_requested": run.k, "options": run.options, "seed": run.seed, "seconds": info.get("seconds"),
        "status": live.status, "stopped": live.stopped, "error": live.error,
        "progress": live.progress if live.status in ("queued", "running") else None,
        "scores": info.get("scores", {}), "silhouette": info.get("silhouette"), "noise": info.get("noise"),
        "sizes": info.get("sizes", []), "names": names_of(run, n_clusters), "colors": colors_of(run, n_clusters),
        "parent": run.parent, "key": info.get("key"), "converged": info.get("converged"),
        "iterations": info.get("iterations"), "watch": run.kind != "merge" and is_watchable(run.algorithm),
        "tree": run.kind != "merge" and has_tree(run.algorithm), "finds_k": method.finds_k,
        "choice": None if choice is None else {name: choice[name] for name in ("recommended", "strength", "heading")},
        "current_preparation": run.preparation == options,
    }  # fmt: skip


def result_view(run: Run, live: LiveRun) -> dict[str, Any]:
    """The result of a run, with the names and colours of its clusters."""
    info = live.info or {}
    k = info.get("k") or 0
    names, colors = names_of(run, k), colors_of(run, k)
    clusters = [
        {**each, "name": names[each["label"]], "color": colors[each["label"]]} for each in info.get("clusters", [])
    ]
    heading = title_of(run, info.get("k"))
    return {
        "heading": heading, "clusters": clusters,
        **{name: info.get(name) for name in ("notes", "warnings", "rows_used", "columns", "choice")},
    }  # fmt: skip


def title_of(run: Run, k: int | None) -> str:
    title = algorithm_of(run.algorithm).title
    title = title[:1].upper() + title[1:]
    if run.kind == "choose":
        return f"Comparison of K, {title}"
    ending = {"merge": ", merged", "cut": ", cut"}.get(run.kind, "")
    return f"{title}{'' if k is None else f', K = {k}'}{ending}"


def names_of(run: Run, k: int) -> list[str]:
    """The name of each cluster: the one that the user gave, or its number."""
    return [run.names.get(str(label), str(label)) for label in range(k)]


def colors_of(run: Run, k: int) -> list[str]:
    return [run.colors.get(str(label), color) for label, color in enumerate(colours(k))]


def _choice(choice: Choice, outcome: Outcome) -> dict[str, Any]:
    ks = [row["k"] for row in choice.table]
    return plain({**asdict(choice), "ks": ks, "criteria": _criteria(outcome)})


def _criteria(outcome: Outcome) -> list[dict[str, Any]]:
    """The values and the vote of each criterion, as in the events of the run."""
    if outcome.details is None:
        return []
    values = criterion_values(outcome.details.sweep, outcome.details.results)
    return [criterion_view(CriterionResult.of(vote, values)) for vote in outcome.details.votes]


def criterion_view(result: CriterionResult) -> dict[str, Any]:
    vote, ks = result.vote, sorted(result.values)
    return {
        "criterion": vote.criterion, "name": NAMES[vote.criterion], "k": vote.k, "ks": ks,
        "values": [result.values[k] for k in ks], "note": vote.note,
    }  # fmt: skip


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool | None)
