"""A result as one dictionary that ``json.dumps`` takes."""

from dataclasses import fields
from typing import Any

from coterie.report.result import ClusterSummary, JobResult


def as_dict(result: JobResult) -> dict[str, Any]:
    """Everything in `result` but the labels: one for each row, they belong in the output file."""
    plain = {field.name: getattr(result, field.name) for field in fields(result) if field.name != "labels"}
    return plain | {
        "columns": list(result.columns),
        "skipped": {column.name: column.reason for column in result.skipped},
        "clusters": [_cluster(cluster) for cluster in result.clusters],
        "notes": list(result.notes),
        "warnings": list(result.warnings),
    }


def _cluster(cluster: ClusterSummary) -> dict[str, Any]:
    return {
        "cluster": cluster.label,
        "rows": cluster.rows,
        "share": cluster.share,
        "means": cluster.means,
        "stands_out_by": {trait.column: trait.deviation for trait in cluster.stands_out_by},
    }
