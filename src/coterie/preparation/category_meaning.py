"""What the text of a category means, so that it is the same value however a file writes it.

A cell has a category if both mean the same: blanks around a text do not count, 1, 1.0 and 1e0 are one number, and true
and false, in any case, are 1 and 0. Predictions and exports (`exports/category_texts.py`) follow this rule.
"""

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

BLANKS = " \t\r\n\u00a0"
# Codes like 007 are no numbers. With an exponent there is one digit before the point, as computers write it.
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?|-?[1-9](\.\d+)?[eE][+-]?(0?\d|[1-9]\d\d?)", re.ASCII)
TRUTH_VALUES = {"true": Decimal(1), "false": Decimal(0)}


def by_meaning(categories: Sequence[str]) -> dict[Decimal | str, str]:
    """Categories by their meaning; those that share it have their exact texts only, and are left out."""
    counts = Counter(map(meaning, categories))
    return {meaning(category): category for category in categories if counts[meaning(category)] == 1}


def meaning(text: str) -> Decimal | str:
    """The number or truth value that a text means, or the text without blanks around it."""
    text = text.strip(BLANKS)
    if NUMBER.fullmatch(text):
        return Decimal(text)
    return TRUTH_VALUES.get(text.lower(), text)
