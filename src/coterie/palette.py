"""Colours of clusters that are distinguishable with colour blindness, also by lightness."""

import numpy as np

from coterie.core.arrays import Array

INK, MARK, FAINT = "#33415c", "#d1495b", "#c9ced6"  # these differ in lightness, too
NOISE = "#9aa1ab"  # rows in no cluster
OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c7a00", "#5b3a8c")
TURN = 0.381966  # share of the hue circle between generated colours (golden section): far from all earlier hues


def colours(k: int) -> list[str]:
    """Return `k` colours as '#rrggbb'.

    The first ones are those of Okabe and Ito, with yellow and black replaced for white backgrounds. Further colours
    have hues at distances of a golden section, with three levels of lightness in turn.

    Examples
    --------
    >>> from coterie.palette import colours
    >>> colours(2)
    ['#0072b2', '#e69f00']
    """
    generated = [_generate(i) for i in range(max(0, k - len(OKABE_ITO)))]
    return [*OKABE_ITO[:k], *generated]


def as_rgb(names: list[str]) -> Array:
    """Convert colours '#rrggbb' to numbers from 0 to 1 (k, 3)."""
    values = [[int(name[i : i + 2], 16) / 255 for i in (1, 3, 5)] for name in names]
    return np.array(values, dtype=np.float64).reshape(-1, 3)


def luminance(rgb: Array) -> Array:
    """Return the relative luminance of colours (..., 3) from 0 to 1, from which contrast is computed (WCAG 2)."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    result: Array = linear @ np.array([0.2126, 0.7152, 0.0722])
    return result


def blends(shares: Array, names: list[str]) -> Array:
    """Mix colours by shares (m, k) and return (m, 3); light is mixed, not sRGB values, which would be too dark."""
    light = shares @ as_rgb(names) ** 2.2
    mixed: Array = np.clip(light, 0.0, 1.0) ** (1 / 2.2)
    return mixed


def _generate(i: int) -> str:
    hue, lightness = (0.08 + i * TURN) % 1.0, (0.42, 0.62, 0.52)[i % 3]
    return _from_oklch(lightness, 0.11, 2 * np.pi * hue)


def _from_oklch(lightness: float, chroma: float, angle: float) -> str:
    """Convert Oklch, the polar form of Oklab (Björn Ottosson 2020, perceptually uniform), to sRGB."""
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
