"""Colours of heatmap cells: diverging and sequential scales, for light and dark pages."""

from coterie.palette import as_rgb, luminance

STEPS = 10
# Background, high values, low values, shares. Orange, purple and blue also differ for people with colour blindness.
HUES = {"light": ("#ffffff", "#b35806", "#542788", "#08519c"), "dark": ("#1a2029", "#f1a340", "#a58fd6", "#5aa9e6")}


def cell_colours_css() -> str:
    """CSS rules for cells .z-10 … .z10 and .s0 … .s10, with a text colour of sufficient contrast."""
    dark = "".join(_rules(*HUES["dark"]))
    return f"{''.join(_rules(*HUES['light']))}@media (prefers-color-scheme: dark) {{\n@media screen {{\n{dark}}}\n}}\n"


def _rules(background: str, high: str, low: str, share: str) -> list[str]:
    diverging = [
        _rule(f"z{step}", background, high if step > 0 else low, abs(step)) for step in range(-STEPS, STEPS + 1)
    ]
    return [*diverging, *(_rule(f"s{step}", background, share, step) for step in range(STEPS + 1))]


def _rule(name: str, background: str, hue: str, step: int) -> str:
    a, b = as_rgb([background, hue])
    part = 0.06 + 0.94 * step / STEPS if step else 0.0
    mixed = (1 - part) * a + part * b
    fill = "#" + "".join(f"{round(255 * value):02x}" for value in mixed)
    text = "#000000" if luminance(mixed) > 0.1791 else "#ffffff"  # both have the same contrast there
    return f".chart .{name} rect {{ fill: {fill}; }} .chart .{name} text {{ fill: {text}; }}\n"
