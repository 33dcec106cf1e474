"""Arrays as text: base64 of little-endian integers, which a browser can read directly."""

from base64 import b64decode, b64encode
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.errors import ParameterError

STEPS = 65535  # number of steps of 16-bit coordinates


def box_of(*points: Any, margin: float = 0.04) -> list[float]:
    """Return the bounding box of points (m, 2) with a margin: minimum and maximum x, minimum and maximum y."""
    all_points = np.concatenate([np.asarray(part, dtype=np.float64).reshape(-1, 2) for part in points])
    if len(all_points) == 0 or not np.isfinite(all_points).all():
        raise ParameterError("points must be finite and contain at least one point")
    return [bound for values in all_points.T for bound in span(values, margin)]


def span(values: Any, margin: float = 0.04) -> tuple[float, float]:
    """Return the minimum and maximum of values, extended by a share `margin` of their range; never of zero width."""
    low, high = float(np.min(values)), float(np.max(values))
    padding = margin * (high - low) or margin * abs(low) or 1.0
    return low - padding, high + padding


def pack_values(values: Any, low: float, high: float) -> str:
    """Pack numbers as `value_steps`."""
    return _text(value_steps(values, low, high))


def value_steps(values: Any, low: float, high: float) -> Array:
    """Return numbers as 16-bit steps from `low` to `high`; the first and the last step are numbers outside only."""
    steps, values = _steps(values, low, high), np.asarray(values)
    is_inside = (values >= low) & (values <= high)
    return np.where(is_inside, np.clip(steps, 1, STEPS - 1), steps).astype("<u2")


def pack_points(points: Any, box: Any) -> str:
    """Pack points (m, 2) as pairs of steps in a box [x0, x1, y0, y1]."""
    xy = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    x0, x1, y0, y1 = box
    return _text(np.stack([_steps(xy[:, 0], x0, x1), _steps(xy[:, 1], y0, y1)], axis=1))


def unpack_points(text: str, box: Any) -> Array:
    """Return the points (m, 2) that `pack_points` packed, with an error of at most half a step."""
    x0, x1, y0, y1 = box
    steps = np.frombuffer(b64decode(text), "<u2").reshape(-1, 2) / STEPS
    return np.array([x0, y0]) + steps * np.array([x1 - x0, y1 - y0])


def pack_labels(labels: Any, k: int) -> str:
    """Pack labels of `k` clusters as `label_codes`."""
    return _text(label_codes(labels, k))


def label_codes(labels: Any, k: int) -> Array:
    """Return labels of `k` clusters as bytes if k < 255, else as 16-bit integers; -1 becomes the largest integer."""
    labels, dtype = np.asarray(labels), _label_type(k)
    if labels.size and not (int(labels.min()) >= -1 and int(labels.max()) < k):
        raise ParameterError(f"labels must be from -1 to {k - 1}; got {labels.min()} to {labels.max()}")
    return np.where(labels < 0, np.iinfo(dtype).max, labels).astype(dtype)


def unpack_labels(text: str, k: int) -> Array:
    """Return the labels that `pack_labels` packed."""
    dtype = _label_type(k)
    codes = np.frombuffer(b64decode(text), dtype)
    return np.where(codes == np.iinfo(dtype).max, -1, codes.astype(np.int64))


def pack_rgb(colours: Any) -> str:
    """Pack colours (m, 3) from 0 to 1, three bytes each."""
    rgb = np.asarray(colours, dtype=np.float64).reshape(-1, 3)
    if not np.isfinite(rgb).all():
        raise ParameterError("colours must be finite numbers from 0 to 1")
    return _text(np.rint(np.clip(rgb, 0.0, 1.0) * 255).astype(np.uint8))


def unpack_rgb(text: str) -> Array:
    """Return the colours (m, 3) that `pack_rgb` packed."""
    return np.frombuffer(b64decode(text), np.uint8).reshape(-1, 3) / 255


def pack_counts(places: Any, counts: Any) -> str:
    """Pack positive counts at ascending places; the counts at all other places are 0.

    The counts of consecutive places are written as integers of variable length: 7 bits per byte, the lowest first, and
    the eighth bit set if another byte follows. A 0 is followed by the number of places with count 0.
    """
    places, counts = np.asarray(places, dtype=np.int64), np.asarray(counts, dtype=np.int64)
    gaps = np.diff(places, prepend=-1) - 1
    if len(places) != len(counts) or (gaps < 0).any() or (counts < 1).any():
        raise ParameterError("places must ascend from 0, each with a count of at least 1")
    numbers = np.stack([np.zeros_like(gaps), gaps, counts], axis=1)
    return _text(_as_bytes(numbers[np.stack([gaps > 0, gaps > 0, counts > 0], axis=1)]))


def _as_bytes(numbers: Array) -> Array:
    """Encode non-negative integers with 7 bits per byte."""
    limbs = numbers[:, None] >> (7 * np.arange(9))
    has_next = np.zeros(limbs.shape, bool)
    has_next[:, :-1] = limbs[:, 1:] > 0
    is_used = limbs > 0
    is_used[:, 0] = True
    return ((limbs & 127) | (has_next << 7)).astype(np.uint8)[is_used]


def _steps(values: Any, low: float, high: float) -> Array:
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all() or not high > low:
        raise ParameterError(f"values must be finite and low < high; got low={low} and high={high}")
    return np.rint(np.clip((values - low) / (high - low), 0.0, 1.0) * STEPS).astype("<u2")


def _label_type(k: int) -> Any:
    if not 0 <= k < STEPS:
        raise ParameterError(f"a figure can show at most {STEPS - 1} clusters; got {k}")
    return np.dtype(np.uint8) if k < 255 else np.dtype("<u2")


def _text(array: Array) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
