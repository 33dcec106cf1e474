"""Colours of cells: from one hue through the ground to another, for light and dark pages."""

from __future__ import annotations

from functools import cache

from coterie.palette import as_rgb

STEPS = 10
# orange for what is high, purple for what is low, blue for shares: told apart without seeing red or green
HUES = {"light": ("#ffffff", "#b35806", "#542788", "#08519c"), "dark": ("#1a2029", "#f1a340", "#a58fd6", "#5aa9e6")}


@cache
def shades_css() -> str:
    """Rules for cells .z-10 … .z10 and .s0 … .s10, with text that is readable on them."""
    dark = "".join(_rules(*HUES["dark"]))
    return f"{''.join(_rules(*HUES['light']))}@media (prefers-color-scheme: dark) {{\n@media screen {{\n{dark}}}\n}}\n"


def _rules(ground: str, high: str, low: str, share: str) -> list[str]:
    found = [_rule(f"z{step}", ground, high if step > 0 else low, abs(step)) for step in range(-STEPS, STEPS + 1)]
    return [*found, *(_rule(f"s{step}", ground, share, step) for step in range(STEPS + 1))]


def _rule(name: str, ground: str, hue: str, step: int) -> str:
    a, b = as_rgb([ground, hue])
    part = 0.06 + 0.94 * step / STEPS if step else 0.0
    mixed = (1 - part) * a + part * b
    fill = "#" + "".join(f"{round(255 * value):02x}" for value in mixed)
    text = "#000000" if _light(mixed) > 0.1791 else "#ffffff"  # where both have the same contrast
    return f".chart .{name} rect {{ fill: {fill}; }} .chart .{name} text {{ fill: {text}; }}\n"


def _light(rgb: object) -> float:
    """Relative luminance, by which contrast is measured (WCAG 2)."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]  # type: ignore[attr-defined]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
