"""Clusters as plain text for a terminal."""

from collections.abc import Sequence

from coterie.report.result import JobResult, Trait
from coterie.report.text.choice import choice_lines
from coterie.report.text.heading import heading, page_lines
from coterie.report.text.layout import columns, count, number, signed, two_places


def fit_text(result: JobResult) -> str:
    """The whole result: what was read, how it was treated, what was found, what was written."""
    chosen = [] if result.choice is None else choice_lines(result.choice)
    parts = [*heading(result), *chosen, _fitted(result), "", *_cluster_table(result)]
    if result.output is not None:
        parts.append(_written(result))
    if result.model is not None:
        parts.append(f"wrote {result.model} (the model)")
    if result.animation is not None:
        parts.append(f"wrote {result.animation} (the fit, step by step)")
    parts += page_lines(result)
    return "\n".join(parts)


def _fitted(result: JobResult) -> str:
    parts = [f"{result.title}, k = {result.k:,}", *(f"{name} {number(value)}" for name, value in result.scores.items())]
    if result.iterations is not None:
        end = "converged" if result.converged else "not converged"
        parts.append(f"{end} after {count(result.iterations, 'iteration')}")
    if isinstance(result.options.get("n_init"), int):
        parts.append(f"best of {count(result.options['n_init'], 'start')}")
    return " · ".join([*parts, *([] if result.seconds is None else [f"{result.seconds:.2f} s"])])


def _written(result: JobResult) -> str:
    left_out = result.rows - result.rows_used
    note = f"; {count(left_out, 'row')} left without a cluster" if left_out else ""
    added = "".join(f", + {name}" for name in result.added)
    return f"wrote {result.output} ({count(result.rows, 'row')}{added}{note})"


def _cluster_table(result: JobResult) -> list[str]:
    clusters = result.clusters
    judged = any(cluster.silhouette is not None for cluster in clusters)
    rows = [
        [
            cluster.called,
            f"{cluster.rows:,}",
            f"{cluster.share:.1%}",
            *([two_places(cluster.silhouette)] if judged else []),
            _traits(cluster.stands_out_by),
        ]
        for cluster in clusters
    ]
    share = "share" if result.weight is None else "share of weight"
    header = ["cluster", "rows", share, *(["silhouette"] if judged else []), "stands out by"]
    return columns([header, *rows], left=[len(header) - 1])


def _traits(traits: Sequence[Trait]) -> str:
    if not traits:
        return "nothing: close to the average"
    return ", ".join(f"{trait.column} {signed(trait.deviation)} s.d." for trait in traits)
