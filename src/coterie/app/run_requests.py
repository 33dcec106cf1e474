"""Requests of pages as runs: new ones, those made from another run, and edits of clusters. Nothing is computed here."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coterie.app.execution import has_tree
from coterie.app.failures import FieldError
from coterie.app.request_values import (
    cluster_colors,
    cluster_label,
    cluster_names,
    finds_k,
    merged_groups,
    number_of_clusters,
    whole_number,
)
from coterie.app.run_views import names_of
from coterie.app.state import History, Run


def requested_run(request: Mapping[str, Any], run_id: str, preparation: dict[str, Any]) -> Run:
    """A fit, or a comparison of numbers of clusters."""
    algorithm = request.get("algorithm", "kmeans")
    options = request.get("options", {})
    if not isinstance(options, Mapping) or not isinstance(algorithm, str):
        raise FieldError("options must be names with values.", "algorithm")
    return Run(
        run_id,
        kind="choose" if request.get("kind") == "choose" else "fit",
        algorithm=algorithm,
        k="auto" if finds_k(algorithm) else number_of_clusters(request.get("k", "auto")),
        options=dict(options),
        preparation=preparation,
        seed=whole_number(request.get("seed", 0), "seed"),
        sample=whole_number(request.get("sample"), "sample"),
        budget=request.get("budget", "normal"),
    )


def child_of(run: Run, run_id: str, kind: str, k: Any) -> Run:
    """Another number of clusters from the same fits: one K of a comparison, or another cut of a tree."""
    return replace(run, id=run_id, kind=kind, k=whole_number(k, "k"), parent=run.id, names={}, colors={})


def check_has_tree(run: Run) -> None:
    if not has_tree(run.algorithm) or run.kind == "merge":
        raise FieldError("Only a tree can be cut: run a linkage, such as Ward's.", "run", 409)


def edited(run: Run, changes: Mapping[str, Any], k: int) -> tuple[Run, str]:
    """The run with other names or colours of its clusters, and the action in words."""
    if "rename" in changes:
        names = {**run.names, **cluster_names(changes["rename"], k)}
        run = replace(run, names={label: name for label, name in names.items() if name and name != label})
        shown = names_of(run, k)
        repeated = next((name for name in shown if shown.count(name) > 1), None)
        if repeated is not None:
            raise FieldError(f'Two clusters would be called "{repeated}": use different names.', "names")
        return run, f"rename cluster {next(iter(changes['rename']), '')}"
    if "recolor" in changes:
        colors = {**run.colors, **cluster_colors(changes["recolor"], k)}
        run = replace(run, colors={label: color for label, color in colors.items() if color})
        return run, f"recolour cluster {next(iter(changes['recolor']), '')}"
    raise FieldError("an edit is one of rename, recolor and merge.", "run")


def merged(run: Run, labels: Any, k: int, history: History) -> tuple[Run, str]:
    """A new run in which some clusters are one, and the action in words."""
    if not isinstance(labels, list) or len(set(map(str, labels))) < 2:
        raise FieldError("Select at least two clusters to merge.", "run")
    chosen = sorted({cluster_label(label, k) for label in labels})
    groups, names, colors = merged_groups(run, chosen, k)
    child = replace(run, id=history.new_id(), kind="merge", parent=run.id, groups=groups, names=names, colors=colors)
    return child, f"merge clusters {', '.join(map(str, chosen))}"
