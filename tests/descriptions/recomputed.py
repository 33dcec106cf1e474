"""Statistics of clusters from the values of a table, by pandas and NumPy alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

SIZES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
TRANSFORMS = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt}


def agrees(text: str, value: float | None) -> bool:
    """Whether a number on a page is the value, rounded to the digits that are shown."""
    text = text.strip().replace(",", "").replace("−", "-").replace("+", "")
    if value is None or np.isnan(value):
        return text in ("–", "")
    factor = SIZES.get(text[-1:], 0.01 if text.endswith("%") else 1.0)
    digits = text.rstrip("kMGT%")
    try:
        shown = float(digits)
    except ValueError:
        return False
    mantissa, _, exponent = digits.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    if "e" not in digits and "." not in digits and shown >= 1000 and factor > 1:
        unit = 1.0
    return abs(shown * factor - value) <= 0.5000001 * unit * factor + 1e-9 * abs(value)


def close(shown: float | None, value: float | None, scale: float = 0.0) -> bool:
    """Whether a number in a file is the value but for rounding errors, also those of a difference of that scale."""
    shown, value = (float("nan") if each is None else float(each) for each in (shown, value))
    return (np.isnan(shown) and np.isnan(value)) or abs(shown - value) <= 1e-9 * max(abs(value), scale)


def repeated(values: pd.Series, weight: pd.Series | None) -> pd.Series:
    """Every value as often as its weight says, without missing ones."""
    if weight is not None:
        values = values.loc[values.index.repeat(weight.loc[values.index])]
    return values.dropna()


def numbers(values: pd.Series) -> pd.Series:
    """Dates as days; numbers as they are."""
    if pd.api.types.is_datetime64_any_dtype(values):
        days = (values - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        return days.astype(float)
    return values.astype(float)


def mean(values: pd.Series, weight: pd.Series | None = None) -> float:
    return float(numbers(repeated(values, weight)).mean())


def quantile(values: pd.Series, probability: float, weight: pd.Series | None = None) -> float:
    """Interpolated linearly; of weighted rows the mean of both values at a step."""
    present = numbers(repeated(values, weight))
    method = "linear" if weight is None else "averaged_inverted_cdf"
    return float(np.quantile(present, probability, method=method)) if len(present) else float("nan")


def difference(
    values: pd.Series, members: pd.Series, everyone: pd.Series, weight: pd.Series | None, transform: str | None
) -> float:
    """Difference of the mean of some rows from that of all, in standard deviations of all."""
    function = TRANSFORMS[transform] if transform else lambda x: x
    inside, whole = (function(numbers(repeated(values[rows], weight))) for rows in (members, everyone))
    deviation = float(np.std(whole))
    return (float(inside.mean()) - float(whole.mean())) / deviation if deviation > 0 and len(inside) else 0.0


def is_share(values: pd.Series) -> bool:
    """Whether the mean of a column is a share: there are only zeros and ones."""
    return not pd.api.types.is_datetime64_any_dtype(values) and set(values.dropna()) == {0, 1}


def satisfies(rule: str, table: pd.DataFrame) -> pd.Series:
    """The rows of a table that satisfy a rule as it is printed."""
    mask = pd.Series(True, table.index)
    for condition in rule.split(" and "):
        if between := re.fullmatch(r"(\S+(?: \d\d:\d\d\S*)?) < (.+) ≤ (.+)", condition):
            low, name, high = between.groups()
            mask &= (table[name] > _value(low, table[name])) & (table[name] <= _value(high, table[name]))
        elif at_most := re.fullmatch(r"(.+) ≤ (.+)", condition):
            mask &= table[at_most[1]] <= _value(at_most[2], table[at_most[1]])
        elif above := re.fullmatch(r"(.+) > (.+)", condition):
            mask &= table[above[1]] > _value(above[2], table[above[1]])
        else:
            name, _, texts = condition.partition(" = ")
            values = [_value(text, table[name]) for text in re.split(r", | or ", texts)]
            mask &= table[name].isin(values)
    return mask


def _value(text: str, column: pd.Series) -> object:
    if pd.api.types.is_datetime64_any_dtype(column):
        return pd.Timestamp(text)
    return float(text.replace(",", "")) if pd.api.types.is_numeric_dtype(column) else text


def prepared(
    table: pd.DataFrame,
    columns: Sequence[str],
    categories: Sequence[str],
    missing: str,
    transforms: dict[str, str],
    scale: str = "standard",
    weight: pd.Series | None = None,
) -> np.ndarray:
    """The rows as a fit sees them: filled, transformed, scaled, one-hot."""
    parts = []
    for name in columns:
        values = numbers(table[name])
        if missing in ("mean", "median"):
            values = values.fillna(mean(values, weight) if missing == "mean" else quantile(values, 0.5, weight))
        if name in transforms:
            values = TRANSFORMS[transforms[name]](values)
        parts.append(_scaled(values, scale, weight).to_numpy())
    for name in categories:
        parts += [(table[name] == value).to_numpy(dtype=float) for value in sorted(table[name].dropna().unique())]
    return np.column_stack(parts)


def _scaled(values: pd.Series, scale: str, weight: pd.Series | None) -> pd.Series:
    low, middle, high = (quantile(values, probability, weight) for probability in (0.25, 0.5, 0.75))
    return {
        "standard": lambda: (values - mean(values, weight)) / np.std(repeated(values, weight)),
        "minmax": lambda: (values - values.min()) / (values.max() - values.min()),
        "robust": lambda: (values - middle) / (high - low),
        "none": lambda: values,
    }[scale]()
