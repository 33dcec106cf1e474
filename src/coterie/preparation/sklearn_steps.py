"""Models in files, with the preparation of their rows: what fills and scales columns, by name, before the estimator."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from coterie.core.errors import InputError, ParameterError
from coterie.data.tables.reader import Table, check_there
from coterie.families import Categorical, groups
from coterie.jobs import ModelMissing
from coterie.persistence import load, save
from coterie.persistence.container import KEY, SUFFIX
from coterie.preparation.preparation import Preparation


@dataclass(frozen=True)
class Saved:
    """What is in a model file: the estimator, and the steps of scikit-learn before it."""

    model: Any
    steps: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns that the first of them takes; none if it does not know."""
        if self.mixed:
            return tuple(self.model.families_)
        return tuple(map(str, getattr(self._first, "feature_names_in_", ())))

    @property
    def mixed(self) -> bool:
        """Whether the estimator takes a frame as it is."""
        return hasattr(self.model, "families_")

    @property
    def n_columns(self) -> int | None:
        return getattr(self._first, "n_features_in_", None)

    @property
    def scale(self) -> str | None:
        """How columns are scaled, as options say it; None if nothing does."""
        return next((said for said in map(_scale_of, self.steps) if said is not None), None)

    @property
    def fill(self) -> str | None:
        """What stands in for missing values; None if nothing does."""
        return next((step.strategy for step in self.steps if isinstance(step, SimpleImputer)), None)

    @property
    def _first(self) -> Any:
        return self.steps[0] if self.steps else self.model


def write(model: Any, how: Preparation, path: Path) -> None:
    """Write the model, and before it what makes rows of numbers of a table; a mixed one knows its columns itself."""
    save(model if how.mixed else Pipeline([*_steps(how), ("cluster", model)]), path, overwrite=True)


def read(path: Path) -> Saved:
    """The model in a file, and what comes before it."""
    check_there(path)
    if path.suffix.lower() != SUFFIX:
        raise InputError(f'cannot read "{path}": a model ends in {SUFFIX}.')
    found = load(path)
    if not isinstance(found, Pipeline):
        return Saved(found, ())
    steps = tuple(step for _, step in found.steps[:-1] if step is not None and not isinstance(step, str))
    _refuse_other_steps(path, steps)
    return Saved(found.steps[-1][1], steps)


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


def preparation(saved: Saved, source: Table, missing: ModelMissing) -> Preparation:
    """How rows of `source` become those that the model takes."""
    names = saved.names
    if not names:
        names = tuple(name for name, kind in source.schema.items() if kind.is_numeric())
        expected = saved.n_columns or len(names)
        if len(names) != expected:
            raise InputError(f"{source.name} has {len(names)} numeric columns; the model takes {expected}.")
    numbers, categories = _in_frames(saved.model, source) if saved.mixed else _by_kind(names, source)
    count, own = len(numbers) + sum(map(len, categories.values())), len(numbers)
    fill, shift, spread = _learned(saved.steps, count)
    return Preparation(
        numbers=numbers,
        categories=categories,
        missing=_treatment(saved, missing),
        fill=() if fill is None else tuple(fill[:own].tolist()),
        scale="none",
        shift=tuple(shift[:own].tolist()),
        spread=tuple(spread[:own].tolist()),
        single=all(str(source.schema.get(name)) == "Float32" for name in numbers),
        mixed=saved.mixed,
        series=hasattr(saved.model, "max_iter_barycenter"),
        fitted=True,
    )


def _treatment(saved: Saved, missing: ModelMissing) -> str:
    """What is done about missing values: as asked, or as in the fit."""
    ignores = getattr(saved.model, "missing", "error") == "ignore" and saved.fill is None
    if missing == "ignore" and not ignores:
        raise ParameterError("--missing ignore is for models that were fitted so.")
    if missing != "auto":
        return missing
    return saved.fill or ("ignore" if ignores else "error")


def _steps(how: Preparation) -> list[tuple[str, Any]]:
    """Steps of scikit-learn that do what was learned; zeros and ones of categories stay as they are."""
    made = len(how.names) - len(how.numbers)
    scaler = _scaler(how, made)
    scaler.n_features_in_ = len(how.names)
    steps = [("prepare", scaler)]
    if how.fill:
        filler = SimpleImputer(strategy=how.missing)
        filler.statistics_ = np.array([*how.fill, *[0.0] * made])
        filler.indicator_, filler.n_features_in_ = None, len(how.names)
        filler._fit_dtype = filler._fill_dtype = np.dtype(np.float64)
        steps.insert(0, ("fill", filler))
    steps[0][1].feature_names_in_ = np.array(how.names, dtype=object)  # what follows gets an array
    return steps


def _scaler(how: Preparation, made: int) -> Any:
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
    return scaler


def _scale_of(step: Any) -> str | None:
    if isinstance(step, StandardScaler):
        return "standard" if step.with_std else "none"
    return {RobustScaler: "robust", MinMaxScaler: "minmax"}.get(type(step))


def _refuse_other_steps(path: Path, steps: tuple[Any, ...]) -> None:
    """Filling, shifting and dividing can be done at once; what changes the columns in other ways cannot."""
    for step in steps:
        other = getattr(step, "clip", False) or not np.isnan(getattr(step, "missing_values", np.nan))
        if other or np.isnan(_statistics(step)).any():
            raise InputError(
                f"{path.name} has a {type(step).__name__} that does more than fill, shift or divide columns: "
                "use coterie.load and predict in Python."
            )


def _statistics(step: Any) -> np.ndarray:
    return np.asarray(getattr(step, "statistics_", 0.0), dtype=np.float64)


def _learned(steps: tuple[Any, ...], count: int) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """What all steps together put in place of what is missing, take from each column, and divide by."""
    fill, shift, spread = None, np.zeros(count), np.ones(count)
    for step in steps:
        if isinstance(step, SimpleImputer):
            fill = _statistics(step) * spread + shift if fill is None else fill
        else:
            moved, divided = _moved(step, count)
            shift, spread = shift + moved * spread, spread * divided
    return fill, shift, spread


def _moved(scaler: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """What a scaler takes from each column, and by what it divides."""
    if isinstance(scaler, MinMaxScaler):
        return -scaler.min_ / scaler.scale_, 1.0 / scaler.scale_
    middle = scaler.mean_ if isinstance(scaler, StandardScaler) else scaler.center_
    return _or(middle, 0.0, count), _or(scaler.scale_, 1.0, count)


def _or(values: Any, otherwise: float, count: int) -> np.ndarray:
    return np.full(count, otherwise) if values is None else np.asarray(values, dtype=np.float64)


def _in_frames(model: Any, source: Table) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Columns of numbers, and of categories with their values, as a mixture of mixed columns keeps them.

    Whole numbers are categories where the model takes them so.
    """
    known = dict(zip(model.family.table.names, model.family.table.categories, strict=True))
    categories = {name: tuple(map(str, values)) for name, values in known.items() if values is not None}
    for family, columns in model.family_.families:
        if isinstance(family, Categorical):
            for j, levels in zip(groups.numbers(columns), family.categories, strict=True):
                name = model.family.table.names[j]
                if name not in categories and name in source.columns and source.schema[name].is_integer():
                    categories[name] = tuple(f"{level:.0f}" for level in levels)
    return tuple(name for name in known if name not in categories), categories


def _by_kind(names: tuple[str, ...], source: Table) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Names of numbers, and of categories with their values: ``colour=red`` is one of a column ``colour``."""
    numbers: list[str] = []
    categories: dict[str, list[str]] = {}
    for name in names:
        column, equals, value = name.partition("=")
        if equals and name not in source.columns and column in source.columns:
            categories.setdefault(column, []).append(value)
        else:
            numbers.append(name)
    return tuple(numbers), {column: tuple(values) for column, values in categories.items()}
