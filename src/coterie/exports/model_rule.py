"""The `PredictionRule` of a fitted model; models that have none are rejected with what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from coterie.core.formatting import join_words
from coterie.errors import ParameterError
from coterie.exports.category_texts import check_category
from coterie.exports.prediction_rule import (
    CenterTree,
    Indicator,
    MissingPolicy,
    MostProbable,
    NearestCenter,
    Number,
    PredictionRule,
)
from coterie.preparation.category_meaning import by_meaning
from coterie.preparation.column_reader import ColumnReader

INSTEAD = "Or use coterie predict, or model.predict in Python"
# Estimators that cannot be exported, with the reason.
REASONS = {
    "AgglomerativeClustering": "a new row is compared with the clusters of its tree. Export KMeans",
    "DBSCAN": "a new row is compared with the core rows of the fit. Export KMeans",
    "HDBSCAN": "a new row is compared with the rows of the fit. Export KMeans",
    "DivisiveClustering": "a new row is compared with the rows of the fit. Export BisectingKMeans",
    "KernelKMeans": "a new row is compared with the rows of the fit by a kernel. Export KMeans",
    "Mixture": "its families have densities that SQL cannot compute. Export GaussianMixture",
    "TimeSeriesKMeans": "series are compared by dynamic time warping. Export KMeans, for series of one length",
}
METRICS = {"euclidean": "squares", "sqeuclidean": "squares", "manhattan": "absolute"}  # of K-medoids
STEPS = (SimpleImputer, StandardScaler, MinMaxScaler, RobustScaler)


def rule_of(model: Any) -> PredictionRule:
    """The rule by which a fitted estimator, or a Pipeline that ends in one, predicts."""
    steps: tuple[Any, ...] = ()
    if isinstance(model, Pipeline):
        from coterie.preparation.sklearn_steps import from_pipeline

        _check_steps([step for _, step in model.steps[:-1]])
        prepared = from_pipeline(model, "the model")
        model, steps = prepared.model, prepared.steps
    name = type(model).__name__
    if name in REASONS:
        raise ParameterError(f"{name} cannot be exported: {REASONS[name]}. {INSTEAD}.")
    if name not in SCORES or not type(model).__module__.startswith("coterie."):
        raise ParameterError(
            f"model must be a fitted estimator of coterie, a Pipeline that ends in one, or a model file; got {name}. "
            f"These can be exported: {join_words(list(SCORES))}."
        )
    check_is_fitted(model)
    score = SCORES[name](model)
    d = _locations(score).shape[1]
    numbers, indicators = _features(model, steps, d)
    return PredictionRule(name, *_in_units_of_fit(model, numbers, indicators), _missing(model, numbers), score)


def _check_steps(steps: list[Any]) -> None:
    for step in steps:
        name = type(step).__name__
        if isinstance(step, ColumnReader):
            _check_readings(step.readings or {})
            continue
        if step is not None and step != "passthrough" and not isinstance(step, STEPS):
            known = join_words([kind.__name__ for kind in STEPS])
            raise ParameterError(
                f"a Pipeline with {name} cannot be exported: only {known} can. Export the last step, and compute its "
                "input before."
            )
        if getattr(step, "indicator_", None) is not None:
            raise ParameterError("SimpleImputer(add_indicator=True) cannot be exported: fit it without add_indicator.")


def _check_readings(readings: Mapping[str, Mapping[str, Any]]) -> None:
    """Reject ages and cycles of dates."""
    dates = [name for name, reading in readings.items() if reading["kind"] == "date"]
    if dates:
        raise ParameterError(
            f"column {dates[0]!r} is computed from a date, which cannot be exported: fit with --dates skip, or compute "
            "the age in days before. Or use coterie predict."
        )


def _missing(model: Any, numbers: tuple[Number, ...]) -> MissingPolicy:
    if any(number.fill is not None for number in numbers):
        return "fill"
    return "ignore" if getattr(model, "missing", "error") == "ignore" else "none"


# columns and features


def _features(model: Any, steps: tuple[Any, ...], d: int) -> tuple[tuple[Number, ...], tuple[Indicator, ...]]:
    """Features of the columns: their names are those of the first step, or ``x0``, ``x1``, …."""
    if not steps:
        names = getattr(model, "feature_names_in_", None)
        return tuple(Number(str(name)) for name in ([f"x{j}" for j in range(d)] if names is None else names)), ()
    from coterie.preparation.sklearn_steps import PreparedModel, combined

    prepared = PreparedModel(model, steps)
    categories, readings, transforms = prepared.categories, prepared.readings, prepared.transforms
    names = prepared.names or (() if categories else tuple(f"x{j}" for j in range(d)))
    fill, shift, spread = combined(steps, d)
    numbers = tuple(
        Number(
            readings[name].column if name in readings else name,
            float(shift[j]),
            float(spread[j]),
            fill=None if fill is None else float(fill[j]),
            transform=transforms.get(name, ""),
            reading=readings.get(name),
        )
        for j, name in enumerate(names)
    )
    return numbers, tuple(each for column, values in categories.items() for each in _indicators(column, values))


def _indicators(column: str, categories: tuple[str, ...]) -> list[Indicator]:
    for category in categories:
        check_category(column, category)
    known = set(by_meaning(categories).values())
    return [Indicator(column, category, is_exact=category not in known) for category in categories]


def _in_units_of_fit(
    model: Any, numbers: tuple[Number, ...], indicators: tuple[Indicator, ...]
) -> tuple[tuple[Number, ...], tuple[Indicator, ...]]:
    """Divide features by the power of two of a rescaled fit, and multiply them by the roots of `metric_weights`."""
    unit = float(np.ldexp(1.0, model._scale.rows)) if hasattr(model, "_scale") else 1.0
    roots = getattr(model, "_roots", None)
    weights = np.ones(len(numbers) + len(indicators)) if roots is None else np.asarray(roots, dtype=np.float64)
    scaled = tuple(
        replace(number, spread=number.spread * unit, weight=float(weight))
        for number, weight in zip(numbers, weights[: len(numbers)], strict=True)
    )
    sized = tuple(
        replace(each, size=each.size / unit * float(weight))
        for each, weight in zip(indicators, weights[len(numbers) :], strict=True)
    )
    if not all(0.0 < number.spread < np.inf for number in scaled):
        raise ParameterError(
            f"the values of the model are about 2^{model._scale.rows}, out of the range of an export: divide the "
            "columns by a power of two before the fit."
        )
    return scaled, sized


# scores


def _locations(score: NearestCenter | CenterTree | MostProbable) -> np.ndarray:
    """Centers or means (k, d)."""
    return score.means if isinstance(score, MostProbable) else score.centers


def _nearest(metric: Any, model: Any) -> NearestCenter:
    return NearestCenter(metric, np.asarray(model._params, dtype=np.float64))


def _medians(model: Any) -> NearestCenter:
    return _nearest("absolute" if model.metric == "l1" else "squares", model)


_squares, _directions = partial(_nearest, "squares"), partial(_nearest, "directions")


def _medoids(model: Any) -> NearestCenter:
    """Medoids of a distance without parameters; others are rejected."""
    distance = getattr(model._medoids, "distance", None)
    name = "precomputed" if distance is None else distance.name
    has_options = getattr(distance, "w", None) is not None or bool(getattr(distance, "exponent_", 0))
    if name not in METRICS or has_options:
        raise ParameterError(
            f"KMedoids with metric={name!r}{' and parameters' if has_options else ''} cannot be exported: only "
            f"{join_words(list(METRICS))} without parameters can. {INSTEAD}."
        )
    return NearestCenter(METRICS[name], np.asarray(model._medoids.A, dtype=np.float64))  # type: ignore[arg-type]


def _tree(model: Any) -> CenterTree:
    tree = model._params
    centers = np.asarray(tree.centers, dtype=np.float64)
    return CenterTree(tuple(tree.children[:, 0].tolist()), centers, tuple(tree.clusters.tolist()))


def _gaussians(model: Any) -> MostProbable:
    gaussians = model._model().gaussians(model._params)
    return MostProbable(gaussians.form, gaussians.offset, gaussians.means, gaussians.factor)


SCORES: dict[str, Callable[[Any], NearestCenter | CenterTree | MostProbable]] = {
    "BalancedKMeans": _squares,
    "BayesianGaussianMixture": _gaussians,
    "BisectingKMeans": _tree,
    "FuzzyCMeans": _squares,
    "GaussianMixture": _gaussians,
    "KMeans": _squares,
    "KMedians": _medians,
    "KMedoids": _medoids,
    "MiniBatchKMeans": _squares,
    "SphericalKMeans": _directions,
}
