"""Models in files, with the preparation of their rows: a scaler with the names of its columns before the estimator."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from coterie.core.errors import InputError, ParameterError
from coterie.files import load, save
from coterie.jobs import Missing
from coterie.jobs.prepare import Preparation
from coterie.jobs.table import Table, check_place, check_there

SUFFIX = ".safetensors"
KEY = "coterie"  # in the metadata of a file that holds a model


def check_output(path: Path, *, force: bool) -> None:
    """Refuse a place that cannot be written, before any work is done."""
    if path.suffix.lower() != SUFFIX:
        raise ParameterError(f'cannot write "{path}": a model ends in {SUFFIX}.')
    check_place(path, force=force)


def write(model: Any, how: Preparation, path: Path, *, force: bool) -> None:
    """Write the model, and before it what makes rows of numbers of a table; a mixed one knows its columns itself."""
    whole = model if how.mixed else Pipeline([("prepare", _scaler(how)), ("cluster", model)])
    save(whole, path, overwrite=force)


def read(path: Path) -> tuple[Any, Any]:
    """The model, and the scaler before it; None where there is none."""
    check_there(path)
    if path.suffix.lower() != SUFFIX:
        raise InputError(f'cannot read "{path}": a model ends in {SUFFIX}.')
    found = load(path)
    if not isinstance(found, Pipeline):
        return found, None
    return found.steps[-1][1], found.steps[0][1] if len(found.steps) > 1 else None


def holds_model(path: Path) -> bool:
    """Whether a file is a model, rather than arrays in the same format."""
    from safetensors import SafetensorError, safe_open

    if path.suffix.lower() != SUFFIX or not path.is_file():
        return False
    try:
        with safe_open(path, framework="numpy") as file:
            return KEY in (file.metadata() or {})
    except SafetensorError:
        return False


def preparation(model: Any, scaler: Any, source: Table, missing: Missing) -> Preparation:
    """How rows of `source` become those that the model takes."""
    mixed = hasattr(model, "families_")
    if missing == "ignore" and getattr(model, "missing", "error") != "ignore":
        raise ParameterError("--missing ignore is for models that were fitted so.")
    names = column_names(model, scaler)
    if not names:
        names = tuple(column.name for column in source.typed if column.dtype.is_numeric())
        expected = int(getattr(scaler if scaler is not None else model, "n_features_in_", len(names)))
        if len(names) != expected:
            raise InputError(f"{source.name} has {len(names)} numeric columns; the model takes {expected}.")
    numbers, categories = _in_frames(model) if mixed else _by_kind(names, source)
    count = len(numbers) + sum(map(len, categories.values()))
    shift, spread = (np.zeros(count), np.ones(count)) if scaler is None else _moved(scaler, count)
    return Preparation(
        numbers=numbers,
        categories=categories,
        missing=missing,
        fill=(),
        scale="none",
        shift=tuple(shift[: len(numbers)].tolist()),
        spread=tuple(spread[: len(numbers)].tolist()),
        single=all(str(source.typed.schema.get(name)) == "Float32" for name in numbers),
        mixed=mixed,
        series=hasattr(model, "max_iter_barycenter"),
    )


def column_names(model: Any, scaler: Any) -> tuple[str, ...]:
    """Of the columns that the model was fitted to; none if it does not know."""
    if hasattr(model, "families_"):
        return tuple(model.families_)
    return tuple(map(str, getattr(scaler if scaler is not None else model, "feature_names_in_", ())))


def _scaler(how: Preparation) -> Any:
    """The scaler of scikit-learn that does what was learned; zeros and ones of categories stay as they are."""
    made = len(how.names) - len(how.numbers)
    shift = np.array([*how.shift, *[0.0] * made])
    spread = np.array([*how.spread, *[1.0] * made])
    scaler: Any
    if how.scale == "robust":
        scaler = RobustScaler()
        scaler.center_, scaler.scale_ = shift, spread
    elif how.scale == "minmax":
        scaler = MinMaxScaler()
        scaler.min_, scaler.scale_ = -shift / spread, 1.0 / spread
    else:
        scaled = how.scale == "standard"
        scaler = StandardScaler(with_mean=scaled, with_std=scaled)
        scaler.mean_, scaler.scale_, scaler.var_ = (shift, spread, spread**2) if scaled else (None, None, None)
    scaler.n_features_in_ = len(how.names)
    scaler.feature_names_in_ = np.array(how.names, dtype=object)
    return scaler


def scale_of(scaler: Any) -> str | None:
    """What the scaler does, as options say it; None without one."""
    if isinstance(scaler, StandardScaler):
        return "standard" if scaler.with_std else "none"
    return {RobustScaler: "robust", MinMaxScaler: "minmax"}.get(type(scaler))


def _moved(scaler: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """What a scaler takes from each column, and by what it divides."""
    if isinstance(scaler, StandardScaler):
        return _or(scaler.mean_, 0.0, count), _or(scaler.scale_, 1.0, count)
    if isinstance(scaler, RobustScaler):
        return _or(scaler.center_, 0.0, count), _or(scaler.scale_, 1.0, count)
    assert isinstance(scaler, MinMaxScaler)
    return -scaler.min_ / scaler.scale_, 1.0 / scaler.scale_


def _or(values: Any, otherwise: float, count: int) -> np.ndarray:
    return np.full(count, otherwise) if values is None else np.asarray(values, dtype=np.float64)


def _in_frames(model: Any) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Columns of numbers, and of categories with their values, as a mixture of mixed columns keeps them."""
    known = dict(zip(model.family.table.names, model.family.table.categories, strict=True))
    categories = {name: tuple(map(str, values)) for name, values in known.items() if values is not None}
    return tuple(name for name in known if name not in categories), categories


def _by_kind(names: tuple[str, ...], source: Table) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Names of numbers, and of categories with their values: ``colour=red`` is one of a column ``colour``."""
    numbers: list[str] = []
    categories: dict[str, list[str]] = {}
    for name in names:
        column, equals, value = name.partition("=")
        if equals and name not in source.typed.columns and column in source.typed.columns:
            categories.setdefault(column, []).append(value)
        else:
            numbers.append(name)
    return tuple(numbers), {column: tuple(values) for column, values in categories.items()}
