"""Labels of any kind as numbers from 0 up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.core.errors import InputError

Array = np.ndarray[Any, Any]


class Labels(NamedTuple):
    """Which of the different labels each row has."""

    codes: Array  # (n,) from 0 to k - 1
    names: Array  # (k,) the labels, sorted if they can be, else as they first appear

    @property
    def k(self) -> int:
        return len(self.names)


def as_labels(labels: Any, name: str = "labels") -> Labels:
    """`labels`, one of any hashable kind a row: an array, list, series or column of a frame."""
    values = _column(labels, name)
    if len(values) == 0:
        raise InputError(f"{name} is empty")
    _refuse_holes(values, name)
    if values.dtype.kind in "iu" and (dense := _of_dense_integers(values)) is not None:
        return dense
    if values.dtype.kind == "O":
        return _of_objects(values, name)
    names, codes = np.unique(values, return_inverse=True)
    return Labels(codes.ravel(), names)


def labels_of_rows(labels: Any, n: int) -> Labels:
    """Labels of the n rows of X."""
    found = as_labels(labels)
    if len(found.codes) != n:
        raise InputError(f"labels has {len(found.codes)} entries and X has {n} rows: every row needs one")
    return found


def check_several(labels: Labels) -> None:
    """Indices that compare clusters need two."""
    if labels.k < 2:
        raise InputError(f"labels are all {labels.names[0]!s}: this index compares clusters, and needs at least two")


def _column(labels: Any, name: str) -> Array:
    if isinstance(labels, list | tuple):
        return _from_list(labels)
    values: Array = np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        raise InputError(f"{name} must be one label for each row; its shape is {values.shape}")
    return values


def _from_list(labels: Any) -> Array:
    """A list of labels that are not all numbers or all text stays what it is: 1 and '1' are two labels."""
    kinds = {type(label) for label in labels}
    alike = len(kinds) == 1 or all(issubclass(kind, int | float | np.number | np.bool_) for kind in kinds)
    if alike and not any(issubclass(kind, list | tuple | frozenset) for kind in kinds):
        values: Array = np.asarray(labels)
        if values.ndim == 1:
            return values
    values = np.empty(len(labels), object)
    for i, label in enumerate(labels):
        values[i] = tuple(label) if isinstance(label, list | np.ndarray) else label
    return values


def _refuse_holes(values: Array, name: str) -> None:
    if values.dtype.kind == "f":
        gone = np.isnan(values)
    elif values.dtype.kind in "mM":
        gone = np.isnat(values)
    elif values.dtype.kind == "O":
        gone = np.fromiter(map(_is_missing, values), bool, len(values))
    else:
        return
    if gone.any():
        raise InputError(
            f"{name} is missing (NaN or None) for {int(gone.sum())} rows, the first row {int(gone.argmax())}: "
            "drop these rows, or give them a label of their own"
        )


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, float | np.floating) and bool(np.isnan(label))


def _of_dense_integers(values: Array) -> Labels | None:
    """By counting instead of sorting, where the numbers lie close together."""
    wide = values if values.itemsize == 8 else values.astype(np.int64)
    low = wide.min()
    if int(wide.max()) - int(low) > 4 * len(values) + 64:
        return None
    shifted = (wide - low).astype(np.int64)
    there = np.bincount(shifted) > 0
    return Labels((np.cumsum(there) - 1)[shifted], np.flatnonzero(there).astype(wide.dtype) + low)


def _of_objects(values: Array, name: str) -> Labels:
    index: dict[Any, int] = {}
    try:
        codes = np.fromiter((index.setdefault(label, len(index)) for label in values), np.int64, len(values))
    except TypeError as error:
        raise InputError(f"{name} must be labels that can be compared for equality, such as text: {error}") from None
    names = np.empty(len(index), object)
    for label, code in index.items():
        names[code] = label
    try:
        order = np.array(sorted(range(len(index)), key=names.__getitem__))
    except TypeError:
        return Labels(codes, names)
    return Labels(np.argsort(order)[codes], names[order])
