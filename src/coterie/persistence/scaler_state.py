"""Attributes of scikit-learn's scalers that their `fit` deletes first, so that they must exist."""

from typing import Any

from sklearn.preprocessing import MinMaxScaler, StandardScaler


def complete_scaler(step: Any, rows: int = 0) -> None:
    """Set attributes of a fitted scaler that are missing; `rows` were seen by its fit, 0 if that is unknown.

    Only `transform` was needed of the scalers in files of older versions.
    """
    if not isinstance(step, StandardScaler | MinMaxScaler) or hasattr(step, "n_samples_seen_"):
        return
    step.n_samples_seen_ = rows
    if isinstance(step, MinMaxScaler):
        lower, upper = step.feature_range
        step.data_min_, step.data_range_ = (lower - step.min_) / step.scale_, (upper - lower) / step.scale_
        step.data_max_ = step.data_min_ + step.data_range_
