"""Formatting of names and numbers in pages."""

import re
import unicodedata
from collections.abc import Sequence

from coterie.report.text.layout import MINUS, count, number, signed, two_places

__all__ = ["compact", "count", "joined", "number", "percent", "short_name", "signed", "text_width", "two_places"]

# Characters that are invisible, or that change the direction of the text
INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
WIDTHS = {
    "narrow": 0.37,
    "small": 0.62,
    "large": 0.76,
    "wide": 1.05,
}  # relative to the font size, for a wide font
NARROW = frozenset("ijl.,:;'|!()[]{} ")


def short_name(text: object, max_length: int = 40) -> str:
    """A name from a table on one line, cut at `max_length`, without invisible characters."""
    line = " ".join(INVISIBLE.sub("", str(text)).split()) or "(no name)"
    return line if len(line) <= max_length else line[: max_length - 1] + "…"


def text_width(text: str, size: float = 12.0) -> float:
    """Approximate width of a text, in the units of `size`, the height of its characters."""
    return size * sum(WIDTHS[_width_class(letter)] for letter in text)


def percent(share: float | None, places: int = 1) -> str:
    return "–" if share is None else f"{100 * share:.{places}f}%"


def compact(value: float | None) -> str:
    """A number for a table cell: three digits, with the suffixes k, M, G and T for large values."""
    if value is None:
        return "–"
    size = abs(value)
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            scale = 1e3 if name == "k" else unit
            return f"{value / scale:.3g}{name}".replace("-", MINUS)
    text = f"{value:,.0f}" if size >= 1000 else f"{value:.3g}"
    return text.replace("-", MINUS)


def joined(words: Sequence[str]) -> str:
    """The words as a list in a sentence: ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def _width_class(letter: str) -> str:
    if unicodedata.east_asian_width(letter) in "WF":
        return "wide"
    if letter in NARROW or unicodedata.combining(letter):
        return "narrow"
    return "large" if letter.isupper() or letter in "mw%—…+=<>−" else "small"
