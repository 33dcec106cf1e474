"""What clusters are made of, and what to doubt about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.jobs import TableJob
from coterie.jobs.columns import EXCLUDED, NOT_ASKED_FOR
from coterie.jobs.fitting import Fit
from coterie.jobs.methods import method_of
from coterie.jobs.passes import moments
from coterie.jobs.prepare import CONSTANT, Prepared
from coterie.jobs.silhouettes import by_cluster
from coterie.jobs.table import Table
from coterie.plots.silhouette_plot import SilhouetteDisplay
from coterie.report.html.report import Absent
from coterie.report.result import ClusterSummary, Trait
from coterie.report.table import SkippedColumn
from coterie.report.text.layout import count

TRAITS_SHOWN = 3
NOTABLE_DEVIATION = 0.5
SMALL_SHARE = 0.01
ASKED_FOR = (EXCLUDED, NOT_ASKED_FOR, CONSTANT, "names the rows", "weight of the rows")


def summaries(
    prepared: Prepared, labels: NDArray[np.integer], k: int, judged: SilhouetteDisplay | Absent
) -> tuple[ClusterSummary, ...]:
    """A summary of each cluster that has rows; means and shares are weighted, means of the values that are there."""
    rows, names = prepared.rows, prepared.preparation.names
    shift, spread = prepared.preparation.units
    found = moments(rows.S, labels, k, holes=rows.holes, weight=prepared.weight)
    sizes, means = np.bincount(labels, minlength=k), found.means * spread + shift
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.nan_to_num((found.means - found.mean) / np.sqrt(found.variance))
    mass = sizes if prepared.weight is None else np.bincount(labels, prepared.weight, k)
    silhouettes = by_cluster(labels, judged)
    return tuple(
        ClusterSummary(
            label=label,
            rows=int(sizes[label]),
            share=float(mass[label] / mass.sum()),
            silhouette=silhouettes.get(label),
            means={name: mean for name, mean in zip(names, means[label].tolist(), strict=True) if mean == mean},
            stands_out_by=_traits(names, apart[label]),
        )
        for label in np.flatnonzero(sizes).tolist()
    )


def over_table(source: Table, prepared: Prepared, job: TableJob) -> dict[str, Any]:
    """What every result says of the table, by the names of `TableResult`."""
    return {
        "source": source.name,
        "rows": source.rows,
        "rows_used": prepared.rows.n,
        "n_columns": source.width,
        "columns": prepared.preparation.numbers,
        "categories": tuple(prepared.preparation.categories),
        "skipped": prepared.skipped,
        "scale": prepared.preparation.scale,
        "missing": prepared.rows.treatment,
        "weight": job.weight,
        "seed": job.seed,
    }


def notes(skipped: Sequence[SkippedColumn]) -> tuple[str, ...]:
    """What was skipped without being asked for; a constant column has a warning of its own."""
    by_reason: dict[str, list[str]] = {}
    for column in skipped:
        by_reason.setdefault(column.reason, []).append(column.name)
    return tuple(
        f"skipped as {reason}: {', '.join(names)}." for reason, names in by_reason.items() if reason not in ASKED_FOR
    )


def not_converged(method: str, fit: Fit) -> str:
    """That a fit came to its last iteration, and which option helps."""
    helps = ["--max-iter", "--tol"] if "tol" in method_of(method).options else ["--max-iter"]
    return f"not converged after {count(fit.iterations or 0, 'iteration')}: try a larger {' or '.join(helps)}."


def doubts(method: str, fit: Fit, clusters: Sequence[ClusterSummary], k: int) -> tuple[str, ...]:
    """What the reader should know before trusting the clusters."""
    found = []
    if not fit.converged:
        found.append(not_converged(method, fit))
    if len(clusters) < k:
        found.append(f"only {len(clusters)} of {k} clusters {'has' if len(clusters) == 1 else 'have'} rows.")
    if k > 1 and k > sum(cluster.rows for cluster in clusters) / 2:
        found.append(f"{k} clusters are more than one for every two rows.")
    # With many clusters a small share is normal, so beyond twenty the bar is a fifth of an even share.
    bar = min(SMALL_SHARE, 0.2 / k)
    tiny = [f"{cluster.label} ({cluster.rows:,})" for cluster in clusters if cluster.share < bar]
    if tiny:
        found.append(f"very few rows in cluster {', '.join(tiny)}: outliers, or -k too large?")
    return tuple(found)


def _traits(columns: Sequence[str], deviations: NDArray[np.float64]) -> tuple[Trait, ...]:
    strongest = np.argsort(-np.abs(deviations), kind="stable")[:TRAITS_SHOWN]
    return tuple(Trait(columns[j], float(deviations[j])) for j in strongest if abs(deviations[j]) >= NOTABLE_DEVIATION)
