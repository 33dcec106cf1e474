"""Ticks of an axis at round numbers."""

import math

import numpy as np


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Return about `count` round numbers from `low` to `high`, in steps of 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> from coterie.web import ticks
    >>> ticks(-0.3, 10.2)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return [low] if math.isfinite(low) else []
    rough = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((power * m for m in (1, 2, 5, 10)), key=lambda size: abs(math.log(size / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last - first > 10 * count:  # steps are smaller than rounding errors
        return [low, high]
    return [float(f"{i * step:.12g}") + 0.0 for i in range(first, last + 1)]


def tick_texts(values: list[float]) -> list[str]:
    """Format the numbers of an axis with as many decimals as their steps need, and thousands separators.

    Examples
    --------
    >>> from coterie.web import tick_texts
    >>> tick_texts([0.0, 0.5, 1.0]), tick_texts([0.0, 20000.0]), tick_texts([0.0, 2e7])
    (['0.0', '0.5', '1.0'], ['0', '20,000'], ['0', '20M'])
    """
    steps = np.diff(values) if len(values) > 1 else np.abs(values)
    step, largest = float(np.min(np.abs(steps), initial=np.inf)), float(np.max(np.abs(values), initial=0.0))
    if not 0 < step < math.inf:
        step = 1.0
    for size, letter in ((1e9, "G"), (1e6, "M")):
        if step >= size / 1000 and size <= largest < 1000 * size:
            return [_decimals(value / size, step / size) + letter if value else "0" for value in values]
    if largest >= 1e9 or largest < 1e-4:
        return [f"{value:.4g}".replace("-", "−") for value in values]
    return [_decimals(value, step) for value in values]


def _decimals(value: float, step: float) -> str:
    digits = next((d for d in range(9) if abs(round(step, d) - step) < 1e-6 * step), 9)
    return f"{value:,.{digits}f}".replace("-", "−")
