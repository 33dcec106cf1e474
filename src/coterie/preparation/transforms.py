"""Transforms of skewed columns: logarithm and square root."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.errors import ParameterError
from coterie.preparation.scaling import Matrix, Vector, blocks, quantiles

MIN_ROWS = 50
MIN_SKEWNESS = 2.0  # that of an exponential distribution, whose logarithm is also skewed
MAX_SKEWNESS = 1.0  # after the transform
MAX_FIRST = 3.0  # smallest value above zero, if there are zeros
MIN_RATIO = 30.0  # of the quantiles 97.5 % and 2.5 %: values extend over more than one order of magnitude


@dataclass(frozen=True)
class Transform:
    """A function of the values of a column, and the values that it accepts."""

    forward: Callable[[Vector], Vector]
    minimum: float
    is_open: bool  # whether the minimum itself is not accepted
    title: str

    def is_valid(self, values: Vector) -> NDArray[np.bool_]:
        """Mask of values that the function accepts; missing values are accepted."""
        is_low = values <= self.minimum if self.is_open else values < self.minimum
        return np.logical_not(is_low)


TRANSFORMS = {
    "log": Transform(np.log, 0.0, True, "logarithm"),
    "log1p": Transform(np.log1p, -1.0, True, "logarithm of 1 + x"),
    "sqrt": Transform(np.sqrt, 0.0, False, "square root"),
}
NO_TRANSFORM = "none"


def parse_transforms(texts: Sequence[str]) -> dict[str, str]:
    """``log:amount`` as ``{"amount": "log"}``."""
    result = {}
    for text in texts:
        name, colon, column = text.partition(":")
        if not colon or not column.strip() or name not in (*TRANSFORMS, NO_TRANSFORM):
            names = ", ".join((*TRANSFORMS, NO_TRANSFORM))
            raise ParameterError(f'--transform takes pairs such as log:amount, not "{text}". Transforms: {names}.')
        result[column.strip()] = name
    return result


def apply_transforms(X: Matrix, transforms: dict[int, str]) -> None:
    """Transform columns of `X`, in place."""
    for block in blocks(X) if transforms else ():
        for j, name in transforms.items():
            block[:, j] = TRANSFORMS[name].forward(block[:, j].astype(np.float64))


def first_invalid(X: Matrix, j: int, name: str) -> int | None:
    """The first row whose value in column `j` the transform does not accept."""
    start = 0
    for block in blocks(X):
        is_invalid = ~TRANSFORMS[name].is_valid(block[:, j])
        if is_invalid.any():
            return start + int(np.argmax(is_invalid))
        start += len(block)
    return None


def choose_transform(column: Vector, minimum: float, weight: Vector | None = None) -> str | None:
    """The logarithm, if a column is positive, strongly skewed and spread over orders of magnitude, and its logarithm is
    nearly symmetric; None otherwise. With zeros it is that of 1 + x, if the smallest other value is about 1.

    `column` may be a sample; `minimum` is that of all rows.
    """
    values = np.asarray(column, dtype=np.float64)
    mask = ~np.isnan(values) if weight is None else ~np.isnan(values) & (weight > 0)
    values, mass = values[mask], None if weight is None else weight[mask]
    if len(values) < MIN_ROWS or minimum < 0 or not np.isfinite(values).all():
        return None
    name = "log" if minimum > 0 else "log1p"
    # 1 + x would hide values far below 1, and leave a gap between zero and values far above.
    if name == "log1p" and not 1 <= values[values > 0].min(initial=np.inf) <= MAX_FIRST:
        return None
    offset = 0.0 if name == "log" else 1.0
    low, high = quantiles(values[:, np.newaxis], [0.025, 0.975], mass)[:, 0]
    if (high + offset) / (low + offset) < MIN_RATIO:
        return None
    before, after = skewness(values, mass), skewness(TRANSFORMS[name].forward(values), mass)
    return name if before >= MIN_SKEWNESS and abs(after) <= min(MAX_SKEWNESS, before / 3) else None


def skewness(values: Vector, weight: Vector | None = None) -> float:
    """The third standardised moment; 0 for constant values."""
    values = np.ldexp(values, -np.frexp(np.abs(values).max(initial=0.0))[1])
    differences = values - np.average(values, weights=weight)
    differences = np.ldexp(differences, -np.frexp(np.abs(differences).max(initial=0.0))[1])  # squares do not underflow
    variance = np.average(differences**2, weights=weight)
    if variance == 0:
        return 0.0
    return float(np.average((differences / np.sqrt(variance)) ** 3, weights=weight))


def feature_name(name: str, transform: str | None) -> str:
    """``log(amount)``: the name of a transformed column, for an axis in its units."""
    if transform is None:
        return name
    return f"log(1 + {name})" if transform == "log1p" else f"{transform}({name})"
