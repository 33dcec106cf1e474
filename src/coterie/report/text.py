"""A result as plain text for a terminal."""

from collections.abc import Sequence

from coterie.report.result import ClusterSummary, JobResult, Trait

METHOD_NAMES = {"kmeans": "K-means"}
LISTED_NAMES = 8


def as_text(result: JobResult) -> str:
    """The whole result: what was read, how it was treated, what was found, what was written."""
    parts = [_read(result), _treated(result), _fitted(result), "", *_cluster_table(result.clusters)]
    if result.output is not None:
        parts.append(_written(result))
    return "\n".join(parts)


def _read(result: JobResult) -> str:
    names = [column.name for column in result.skipped]
    listed = ", ".join(names[:LISTED_NAMES]) + (", …" if len(names) > LISTED_NAMES else "")
    note = f" (skipped: {listed})" if names else ""
    counts = f"{_count(result.rows, 'row')} · {_count(result.n_columns, 'column')}"
    return f"{result.source}  {counts} → using {len(result.columns):,} numeric{note}"


def _treated(result: JobResult) -> str:
    return f"scaling: {result.scale} · missing: {result.missing} · seed {result.seed}"


def _fitted(result: JobResult) -> str:
    end = "converged" if result.converged else "not converged"
    return (
        f"{METHOD_NAMES[result.method]}, k = {result.k:,} · inertia {_number(result.inertia)} · "
        f"{end} after {_count(result.iterations, 'iteration')} · "
        f"best of {_count(result.n_init, 'start')} · {result.seconds:.2f} s"
    )


def _written(result: JobResult) -> str:
    left_out = result.rows - result.rows_used
    note = f"; {_count(left_out, 'row')} left without a cluster" if left_out else ""
    return f"wrote {result.output} ({_count(result.rows, 'row')}, + cluster, + cluster_distance{note})"


def _cluster_table(clusters: Sequence[ClusterSummary]) -> list[str]:
    rows = [
        (str(cluster.label), f"{cluster.rows:,}", f"{cluster.share:.1%}", _traits(cluster.stands_out_by))
        for cluster in clusters
    ]
    header = ("cluster", "rows", "share", "stands out by")
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(3)]
    return [
        "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in (header, *rows)
    ]


def _traits(traits: Sequence[Trait]) -> str:
    if not traits:
        return "nothing: close to the average"
    return ", ".join(f"{trait.column} {_signed(trait.deviation)} s" for trait in traits)


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
