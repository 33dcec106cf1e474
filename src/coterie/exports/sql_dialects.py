"""Databases that exported SQL is written for: their differences, names, texts and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

EXACT_DIGITS = 15  # length of decimal numbers up to which SQLite does not drop digits
LARGEST_INTEGER = 2**53


@dataclass(frozen=True)
class Dialect:
    """Differences of a database from the others."""

    name: str
    text: str  # type of text
    fence: str  # end of a subquery, so that the optimiser does not repeat its expressions wherever they are used
    terms: int  # number of terms of a sum that a layer adds
    has_nan: bool = True  # whether NaN is a value
    ignores_case: bool = True  # of quoted names of columns
    blanks: str = r"E' \t\r\n' || CHR(160)"  # characters that do not count around a text
    find: str = "STRPOS"  # function for the position of a text in another one

    @property
    def is_sqlite(self) -> bool:
        return self.name == "sqlite"


DUCKDB = Dialect("duckdb", "VARCHAR", "", terms=40)
POSTGRESQL = Dialect("postgresql", "TEXT", " OFFSET 0", terms=40, ignores_case=False)
SQLITE = Dialect(  # its parser limits nested queries
    "sqlite", "TEXT", " LIMIT 1 OFFSET 0", terms=400, has_nan=False, blanks="CHAR(32, 9, 13, 10, 160)", find="INSTR"
)
BY_NAME = {dialect.name: dialect for dialect in (DUCKDB, POSTGRESQL, SQLITE)}


def literal_of(number: float, dialect: Dialect) -> str:
    """A literal of exactly this double. Without an exponent it would be a decimal in DuckDB."""
    text = repr(number)
    text = text if "e" in text else f"{text.removesuffix('.0')}e0"
    return exact_quotient(number) if dialect.is_sqlite and not is_exact(text, number) else text


def exact_quotient(number: float) -> str:
    """The number as an integer times or divided by powers of two: SQLite can read a decimal as a neighbour of it."""
    fraction, exponent = math.frexp(number)
    mantissa, exponent = int(fraction * LARGEST_INTEGER), exponent - 53
    while mantissa % 2 == 0:
        mantissa, exponent = mantissa // 2, exponent + 1
    parts, operator = [f"{mantissa}.0"], "*" if exponent > 0 else "/"
    exponent = abs(exponent)
    while exponent > 0:
        power = min(exponent, 53)
        parts.append(f"{operator}{2**power}.0")
        exponent -= power
    return f"({''.join(parts)})"


def is_exact(text: str, number: float) -> bool:
    """Whether a decimal is short, and exactly the number, so that every database reads it without rounding."""
    return len(text) <= EXACT_DIGITS and Fraction(text) == Fraction(number)


def identifier(name: str) -> str:
    """A quoted name of a column or table."""
    return '"' + name.replace('"', '""') + '"'


def string(value: str) -> str:
    """A quoted text."""
    return "'" + value.replace("'", "''") + "'"
