"""Time series of any lengths with one or several channels: conversion of user input to the layout of the kernels."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.data import opened
from coterie.data.frames import frame_to_array, is_frame
from coterie.errors import InputError


def _is_consistent(series: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether each series is within the bounds of the values."""
    start, length = series["start"], series["length"]
    return bool((start >= 0).all() and (length > 0).all() and (start <= len(series["values"]) - length).all())


@stored("series.Series", check=_is_consistent, values="real * *", start="integer n", length="integer n")
@dataclass(frozen=True, eq=False)
class Series:
    """Series in one array: series i is ``values[start[i] : start[i] + length[i]]``; subsets share the values."""

    values: Array  # (time points of all series, channels) C-ordered, read-only
    start: Array  # (n,)
    length: Array  # (n,)

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: Any) -> "Series":
        return replace(self, start=self.start[rows], length=self.length[rows])

    def __call__(self, i: int) -> Array:
        """Series i (length, channels)."""
        return self.values[self.start[i] : self.start[i] + self.length[i]]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def channels(self) -> int:
        return int(self.values.shape[1])

    @property
    def longest(self) -> int:
        """The length of the longest series; 0 if there is none."""
        return int(self.length.max(initial=0))

    def astype(self, dtype: Any) -> "Series":
        return self if self.dtype == dtype else replace(self, values=_read_only(self.values.astype(dtype)))

    def times_power(self, exponent: int) -> "Series":
        """All values times 2^exponent."""
        return self if exponent == 0 else replace(self, values=_read_only(np.ldexp(self.values, exponent)))

    def table(self) -> Array:
        """One row per series (n, longest x channels), time point after time point, NaN after its end."""
        longest, channels = self.longest, self.channels
        if (self.length == longest).all() and (np.diff(self.start) == longest).all():
            first = int(self.start[0])
            return self.values[first : first + len(self) * longest].reshape(len(self), -1)
        table = np.full((len(self), longest, channels), np.nan, self.dtype)
        for i in range(len(self)):
            table[i, : self.length[i]] = self(i)
        return table.reshape(len(self), -1)


def from_table(X: Array, channels: int) -> Series:
    """The series in a table that `Series.table` returned; the values are not checked."""
    n, longest = len(X), X.shape[1] // channels
    values = X.reshape(n * longest, channels)
    first = values[:, 0].reshape(n, longest)
    return Series(_read_only(values), np.arange(n) * longest, _lengths(np.isnan(first)))


def as_series(X: Any, name: str = "X") -> Series:
    """Convert a list of series, a table with one series per row, or an array (n, length, channels).

    Shorter series of a table or array end in NaN. If all series are float32, so is the result.
    """
    X = opened(X)
    if is_frame(X):
        X = frame_to_array(X)[0]
    if hasattr(X, "__dask_graph__"):
        raise InputError(f"{name} is a Dask array, but distances need all series in memory: pass {name}.compute()")
    if isinstance(X, np.ndarray) and X.dtype != object:
        return _from_array(X, name)
    try:
        items = list(X)
    except TypeError:
        raise InputError(f"{name} must be a list of series, or an array with one series per row; got {X!r}") from None
    if not items:
        raise InputError(f"{name} has no series: pass at least one")
    if all(np.ndim(x) == 0 for x in items):
        raise InputError(f"{name} is one series, but several are expected: pass [{name}]")
    return concatenated([as_one_series(x, f"{name}[{i}]") for i, x in enumerate(items)], name)


def as_one_series(x: Any, name: str) -> Array:
    """Convert one series to an array (length, channels) of finite numbers; NaN at its end is removed."""
    try:
        values = np.asarray(x)
        values = values if values.dtype == np.float32 else values.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must contain numbers only, as an array (length,) or (length, channels)") from None
    if values.ndim not in (1, 2):
        raise InputError(f"{name} must be a series (length,) or (length, channels); its shape is {values.shape}")
    values = values.reshape(len(values), -1) if values.size else np.empty((0, 1), values.dtype)
    values = values[: int(_lengths(np.isnan(values).all(axis=1)[None])[0])] if len(values) else values
    if len(values) == 0:
        raise InputError(f"{name} is empty: a series needs at least one value")
    _check_finite(values[None], np.array([len(values)]), lambda i: name)
    return np.ascontiguousarray(values)


def concatenated(parts: list[Array], name: str = "X") -> Series:
    """Concatenate series (length, channels)."""
    channels = [part.shape[1] for part in parts]
    i = next((i for i, count in enumerate(channels) if count != channels[0]), None)
    if i is not None:
        raise InputError(
            f"{name}[{i}] has {channels[i]} channels and {name}[0] has {channels[0]}: all series need the same number"
        )
    length = np.array([len(part) for part in parts], np.int64)
    return Series(_read_only(np.concatenate(parts)), np.cumsum(length) - length, length)


def check_same_channels(A: Series, B: Series, names: tuple[str, str] = ("X", "Y")) -> None:
    if A.channels != B.channels:
        raise InputError(
            f"{names[0]} has {A.channels} channels and {names[1]} has {B.channels}: both need the same number"
        )


def _from_array(X: Array, name: str) -> Series:
    if X.ndim not in (2, 3):
        remedy = f": pass [{name}] if it is one series" if X.ndim == 1 else ""
        raise InputError(f"{name} must be (n, length) or (n, length, channels); its shape is {X.shape}{remedy}")
    if X.dtype.kind not in "fiub":
        raise InputError(f"{name} contains values that are not numbers ({X.dtype}): convert them first")
    if 0 in X.shape:
        raise InputError(f"{name} has no values: its shape is {X.shape}")
    values = np.ascontiguousarray(X, np.float32 if X.dtype == np.float32 else np.float64)
    values = values.reshape(*values.shape[:2], -1)
    n, longest, channels = values.shape
    length = np.full(n, longest, np.int64)
    if not np.isfinite(values).all():
        length = _lengths(np.isnan(values).all(axis=2))
        empty = np.flatnonzero(length == 0)
        if len(empty):
            raise InputError(f"{name}[{empty[0]}] is empty (all values are NaN): a series needs at least one value")
        _check_finite(values, length, lambda i: f"{name}[{i}]")
        values = values[np.arange(longest) < length[:, None]]  # without NaN, which model files do not contain
        return Series(_read_only(values), np.cumsum(length) - length, length)
    return Series(_read_only(values.reshape(n * longest, channels)), np.arange(n) * longest, length)


def _lengths(missing: Array) -> Array:
    """The lengths of series, from a mask `missing` (n, longest) that is True after their ends."""
    longest = missing.shape[1]
    last = np.argmin(missing[:, ::-1], axis=1)
    return np.where(missing[np.arange(len(missing)), longest - 1 - last], 0, longest - last)


def _check_finite(values: Array, length: Array, name_of: Any) -> None:
    inside = np.arange(values.shape[1]) < length[:, None]
    mask = ~np.isfinite(values).all(axis=2) & inside
    if mask.any():
        i, t = np.argwhere(mask)[0]
        value = "infinity" if np.isinf(values[i, t]).any() else "NaN"
        remedy = "clip it" if value == "infinity" else "fill it in (NaN is allowed only after the end of a series)"
        raise InputError(f"{name_of(i)} contains {value} at time point {t}: {remedy}, or drop this series")


def _read_only(values: Array) -> Array:
    """A read-only view. Numba compiles kernels for writable and for read-only arrays separately; one is enough."""
    view = values.view(np.ndarray)
    view.setflags(write=False)
    return view
