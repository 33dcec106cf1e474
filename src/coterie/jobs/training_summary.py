"""Rows and columns of a new table that are unlike those to which a model was fitted."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.algorithms import Algorithm
from coterie.core.attachments import TRAINING_SUMMARY
from coterie.core.protocols import can_predict
from coterie.core.training_summary import TrainingSummary
from coterie.data.row_sample import sample_rows
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.missing_values import empty_warnings
from coterie.preparation.one_hot import unknown_warnings
from coterie.preparation.preparation import BLOCK_ROWS, PreparedRows
from coterie.preparation.scaling import quantiles
from coterie.report.formatting import number

PROBABILITIES = tuple(np.linspace(0.0, 1.0, 11).tolist())
MEDIAN, MAX = 5, 10  # of PROBABILITIES
QUANTILE_ROWS = 100_000  # rows whose quantiles are computed
MANY_ROWS = 100  # training rows whose largest score is a reliable limit
# The limit, in differences of the quantiles 95 % and 50 %; densities are squares
TAIL = {"distance": 3.0, "density": 4.0}
PRIOR_ROWS = 10  # of average distance, that every cluster has in addition: the spread of a few rows is then not 0
MIN_NEW_ROWS = 20  # rows of which a distribution can be compared
MOVED = 0.3  # largest difference of cumulative shares that is not reported


def summarize_training(
    prepared: PreparedTable, model: Any, labels: NDArray[np.integer], method: Algorithm
) -> TrainingSummary | None:
    """The summary of a fit, to be stored with its model; None for series, whose rows may have different lengths."""
    if method.series or not can_predict(model):
        return None
    rows = prepared.rows
    centers = spread = None
    score = "density" if can_predict(model, "score_samples") else "distance"
    if score == "distance":
        centers, spread = _centers(rows, labels, method.directions)
    summary = TrainingSummary(
        score=score, limit=0.0, centers=centers, spread=spread, unit_rows=method.directions,
        columns=prepared.preparation.numbers, quantiles=np.empty((0, 0)), shares=np.empty((0, 0)), rows=rows.n,
    )  # fmt: skip
    values = _scores(summary, model, rows, labels)
    columns = _sample_columns(prepared)
    cuts = np.array([quantiles(x[:, np.newaxis], list(PROBABILITIES))[:, 0] for x in columns])
    shares = np.array([[np.mean(x <= cut) for cut in each] for x, each in zip(columns, cuts, strict=True)])
    shape = len(columns), len(PROBABILITIES)
    return replace(summary, limit=_limit(values, score), quantiles=cuts.reshape(shape), shares=shares.reshape(shape))


def _sample_columns(prepared: PreparedTable) -> list[NDArray[np.float64]]:
    """The values that each numeric column has in a sample of the rows."""
    sample = prepared.observed[sample_rows(prepared.rows.n, QUANTILE_ROWS)]
    columns = sample[:, : len(prepared.preparation.numbers)].T.astype(np.float64)
    return [x[~np.isnan(x)] for x in columns]


def unusual_rows(
    summary: TrainingSummary, model: Any, rows: PreparedRows, labels: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Mask of rows that are farther from their cluster, or less likely, than the rows of the fit; and of noise."""
    values = _scores(summary, model, rows, labels)
    is_far = values > summary.limit if summary.score == "distance" else values < summary.limit
    return np.asarray(is_far | ~np.isfinite(values) | (labels < 0))


def new_table_warnings(model: Any, prepared: PreparedTable) -> tuple[str, ...]:
    """Warnings about values that the model does not know, empty columns, and columns that moved since the fit."""
    rows = prepared.rows
    return (*unknown_warnings(rows.unknown), *empty_warnings(rows.empty), *_drift_warnings(model, prepared))


def _drift_warnings(model: Any, prepared: PreparedTable) -> tuple[str, ...]:
    """Warnings about columns whose distribution differs from that of the fit, if the model has a summary of it."""
    summary, rows, preparation = getattr(model, TRAINING_SUMMARY, None), prepared.rows, prepared.preparation
    if summary is None or rows.n < MIN_NEW_ROWS:
        return ()
    warnings = []
    noise = np.sqrt(1 / rows.n + 1 / max(1, summary.rows))
    columns = dict(zip(preparation.numbers, _sample_columns(prepared), strict=True))
    for j, (name, cuts, shares) in enumerate(zip(summary.columns, summary.quantiles, summary.shares, strict=True)):
        values = columns.get(name, ())
        if len(values) < MIN_NEW_ROWS:
            continue
        differences = np.array([np.mean(values <= cut) for cut in cuts]) - shares
        if np.abs(differences).max() > MOVED + noise:
            outside = float(np.mean((values > cuts[MAX]) | (values < cuts[0])))
            beyond = f"; {outside:.0%} of the rows are outside its range" if outside > 0 else ""
            now, then = (
                preparation.date_of(name, median) or number(median)
                for median in (float(np.median(values)), float(cuts[MEDIAN]))
            )
            warnings.append(
                f'column "{summary.columns[j]}" moved: its median is {now}, and {then} in the training data{beyond}.'
            )
    return tuple(warnings)


def _centers(rows: PreparedRows, labels: NDArray[np.integer], unit_rows: bool) -> tuple[NDArray[np.float64], ...]:
    """Means of the clusters, and root mean square distances to them; a cluster without rows gets those of all rows."""
    k, d = int(labels.max()) + 1, rows.X.shape[1]
    sums, counts = np.zeros((k, d)), np.zeros((k, d))
    for part, X in _blocks(rows, unit_rows):
        np.add.at(sums, labels[part], np.nan_to_num(X))
        np.add.at(counts, labels[part], ~np.isnan(X))
    overall = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    centers = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
    squares = np.concatenate([_squares(X, centers[labels[part]]) for part, X in _blocks(rows, unit_rows)])
    sizes, totals = np.bincount(labels, minlength=k), np.bincount(labels, squares, k)
    mean = squares.mean()
    spread = np.sqrt((totals + PRIOR_ROWS * mean) / (sizes + PRIOR_ROWS))
    return centers, np.where(spread > 0, spread, 1.0)


def _scores(
    summary: TrainingSummary, model: Any, rows: PreparedRows, labels: NDArray[np.integer]
) -> NDArray[np.float64]:
    if summary.score == "density":
        slices = [slice(start, start + BLOCK_ROWS) for start in range(0, rows.n, BLOCK_ROWS)]
        return np.concatenate([np.asarray(model.score_samples(rows.model_input[part])) for part in slices])
    assert summary.centers is not None
    assert summary.spread is not None
    known = np.clip(labels, 0, len(summary.centers) - 1)
    parts = [
        np.sqrt(_squares(X, summary.centers[known[part]])) / summary.spread[known[part]]
        for part, X in _blocks(rows, summary.unit_rows)
    ]
    return np.concatenate(parts)


def _blocks(rows: PreparedRows, unit_rows: bool) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    for start in range(0, rows.n, BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        X = np.asarray(rows.X[part], dtype=np.float64)
        if unit_rows:
            lengths = np.sqrt(np.nansum(X * X, axis=1, keepdims=True))
            X = X / np.where(lengths > 0, lengths, 1.0)
        yield part, X


def _squares(X: NDArray[np.float64], centers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distances; missing values count as the average of the others."""
    with np.errstate(over="ignore"):
        squares = (X - centers) ** 2
    present = ~np.isnan(squares)
    total = np.where(present, squares, 0.0).sum(axis=1)
    return np.asarray(total * X.shape[1] / np.maximum(present.sum(axis=1), 1))


def _limit(values: NDArray[np.float64], score: str) -> float:
    """The limit of usual scores: far in the tail by its median and 95 % quantile, but not beyond what the fit saw.

    At most 1 % of the rows of the fit are unusual. The largest score of a few rows says little, so it is only a lower
    bound there.
    """
    sign = 1.0 if score == "distance" else -1.0
    scores = sign * values[np.isfinite(values)]
    middle, high, highest, largest = np.quantile(scores, [0.5, 0.95, 0.99, 1.0])
    tail = middle + TAIL[score] * (high - middle)
    return float(sign * (max(tail, largest) if len(scores) < MANY_ROWS else min(max(tail, highest), largest)))
