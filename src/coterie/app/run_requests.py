"""Requests of pages as runs: new ones, those made from another run, and edits of clusters. Nothing is computed here."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from coterie.algorithms import algorithm_of
from coterie.app.execution import has_tree
from coterie.app.failures import FieldError
from coterie.app.run_views import colors_of, names_of
from coterie.app.state import Run


def requested_run(request: Mapping[str, Any], run_id: str, preparation: dict[str, Any]) -> Run:
    """A fit, or a comparison of numbers of clusters."""
    run = Run(run_id, **{"kind": "fit", "algorithm": "kmeans", "k": "auto", **request}, preparation=preparation)
    return replace(run, k="auto") if algorithm_of(run.algorithm).finds_k else run


def child_of(run: Run, run_id: str, kind: str, k: int) -> Run:
    """Another number of clusters from the same fits: one K of a comparison, or another cut of a tree."""
    return replace(run, id=run_id, kind=kind, k=k, parent=run.id, names={}, colors={})


def check_has_tree(run: Run) -> None:
    if not has_tree(run.algorithm) or run.kind == "merge":
        raise FieldError("Only a tree can be cut: run a linkage, such as Ward's.", "run", 409)


def edited(run: Run, changes: Mapping[str, Any], k: int) -> tuple[Run, str]:
    """The run with other names or colours of its clusters, and the action in words."""
    ((action, values),) = changes.items()
    _check_labels(values, k)
    if action == "rename":
        names = {**run.names, **{label: " ".join(name.split()) for label, name in values.items()}}
        run = replace(run, names={label: name for label, name in names.items() if name and name != label})
        repeated = next((name for name, count in Counter(names_of(run, k)).items() if count > 1), None)
        if repeated is not None:
            raise FieldError(f'Two clusters would be called "{repeated}": use different names.', "names")
        return run, f"rename cluster {next(iter(values), '')}"
    colors = {**run.colors, **values}
    run = replace(run, colors={label: color for label, color in colors.items() if color})
    return run, f"recolour cluster {next(iter(values), '')}"


def merged(run: Run, run_id: str, labels: list[int], k: int) -> tuple[Run, str]:
    """A new run in which some clusters are one, and the action in words."""
    _check_labels(labels, k)
    chosen = sorted(labels)
    groups, names, colors = merged_groups(run, chosen, k)
    child = replace(run, id=run_id, kind="merge", parent=run.id, groups=groups, names=names, colors=colors)
    return child, f"merge clusters {', '.join(map(str, chosen))}"


def _check_labels(labels: Iterable[Any], k: int) -> None:
    for label in labels:
        if int(label) >= k:
            raise FieldError(f"there is no cluster {label}: labels are 0 to {k - 1}.", f"cluster:{label}")


def merged_groups(run: Run, chosen: list[int], k: int) -> tuple[list[int], dict[str, str], dict[str, str]]:
    """The new label of each label, and the names and colours that stay; merged clusters take those of the first."""
    groups: list[int] = []
    last = -1
    for label in range(k):
        if label in chosen[1:]:
            groups.append(groups[chosen[0]])
        else:
            last += 1
            groups.append(last)
    names = {
        str(groups[int(label)]): name for label, name in reversed(run.names.items()) if int(label) not in chosen[1:]
    }
    shown = [run.names.get(str(label)) for label in chosen]
    if any(shown):
        names[str(groups[chosen[0]])] = " + ".join(
            name or str(label) for name, label in zip(shown, chosen, strict=True)
        )
    colors = {str(groups[label]): color for label, color in enumerate(colors_of(run, k)) if label not in chosen[1:]}
    return groups, names, colors
