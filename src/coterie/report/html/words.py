"""Names and numbers as a page shows them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from coterie.report.text.layout import MINUS, count, number, signed, two_places

__all__ = ["compact", "count", "listed", "number", "percent", "shown", "signed", "text_width", "two_places"]

UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")  # what changes the order of letters, or is none
WIDTHS = {"narrow": 0.37, "small": 0.62, "large": 0.76, "wide": 1.05}  # of letters, in heights of a wide font
NARROW = frozenset("ijl.,:;'|!()[]{} ")


def shown(text: object, most: int = 40) -> str:
    """A name from somebody's table on one line, of at most so many letters, that writes in no other direction."""
    line = " ".join(UNSEEN.sub("", str(text)).split()) or "(no name)"
    return line if len(line) <= most else line[: most - 1] + "…"


def text_width(text: str, size: float = 12.0) -> float:
    """About how wide a text is, in the units of `size`."""
    return size * sum(WIDTHS[_kind(letter)] for letter in text)


def percent(share: float | None, places: int = 1) -> str:
    return "–" if share is None else f"{100 * share:.{places}f}%"


def compact(value: float | None) -> str:
    """A number for a cell: three digits, thousands and millions as k and M."""
    if value is None:
        return "–"
    size = abs(value)
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            scale = 1e3 if name == "k" else unit
            return f"{value / scale:.3g}{name}".replace("-", MINUS)
    text = f"{value:,.0f}" if size >= 1000 else f"{value:.3g}"
    return text.replace("-", MINUS)


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def _kind(letter: str) -> str:
    if unicodedata.east_asian_width(letter) in "WF":
        return "wide"
    if letter in NARROW or unicodedata.combining(letter):
        return "narrow"
    return "large" if letter.isupper() or letter in "mw%—…+=<>−" else "small"
