"""The texts that have a category, in forms that SQL, ONNX and plain Python can compare.

The rule is that of `preparation/category_meaning.py`. A number is compared by its key: its text without the zeros at
the end of a fraction, so that all texts of a number have a few keys. ``2.00`` has the key ``2.``, ``1e+05`` is a key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import product

from coterie.errors import ParameterError
from coterie.exports.prediction_rule import Indicator
from coterie.preparation.category_meaning import BLANKS, meaning

# Values that Polars, databases and Python write in different ways: infinity, and times with fractions of seconds.
DIFFERENT = re.compile(r"-?inf|.*\d\d:\d\d:\d\d\.\d+", re.DOTALL)


def check_category(column: str, category: str) -> None:
    """Reject a category that the place where an export runs can write in another way."""
    if DIFFERENT.fullmatch(category):
        raise ParameterError(
            f"column {column!r} has the category {category!r}, which databases write in other ways: convert the column "
            "to text or dates before the fit, or use coterie predict."
        )


def number_forms(value: Decimal) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Forms of a number: mantissas, without zeros at the end of a fraction, each followed by any of the exponents."""
    if value == 0:
        return ((("0", "0.", "-0", "-0."), ("",)),)
    whole, _, fraction = f"{abs(value):f}".partition(".")
    fraction, sign = fraction.rstrip("0"), "-" * (value < 0)
    digits = (whole + fraction).strip("0")
    power = len(whole) - 1 if whole != "0" else len(fraction.lstrip("0")) - len(fraction) - 1
    signs = ("", "+", "-")[: 2 + (power == 0)] if power >= 0 else ("-",)
    exponents = tuple(
        f"e{each}{size}" for each in signs for size in dict.fromkeys((f"{abs(power)}", f"{abs(power):02}"))
    )
    return ((_mantissas(sign + whole, fraction), ("",)), (_mantissas(sign + digits[0], digits[1:]), exponents))


def _mantissas(whole: str, fraction: str) -> tuple[str, ...]:
    return (f"{whole}.{fraction}",) if fraction else (whole, f"{whole}.")


def number_keys(value: Decimal) -> tuple[str, ...]:
    """All keys of a number."""
    return tuple(map("".join, (pair for form in number_forms(value) for pair in product(*form))))


def pattern(category: str, is_exact: bool) -> str:
    """A regular expression (RE2) of all texts that have the category; blanks around a text are part of it."""
    value = meaning(category)
    if is_exact:
        return _literal(category)
    if isinstance(value, str):
        return _surrounded(_literal(value))
    words = ["[Tt][Rr][Uu][Ee]"] * (value == 1) + ["[Ff][Aa][Ll][Ss][Ee]"] * (value == 0)
    for mantissas, exponents in number_forms(value):
        zeros = [_literal(each) + ("0+" if each.endswith(".") else "0*" * ("." in each)) for each in mantissas]
        powers = [_literal(each).replace("e", "[eE]") for each in exponents]
        words.append(f"({'|'.join(zeros)})({'|'.join(powers)})")
    return _surrounded("|".join(words))


def lookups(categories: Sequence[Indicator]) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Positions of categories by their exact texts, by texts without blanks around them, and by keys of numbers."""
    exact, texts, numbers = dict[str, int](), dict[str, int](), dict[str, int]()
    for j, each in enumerate(categories):
        value = meaning(each.value)
        if each.is_exact:
            exact[each.value] = j
        elif isinstance(value, str):
            texts[value] = j
        else:
            numbers |= dict.fromkeys(number_keys(value), j)
    return exact, texts, numbers


def missing_words() -> tuple[str, ...]:
    """The texts that mean a missing value in a column of categories, in lower case without blanks around them."""
    from coterie.data.tables.written_numbers import MISSING_WORDS

    return MISSING_WORDS


def missing_pattern() -> str:
    """A regular expression of these texts."""
    return f"(?i:{_surrounded('|'.join(map(_literal, missing_words())))})"


def _surrounded(pattern: str) -> str:
    return f"[{BLANKS}]*({pattern})[{BLANKS}]*"


def _literal(text: str) -> str:
    return re.sub(r"[][\\.*+?(){}|^$]", lambda match: f"\\{match.group()}", text)
