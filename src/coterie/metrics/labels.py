"""Encode labels of any type as integers."""

from typing import Any, NamedTuple

import numpy as np

from coterie.core.arrays import Array
from coterie.data.tensors import as_array
from coterie.errors import InputError

NOISE = ("-1", "-1.0")


class Labels(NamedTuple):
    """Labels encoded as integers."""

    codes: Array  # (n,) from 0 to k - 1
    names: Array  # (k,) the distinct labels: sorted if they can be compared, else in the order of first appearance

    @property
    def k(self) -> int:
        return len(self.names)


def as_labels(labels: Any, name: str = "labels") -> Labels:
    """Encode `labels`, one hashable value for each row: an array, list, series or column of a frame."""
    values = _column(labels, name)
    if len(values) == 0:
        raise InputError(f"{name} is empty: pass one label for each row")
    _check_missing(values, name)
    if values.dtype.kind in "iu" and (dense := _encode_dense_integers(values)) is not None:
        return dense
    if values.dtype.kind == "O":
        return _encode_objects(values, name)
    names, codes = np.unique(values, return_inverse=True)
    return Labels(codes.ravel(), names)


def labels_of_rows(labels: Any, n: int) -> Labels:
    """Encode the labels of the `n` rows of X."""
    encoded = as_labels(labels)
    if len(encoded.codes) != n:
        raise InputError(f"labels has {len(encoded.codes)} entries and X has {n} rows: pass one label for each row")
    return encoded


def clusters_of_rows(labels: Any, n: int) -> tuple[Array, list[str]]:
    """The cluster of each of the `n` rows of X, and the names of the clusters; the label -1 means no cluster.

    Codes are indices of the names, and -1 for no cluster, as in other libraries.
    """
    codes, names = labels_of_rows(labels, n)
    texts = [str(name) for name in names]
    noise = next((j for j, text in enumerate(texts) if text in NOISE), None)
    if noise is not None:
        codes = np.where(codes == noise, -1, codes - (codes > noise))
        texts.pop(noise)
    return codes, texts


def check_several(labels: Labels) -> None:
    """Raise an error if there is only one cluster."""
    if labels.k < 2:
        raise InputError(f"labels are all {labels.names[0]!s}: this index compares clusters, and needs at least two")


def _column(labels: Any, name: str) -> Array:
    if isinstance(labels, list | tuple):
        return _from_list(labels)
    values: Array = np.asarray(as_array(labels))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        raise InputError(f"{name} must have one dimension, one label for each row; its shape is {values.shape}")
    return values


def _from_list(labels: Any) -> Array:
    """Convert a list to an array; labels of different types keep them, because 1 and '1' are different labels."""
    types = {type(label) for label in labels}
    is_uniform = len(types) == 1 or all(issubclass(kind, int | float | np.number | np.bool_) for kind in types)
    if is_uniform and not any(issubclass(kind, list | tuple | frozenset) for kind in types):
        values: Array = np.asarray(labels)
        if values.ndim == 1:
            return values
    values = np.empty(len(labels), object)
    for i, label in enumerate(labels):
        values[i] = tuple(label) if isinstance(label, list | np.ndarray) else label
    return values


def _check_missing(values: Array, name: str) -> None:
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype.kind in "mM":
        missing = np.isnat(values)
    elif values.dtype.kind == "O":
        missing = np.fromiter(map(_is_missing, values), bool, len(values))
    else:
        return
    if missing.any():
        raise InputError(
            f"{name} is missing (NaN or None) for {int(missing.sum())} rows, the first is row {int(missing.argmax())}: "
            "remove these rows, or use a separate label for them"
        )


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, float | np.floating) and bool(np.isnan(label))


def _encode_dense_integers(values: Array) -> Labels | None:
    """Encode by counting instead of sorting; None if the range of the integers is too large."""
    wide = values if values.itemsize == 8 else values.astype(np.int64)
    low = wide.min()
    if int(wide.max()) - int(low) > 4 * len(values) + 64:
        return None
    shifted = (wide - low).astype(np.int64)
    is_used = np.bincount(shifted) > 0
    return Labels((np.cumsum(is_used) - 1)[shifted], np.flatnonzero(is_used).astype(wide.dtype) + low)


def _encode_objects(values: Array, name: str) -> Labels:
    index: dict[Any, int] = {}
    try:
        codes = np.fromiter((index.setdefault(label, len(index)) for label in values), np.int64, len(values))
    except TypeError as error:
        raise InputError(f"{name} must be hashable values, such as strings or integers: {error}") from None
    names = np.empty(len(index), object)
    for label, code in index.items():
        names[code] = label
    try:
        order = np.array(sorted(range(len(index)), key=names.__getitem__))
    except TypeError:
        return Labels(codes, names)
    return Labels(np.argsort(order)[codes], names[order])
