"""Clusters as plain text for a terminal."""

from collections.abc import Sequence

from coterie.report.result import JobResult, Trait
from coterie.report.text.choice import choice_lines
from coterie.report.text.heading import heading, page_lines
from coterie.report.text.layout import columns, count, number, signed, two_places


def fit_text(result: JobResult) -> str:
    """The data and its preparation, the fit, the clusters, and the files written."""
    choice = [] if result.choice is None else choice_lines(result.choice)
    parts = [*heading(result), *choice, _fitted(result), "", *_cluster_table(result)]
    if result.output is not None:
        parts.append(_written(result))
    if result.model is not None:
        parts.append(f"wrote {result.model} (model)")
    if result.animation is not None:
        parts.append(f"wrote {result.animation} (animation of the fit)")
    parts += page_lines(result)
    return "\n".join(parts)


def _fitted(result: JobResult) -> str:
    parts = [f"{result.title}, k = {result.k:,}", *(f"{name} {number(value)}" for name, value in result.scores.items())]
    if result.iterations is not None:
        state = "converged" if result.converged else "not converged"
        parts.append(f"{state} after {count(result.iterations, 'iteration')}")
    if isinstance(result.options.get("n_init"), int):
        parts.append(f"best of {count(result.options['n_init'], 'restart')}")
    return " · ".join([*parts, *([] if result.seconds is None else [f"{result.seconds:.2f} s"])])


def _written(result: JobResult) -> str:
    n_unlabelled = result.rows - result.rows_used
    note = f"; {count(n_unlabelled, 'row')} left without a cluster" if n_unlabelled else ""
    added = "".join(f", + {name}" for name in result.added)
    return f"wrote {result.output} ({count(result.rows, 'row')}{added}{note})"


def _cluster_table(result: JobResult) -> list[str]:
    clusters = result.clusters
    has_silhouettes = any(cluster.silhouette is not None for cluster in clusters)
    rows = [
        [
            cluster.display_name,
            f"{cluster.rows:,}",
            f"{cluster.share:.1%}",
            *([two_places(cluster.silhouette)] if has_silhouettes else []),
            _traits(cluster.stands_out_by),
        ]
        for cluster in clusters
    ]
    share = "share" if result.weight is None else "share of weight"
    header = ["cluster", "rows", share, *(["silhouette"] if has_silhouettes else []), "stands out by"]
    return columns([header, *rows], left=[len(header) - 1])


def _traits(traits: Sequence[Trait]) -> str:
    if not traits:
        return "nothing: close to the average"
    return ", ".join(f"{trait.column} {signed(trait.deviation)} s.d." for trait in traits)
