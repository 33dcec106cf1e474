"""Arrays as text: base64 of little-endian whole numbers, which a browser reads as they are."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np

from coterie.core.errors import ParameterError

Array = np.ndarray[Any, Any]

STEPS = 65535  # a box is as many steps wide and high


def box_of(*points: Any, margin: float = 0.04) -> list[float]:
    """Where points (m, 2) lie, and a little more: lowest and highest x, lowest and highest y.

    Examples
    --------
    >>> from coterie.web import box_of
    >>> box_of([[0.0, 1.0], [10.0, 1.0]], margin=0.1)
    [-1.0, 11.0, 0.9, 1.1]
    """
    every = np.concatenate([np.asarray(some, dtype=np.float64).reshape(-1, 2) for some in points])
    if len(every) == 0 or not np.isfinite(every).all():
        raise ParameterError("points must be finite, and one of them at least")
    return [bound for values in every.T for bound in span(values, margin)]


def span(values: Any, margin: float = 0.04) -> tuple[float, float]:
    """The lowest and the highest of values, and a share of their distance more; never of no width."""
    low, high = float(np.min(values)), float(np.max(values))
    more = margin * (high - low) or margin * abs(low) or 1.0
    return low - more, high + more


def pack_values(values: Any, low: float, high: float) -> str:
    """Numbers as steps of 1/65535 of the way from `low` to `high`; what lies outside lies on the edge.

    Examples
    --------
    >>> from coterie.web import pack_values, unpack_values
    >>> text = pack_values([0.0, 0.5, 1.0], 0.0, 1.0)
    >>> len(text), unpack_values(text, 0.0, 1.0).round(3).tolist()
    (8, [0.0, 0.5, 1.0])
    """
    return _text(_steps(values, low, high))


def unpack_values(text: str, low: float, high: float) -> Array:
    """What `pack_values` packed, to half a step."""
    return low + np.frombuffer(b64decode(text), "<u2") / STEPS * (high - low)


def pack_points(points: Any, box: Any) -> str:
    """Points (m, 2) as pairs of steps within a box [x0, x1, y0, y1]."""
    given = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    x0, x1, y0, y1 = box
    return _text(np.stack([_steps(given[:, 0], x0, x1), _steps(given[:, 1], y0, y1)], axis=1))


def unpack_points(text: str, box: Any) -> Array:
    """What `pack_points` packed (m, 2), to half a step."""
    x0, x1, y0, y1 = box
    steps = np.frombuffer(b64decode(text), "<u2").reshape(-1, 2) / STEPS
    points: Array = np.array([x0, y0]) + steps * np.array([x1 - x0, y1 - y0])
    return points


def pack_labels(labels: Any, k: int) -> str:
    """Labels of `k` clusters, a byte each below 255 clusters, else two; -1 is the largest number there is.

    Examples
    --------
    >>> from coterie.web import pack_labels, unpack_labels
    >>> unpack_labels(pack_labels([0, 2, -1], 3), 3).tolist()
    [0, 2, -1]
    """
    given, dtype = np.asarray(labels), _label_type(k)
    if given.size and not (int(given.min()) >= -1 and int(given.max()) < k):
        raise ParameterError(f"labels must be of -1 .. {k - 1}; got {given.min()} .. {given.max()}")
    return _text(np.where(given < 0, np.iinfo(dtype).max, given).astype(dtype))


def unpack_labels(text: str, k: int) -> Array:
    """What `pack_labels` packed."""
    dtype = _label_type(k)
    codes = np.frombuffer(b64decode(text), dtype)
    return np.where(codes == np.iinfo(dtype).max, -1, codes.astype(np.int64))


def pack_rgb(colours: Any) -> str:
    """Colours (m, 3) from 0 to 1, three bytes each."""
    given = np.asarray(colours, dtype=np.float64).reshape(-1, 3)
    if not np.isfinite(given).all():
        raise ParameterError("colours must be finite numbers from 0 to 1")
    return _text(np.rint(np.clip(given, 0.0, 1.0) * 255).astype(np.uint8))


def unpack_rgb(text: str) -> Array:
    """What `pack_rgb` packed (m, 3)."""
    return np.frombuffer(b64decode(text), np.uint8).reshape(-1, 3) / 255


def pack_counts(places: Any, counts: Any) -> str:
    """Counts above 0 at rising places, those between them being 0.

    A stream of numbers, of 7 bits a byte, the lowest first, and the eighth bit where another byte follows: the count of
    one place after the other; 0 is followed by how many places without any there are.

    Examples
    --------
    >>> from coterie.web import pack_counts, unpack_counts
    >>> unpack_counts(pack_counts([0, 1, 500], [3, 1000, 1]))
    (array([  0,   1, 500]), array([   3, 1000,    1]))
    """
    where, many = np.asarray(places, dtype=np.int64), np.asarray(counts, dtype=np.int64)
    gaps = np.diff(where, prepend=-1) - 1
    if len(where) != len(many) or (gaps < 0).any() or (many < 1).any():
        raise ParameterError("places must rise from 0, each with a count above 0")
    numbers = np.stack([np.zeros_like(gaps), gaps, many], axis=1)
    return _text(_as_bytes(numbers[np.stack([gaps > 0, gaps > 0, many > 0], axis=1)]))


def unpack_counts(text: str) -> tuple[Array, Array]:
    """Places and counts that `pack_counts` packed."""
    numbers = _from_bytes(np.frombuffer(b64decode(text), np.uint8)).tolist()
    places, counts, place, i = [], [], 0, 0
    while i < len(numbers):
        if numbers[i] == 0:
            place, i = place + numbers[i + 1], i + 2
        places.append(place)
        counts.append(numbers[i])
        place, i = place + 1, i + 1
    return np.array(places, dtype=np.int64), np.array(counts, dtype=np.int64)


def _as_bytes(numbers: Array) -> Array:
    """Numbers from 0 up, of 7 bits a byte."""
    limbs = numbers[:, None] >> (7 * np.arange(9))
    more = np.zeros(limbs.shape, bool)
    more[:, :-1] = limbs[:, 1:] > 0
    kept = limbs > 0
    kept[:, 0] = True
    return ((limbs & 127) | (more << 7)).astype(np.uint8)[kept]


def _from_bytes(raw: Array) -> Array:
    last = raw < 128
    number: Array = np.cumsum(last) - last
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    limb = np.arange(len(raw)) - starts[number]
    return np.bincount(number, (raw & 127) * 128.0**limb).astype(np.int64)


def _steps(values: Any, low: float, high: float) -> Array:
    given = np.asarray(values, dtype=np.float64)
    if not np.isfinite(given).all() or not high > low:
        raise ParameterError(f"values must be finite, and low < high; got {low} and {high}")
    return np.rint(np.clip((given - low) / (high - low), 0.0, 1.0) * STEPS).astype("<u2")


def _label_type(k: int) -> Any:
    if not 0 <= k < STEPS:
        raise ParameterError(f"a picture shows at most {STEPS - 1} clusters; got {k}")
    return np.dtype(np.uint8) if k < 255 else np.dtype("<u2")


def _text(array: Array) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
