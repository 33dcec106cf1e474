"""A preparation as steps of a scikit-learn pipeline, the form in which it is stored with a model; and back."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from coterie.core.protocols import takes_series
from coterie.data.tables.converted_table import converted
from coterie.data.tables.reader import Table
from coterie.data.tables.readings import Reading
from coterie.errors import InputError, ParameterError
from coterie.families import Categorical, groups
from coterie.preparation import ModelMissing
from coterie.preparation.column_reader import ColumnReader
from coterie.preparation.column_selection import check_column
from coterie.preparation.long_series import SeriesTable
from coterie.preparation.preparation import Preparation


@dataclass(frozen=True)
class PreparedModel:
    """An estimator, and the steps of scikit-learn that prepare its rows."""

    model: Any
    steps: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the input columns; empty if unknown."""
        if self.mixed:
            return tuple(self.model.families_)
        if isinstance(self._first, ColumnReader):
            return tuple(self._first.names)
        return tuple(map(str, getattr(self._first, "feature_names_in_", ())))

    @property
    def mixed(self) -> bool:
        """Whether the estimator takes a frame as it is."""
        return hasattr(self.model, "families_")

    @property
    def n_columns(self) -> int | None:
        return getattr(self._first, "n_features_in_", None)

    @property
    def readings(self) -> dict[str, Reading]:
        """How columns are read as numbers, by name."""
        stored = self._first.readings if isinstance(self._first, ColumnReader) else None
        return {name: Reading.from_dict(dict(reading)) for name, reading in (stored or {}).items()}

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Values of the columns that are encoded as zeros and ones."""
        stored = self._first.categories if isinstance(self._first, ColumnReader) else None
        return {name: tuple(values) for name, values in (stored or {}).items()}

    @property
    def transforms(self) -> dict[str, str]:
        """Transforms by the name of the column."""
        return dict(self._first.transforms or {}) if isinstance(self._first, ColumnReader) else {}

    @property
    def scale(self) -> str | None:
        """Name of the scaling, as in the options; None if there is none."""
        for step in self.steps:
            if isinstance(step, StandardScaler):
                return "standard" if step.with_std else "none"
            if isinstance(step, RobustScaler | MinMaxScaler):
                return "robust" if isinstance(step, RobustScaler) else "minmax"
        return None

    @property
    def fill(self) -> str | None:
        """Strategy that fills missing values; None if there is none."""
        return next((step.strategy for step in self.steps if isinstance(step, SimpleImputer)), None)

    @property
    def _first(self) -> Any:
        return self.steps[0] if self.steps else self.model


def as_pipeline(model: Any, preparation: Preparation, rows: int) -> Any:
    """A pipeline that prepares rows and then applies the model, which was fitted to this number of `rows`.

    Its first step is a `ColumnReader` if columns are categories, are read as numbers by a rule or are transformed. A
    model of mixed columns stores its columns itself.
    """
    steps = [] if preparation.mixed else _steps(preparation, rows)
    categories = {} if preparation.mixed else {name: list(texts) for name, texts in preparation.categories.items()}
    if preparation.readings or preparation.transforms or categories:
        names = preparation.columns if preparation.mixed else preparation.numbers
        readings = {name: reading.as_dict() for name, reading in preparation.readings.items()}
        allow_missing = bool(preparation.fill) or preparation.missing == "ignore"
        reader = ColumnReader(
            list(names), readings, dict(preparation.transforms), preparation.mixed, categories, allow_missing
        ).fit()
        for _, step in steps:  # gets an array
            vars(step).pop("feature_names_in_", None)
        steps.insert(0, ("read", reader))
    return Pipeline([*steps, ("cluster", model)]) if steps else model


def from_pipeline(model: Any, file_name: str) -> PreparedModel:
    """Split a pipeline into its model and the steps before it."""
    if not isinstance(model, Pipeline):
        return PreparedModel(model, ())
    steps = tuple(step for _, step in model.steps[:-1] if step is not None and not isinstance(step, str))
    for step in steps:  # only filling, shifting and dividing can be combined
        if isinstance(step, ColumnReader):
            continue
        is_other = getattr(step, "clip", False) or not np.isnan(getattr(step, "missing_values", np.nan))
        if is_other or np.isnan(_fill_values(step)).any():
            raise InputError(
                f"{file_name} has a {type(step).__name__} that does more than fill, shift or divide columns: "
                "use coterie.load and predict in Python."
            )
    return PreparedModel(model.steps[-1][1], steps)


def read_columns(saved: PreparedModel, table: Table) -> Table:
    """The table with columns that are read as the model reads them."""
    for reading in saved.readings.values():
        check_column(reading.column, table.columns)
    texts = _text_columns(saved.model) if saved.mixed else saved.categories
    return converted(table.with_text([name for name in texts if name in table.schema]), saved.readings)


def load_preparation(saved: PreparedModel, table: Table, missing: ModelMissing) -> Preparation:
    """The preparation of rows of `table`, of `read_columns`, for a saved model."""
    names = saved.names
    if not names and not saved.categories:
        names = tuple(name for name, dtype in table.schema.items() if dtype.is_numeric())
        expected = saved.n_columns or len(names)
        if len(names) != expected:
            raise InputError(f"{table.name} has {len(names)} numeric columns; the model takes {expected}.")
    numbers, categories = _mixed_columns(saved.model, table) if saved.mixed else (names, saved.categories)
    n_numbers = len(numbers)
    fill, shift, spread = combined(saved.steps, n_numbers + sum(map(len, categories.values())))
    return Preparation(
        numbers=numbers,
        categories=categories,
        missing=_missing_treatment(saved, missing),
        fill=() if fill is None else tuple(fill[:n_numbers].tolist()),
        scale="none",
        shift=tuple(shift[:n_numbers].tolist()),
        spread=tuple(spread[:n_numbers].tolist()),
        single=all(str(table.schema.get(name)) == "Float32" for name in numbers),
        mixed=saved.mixed,
        series=takes_series(saved.model),
        from_model=True,
        readings=saved.readings,
        transforms=saved.transforms,
    )


def series_preparation(saved: PreparedModel, table: SeriesTable) -> Preparation:
    """The preparation of series, whose columns are not those of the model: it must leave values as they are."""
    numbers = tuple(table.columns[1:])
    n_columns = saved.n_columns or len(numbers)
    fill, shift, spread = combined(saved.steps, n_columns)
    if fill is not None or np.any(shift != 0.0) or np.any(spread != 1.0) or saved.readings or saved.transforms:
        raise ParameterError("--series is for models of unscaled series: this model scales or fills its columns.")
    return Preparation(
        numbers=numbers, categories={}, missing="error", fill=(), scale="none", shift=(0.0,) * len(numbers),
        spread=(1.0,) * len(numbers), single=False, mixed=False, series=True, from_model=True,
    )  # fmt: skip


def _missing_treatment(saved: PreparedModel, missing: ModelMissing) -> str:
    """Treatment of missing values: as in the option, or as in the fit."""
    ignores = getattr(saved.model, "missing", "error") == "ignore" and saved.fill is None
    if missing == "ignore" and not ignores:
        raise ParameterError("--missing ignore is for models that were fitted with it.")
    if missing != "auto":
        return missing
    return saved.fill or ("ignore" if ignores else "error")


def _steps(preparation: Preparation, rows: int) -> list[tuple[str, Any]]:
    """Steps of scikit-learn that fill and scale; one-hot columns stay as they are."""
    names, n_one_hot = preparation.names, len(preparation.indicators)
    scaler = _scaler(preparation, rows)
    scaler.n_features_in_ = len(names)
    steps = [("prepare", scaler)]
    if preparation.fill:
        values = [*preparation.fill, *[0.0] * n_one_hot]
        steps.insert(0, ("fill", SimpleImputer(strategy=preparation.missing).fit([values])))
    steps[0][1].feature_names_in_ = np.array(names, dtype=object)  # later steps get an array
    return steps


def _scaler(preparation: Preparation, rows: int) -> Any:
    shift, spread = preparation.units
    scaler: Any
    if preparation.scale == "robust":
        scaler = RobustScaler()
        scaler.center_, scaler.scale_ = shift, spread
    elif preparation.scale == "minmax":
        scaler = MinMaxScaler()
        scaler.min_, scaler.scale_ = -shift / spread, 1.0 / spread
        scaler.data_min_, scaler.data_max_, scaler.data_range_ = shift, shift + spread, spread
        scaler.n_samples_seen_ = rows
    else:
        is_scaled = preparation.scale == "standard"
        scaler = StandardScaler(with_mean=is_scaled, with_std=is_scaled)
        with np.errstate(over="ignore"):
            variance = spread**2
        has_variance = is_scaled and np.isfinite(variance).all()  # scikit-learn transforms without it
        scaler.mean_, scaler.scale_ = (shift, spread) if is_scaled else (None, None)
        scaler.var_ = variance if has_variance else None
        scaler.n_samples_seen_ = rows
    return scaler


def _fill_values(step: Any) -> np.ndarray:
    return np.asarray(getattr(step, "statistics_", 0.0), dtype=np.float64)


def _shift_and_spread(step: Any) -> tuple[Any, Any]:
    """What a scaler subtracts and divides by, according to its options: it also stores values that it does not use."""
    if isinstance(step, MinMaxScaler):
        return -step.min_ / step.scale_, 1.0 / step.scale_
    if isinstance(step, StandardScaler):
        center, is_shifted, is_scaled = step.mean_, step.with_mean, step.with_std
    else:
        center, is_shifted, is_scaled = step.center_, step.with_centering, step.with_scaling
    shift = np.asarray(center, dtype=np.float64) if is_shifted else 0.0
    return shift, np.asarray(step.scale_, dtype=np.float64) if is_scaled else 1.0


def combined(steps: tuple[Any, ...], n_columns: int) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Fill values, shift and spread of all steps together."""
    fill, shift, spread = None, np.zeros(n_columns), np.ones(n_columns)
    for step in steps:
        if isinstance(step, ColumnReader):
            continue
        if isinstance(step, SimpleImputer):
            fill = _fill_values(step) * spread + shift if fill is None else fill
        else:
            step_shift, step_spread = _shift_and_spread(step)
            shift, spread = shift + step_shift * spread, spread * step_spread
    return fill, shift, spread


def _mixed_columns(model: Any, table: Table) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Numeric columns, and categorical columns with their values, of a mixture of mixed columns.

    Integer columns are categorical if the model has a categorical family for them.
    """
    names, categories = model.family.table.names, _text_columns(model)
    for family, indices in model.family_.families:
        if isinstance(family, Categorical):
            for j, levels in zip(groups.column_indices(indices), family.categories, strict=True):
                name = names[j]
                if name not in categories and name in table.columns and table.schema[name].is_integer():
                    categories[name] = tuple(f"{level:.0f}" for level in levels)
    return tuple(name for name in names if name not in categories), categories


def _text_columns(model: Any) -> dict[str, tuple[str, ...]]:
    """The columns of text of a mixture of mixed columns, with their values."""
    table = model.family.table
    pairs = zip(table.names, table.categories, strict=True)
    return {name: tuple(map(str, values)) for name, values in pairs if values is not None}
