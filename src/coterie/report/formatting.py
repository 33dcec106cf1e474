"""Formatting of numbers, names and tables in texts and pages."""

import re
import unicodedata

from coterie.core.formatting import truncate
from coterie.report.results import ClusterSummary, Trait

MINUS = "−"
NOTABLE_DEVIATION = 0.5  # smaller differences from the mean of all rows are not shown
# Characters that are invisible, or that change the direction of the text
INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
NARROW, LARGE = frozenset("ijl.,:;'|!()[]{} "), frozenset("mw%—…+=<>−")


def number(value: float | None) -> str:
    """Four significant digits, or an integer from 1000 to 10¹⁵; a dash for None."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    return text.replace("-", MINUS)


def two_places(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 2) + 0.0:.2f}".replace("-", MINUS)  # not −0.00


def signed(value: float) -> str:
    return f"{round(value, 1) + 0.0:+.1f}".replace("-", MINUS)


def percent(share: float | None, places: int = 1) -> str:
    return "–" if share is None else f"{100 * share:.{places}f}%"


def compact(value: float | None) -> str:
    """A number for a table cell: three digits, with the suffixes k, M, G and T for large values."""
    if value is None:
        return "–"
    for least, unit, name in ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / unit:.3g}{name}".replace("-", MINUS)
    return (f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}").replace("-", MINUS)


def trait_text(trait: Trait) -> str:
    """What sets a cluster apart in one column: standard deviations, or shares of categories."""
    if trait.share is None:
        date = "" if trait.date is None else f" (mean {trait.date})"
        return f"{trait.column} {signed(trait.deviation)} s.d.{date}"
    name = trait.column if trait.category is None else f"{trait.category[0]}: {trait.category[1]}"
    separator = ":" if trait.category is None else ""
    return f"{name}{separator} {percent(trait.share, 0)}, overall {percent(trait.overall, 0)}"


def without_traits(cluster: ClusterSummary) -> str:
    """What is said of a cluster whose means are near those of all rows."""
    is_described = cluster.rule is not None and cluster.rule.describes
    return "no single mean: see its rule" if is_described else f"no difference above {NOTABLE_DEVIATION} s.d."


def short_name(text: object, max_length: int = 40) -> str:
    """A name from a table on one line, cut at `max_length`, without invisible characters."""
    return truncate(" ".join(INVISIBLE.sub("", str(text)).split()) or "(no name)", max_length)


def text_width(text: str, size: float = 12.0) -> float:
    """Approximate width of a text, in the units of `size`, the height of its characters, for a wide font."""
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in NARROW or unicodedata.combining(letter):
        return 0.37
    return 0.76 if letter.isupper() or letter in LARGE else 0.62
