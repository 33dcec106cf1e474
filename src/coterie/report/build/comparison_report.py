"""The data of a report that compares algorithms."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from coterie.algorithms import algorithm_of
from coterie.report.build.feature_space import cluster_map, feature_space
from coterie.report.build.report_source import ReportSource, reproducibility
from coterie.report.html.report import Absent, ComparisonReport
from coterie.report.results import ComparisonResult

MAPS = 8  # algorithms whose best run is drawn

Codes = NDArray[np.integer[Any]]


def build(
    result: ComparisonResult, source: ReportSource, *, labels: Mapping[tuple[str, int], Codes], python: str | Absent
) -> ComparisonReport:
    """All data of the report; `labels` are those of the best run of each algorithm."""
    space = feature_space(source.prepared, source.threads)
    best = sorted((run for run in result.runs if run.best), key=lambda run: -(run.silhouette or -1.0))[:MAPS]
    clusters = _matched([labels[run.method, run.k] for run in best])
    return ComparisonReport(
        result=result,
        requested_k=source.k,
        maps=tuple(
            (f"{algorithm_of(run.method).title}, K = {run.k}", cluster_map(space, codes, names))
            for run, (codes, names) in zip(best, clusters, strict=True)
        ),
        reproduce=reproducibility(source, python),
    )


def _matched(runs: list[Codes]) -> list[tuple[Codes, list[str]]]:
    """Order the clusters of each run, and so their colours, like those of the first run that they overlap most."""
    result: list[tuple[Codes, list[str]]] = []
    for labels in runs:
        present, codes = np.unique(labels, return_inverse=True)
        names = [str(label) for label in present.tolist()]
        if result:
            first, k = result[0][0], len(names)
            overlap = np.zeros((max(k, len(result[0][1])),) * 2)
            np.add.at(overlap, (first, codes), 1)
            match = np.argsort(linear_sum_assignment(-overlap)[1])[:k]  # cluster of the first run, for each cluster
            order = np.argsort(match)
            codes, names = np.argsort(order)[codes], [names[j] for j in order.tolist()]
        result.append((np.asarray(codes), names))
    return result
