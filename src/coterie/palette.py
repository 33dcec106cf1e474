"""Colours that can be told apart without seeing red or green, by lightness too."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

INK, MARK, FAINT = "#33415c", "#d1495b", "#c9ced6"  # told apart by lightness, too
NOISE = "#9aa1ab"  # rows in no cluster
OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c7a00", "#5b3a8c")
TURN = 0.381966  # of the circle of hues, from a generated colour to the next: as far from all before as can be


def colours(k: int) -> list[str]:
    """`k` colours as '#rrggbb': first those of Okabe and Ito (its yellow and black made fit for white paper), then hues
    a golden section apart, of three lightnesses in turn.

    Examples
    --------
    >>> from coterie.palette import colours
    >>> colours(2)
    ['#0072b2', '#e69f00']
    """
    made = [_generated(i) for i in range(max(0, k - len(OKABE_ITO)))]
    return [*OKABE_ITO[:k], *made]


def as_rgb(names: list[str]) -> Array:
    """Colours '#rrggbb' as numbers from 0 to 1 (k, 3)."""
    values = [[int(name[i : i + 2], 16) / 255 for i in (1, 3, 5)] for name in names]
    return np.array(values, dtype=np.float64).reshape(-1, 3)


def blends(shares: Array, names: list[str]) -> Array:
    """Mixed colours (m, 3), by shares (m, k): light adds up, not its code, so that halves are not darker than both."""
    light = shares @ as_rgb(names) ** 2.2
    mixed: Array = np.clip(light, 0.0, 1.0) ** (1 / 2.2)
    return mixed


def _generated(i: int) -> str:
    hue, lightness = (0.08 + i * TURN) % 1.0, (0.42, 0.62, 0.52)[i % 3]
    return _from_oklch(lightness, 0.11, 2 * np.pi * hue)


def _from_oklch(lightness: float, chroma: float, angle: float) -> str:
    """Björn Ottosson's Oklab (2020), in which equal steps look equal, as sRGB."""
    a, b = chroma * np.cos(angle), chroma * np.sin(angle)
    cones = np.array([0.3963377774 * a + 0.2158037573 * b, -0.1055613458 * a - 0.0638541728 * b, 0.0])
    cones[2] = -0.0894841775 * a - 1.2914855480 * b
    light = (lightness + cones) ** 3
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip(to_rgb @ light, 0.0, 1.0)
    coded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * value):02x}" for value in coded)
