"""Series of any lengths, of one or several channels, as a user has them and as kernels want them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.core.errors import InputError
from coterie.core.stored import stored
from coterie.data import opened
from coterie.data.frames import frame_to_array, is_frame

Array = np.ndarray[Any, Any]


def _is_consistent(series: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether each series lies within the values."""
    start, length = series["start"], series["length"]
    return bool((start >= 0).all() and (length > 0).all() and (start <= len(series["values"]) - length).all())


@stored("series.Series", check=_is_consistent, values="real * *", start="integer n", length="integer n")
@dataclass(frozen=True, eq=False)
class Series:
    """Series i is ``values[start[i] : start[i] + length[i]]``; slices and rows taken by number share the values."""

    values: Array  # (moments, channels) C-ordered, read-only
    start: Array  # (n,)
    length: Array  # (n,)

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: Any) -> Series:
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
        """The length of the longest series; 0 where there is none."""
        return int(self.length.max(initial=0))

    def astype(self, dtype: Any) -> Series:
        return self if self.dtype == dtype else replace(self, values=_read(self.values.astype(dtype)))

    def times_power(self, exponent: int) -> Series:
        """All values times 2^exponent."""
        return self if exponent == 0 else replace(self, values=_read(np.ldexp(self.values, exponent)))

    def table(self) -> Array:
        """One row a series (n, longest x channels), moment after moment, NaN after its end."""
        longest, channels = self.longest, self.channels
        if (self.length == longest).all() and (np.diff(self.start) == longest).all():
            first = int(self.start[0])
            return self.values[first : first + len(self) * longest].reshape(len(self), -1)
        table = np.full((len(self), longest, channels), np.nan, self.dtype)
        for i in range(len(self)):
            table[i, : self.length[i]] = self(i)
        return table.reshape(len(self), -1)


def from_table(X: Array, channels: int) -> Series:
    """The rows of a table as `Series.table` makes it, known to be good."""
    n, longest = len(X), X.shape[1] // channels
    values = X.reshape(n * longest, channels)
    first = values[:, 0].reshape(n, longest)
    return Series(_read(values), np.arange(n) * longest, _lengths(np.isnan(first)))


def as_series(X: Any, name: str = "X") -> Series:
    """What a user has: series in a list, in the rows of a table, or in an array (n, length, channels).

    Shorter series of a table or array end in NaN. float32 stays float32 if all of them are.
    """
    X = opened(X)
    if is_frame(X):
        X = frame_to_array(X)[0]
    if hasattr(X, "__dask_graph__"):
        raise InputError(f"{name} is a Dask array: distances need series in memory; {name}.compute() makes them so")
    if isinstance(X, np.ndarray) and X.dtype != object:
        return _from_array(X, name)
    try:
        given = list(X)
    except TypeError:
        raise InputError(f"{name} must be a list of series, or an array with a series a row; got {X!r}") from None
    if not given:
        raise InputError(f"{name} has no series: at least one is needed")
    if all(np.ndim(x) == 0 for x in given):
        raise InputError(f"{name} is one series, where several are expected: pass [{name}]")
    return joined([one_series(x, f"{name}[{i}]") for i, x in enumerate(given)], name)


def one_series(x: Any, name: str) -> Array:
    """One series as (length, channels): finite numbers, without the NaN it may end in."""
    try:
        values = np.asarray(x)
        values = values if values.dtype == np.float32 else values.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers: a series (length,) or (length, channels)") from None
    if values.ndim not in (1, 2):
        raise InputError(f"{name} must be a series (length,) or (length, channels); its shape is {values.shape}")
    values = values.reshape(len(values), -1) if values.size else np.empty((0, 1), values.dtype)
    values = values[: int(_lengths(np.isnan(values).all(axis=1)[None])[0])] if len(values) else values
    if len(values) == 0:
        raise InputError(f"{name} is empty: a series has at least one value")
    _check_finite(values[None], np.array([len(values)]), lambda i: name)
    return np.ascontiguousarray(values)


def joined(parts: list[Array], name: str = "X") -> Series:
    """Series (length, channels) one after the other."""
    channels = [part.shape[1] for part in parts]
    odd = next((i for i, count in enumerate(channels) if count != channels[0]), None)
    if odd is not None:
        raise InputError(
            f"{name}[{odd}] has {channels[odd]} channels and {name}[0] has {channels[0]}: all need the same"
        )
    length = np.array([len(part) for part in parts], np.int64)
    return Series(_read(np.concatenate(parts)), np.cumsum(length) - length, length)


def same_channels(A: Series, B: Series, names: tuple[str, str] = ("X", "Y")) -> None:
    if A.channels != B.channels:
        raise InputError(f"{names[0]} has {A.channels} channels and {names[1]} has {B.channels}: both need the same")


def _from_array(X: Array, name: str) -> Series:
    if X.ndim not in (2, 3):
        remedy = f": pass [{name}] if it is one series" if X.ndim == 1 else ""
        raise InputError(f"{name} must be (n, length) or (n, length, channels); its shape is {X.shape}{remedy}")
    if X.dtype.kind not in "fiub":
        raise InputError(f"{name} holds values that are not numbers ({X.dtype}): convert them first")
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
            raise InputError(f"{name}[{empty[0]}] is empty (NaN alone): a series has at least one value")
        _check_finite(values, length, lambda i: f"{name}[{i}]")
    return Series(_read(values.reshape(n * longest, channels)), np.arange(n) * longest, length)


def _lengths(gone: Array) -> Array:
    """How long series are, of which `gone` (n, longest) says where there is nothing."""
    longest = gone.shape[1]
    last = np.argmin(gone[:, ::-1], axis=1)
    return np.where(gone[np.arange(len(gone)), longest - 1 - last], 0, longest - last)


def _check_finite(values: Array, length: Array, called: Any) -> None:
    inside = np.arange(values.shape[1]) < length[:, None]
    bad = ~np.isfinite(values).all(axis=2) & inside
    if bad.any():
        i, t = np.argwhere(bad)[0]
        what = "infinity" if np.isinf(values[i, t]).any() else "NaN"
        remedy = "clip it" if what == "infinity" else "fill it in (only the end of a series may be NaN: padding)"
        raise InputError(f"{called(i)} contains {what} at moment {t}: {remedy}, or drop that series")


def _read(values: Array) -> Array:
    """A read-only view: writable and read-only arrays are different types to the compiler, one is enough."""
    view = values.view(np.ndarray)
    view.setflags(write=False)
    return view
