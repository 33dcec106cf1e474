"""Numbers as people write them: ``$1,001.35``, ``68.2%``, ``1.003,33``, ``(120)``, ``1 234``, ``12k``, ``5 kg``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

Decimal: TypeAlias = Literal[".", ","]

# Cells that mean a missing value in a column of numbers, in lower case.
MISSING_MARKS = (
    "", "na", "n/a", "n/a?", "n.a.", "n.a", "k.a.", "nan", "nat", "<na>", "null", "none", "nil", "missing", "(blank)",
    "not available", "-", "--", "---", "–", "—", "?", "??", "???", ".", "..", "...", "…", "*", "#ref!", "#n/a",
    "#n/a n/a", "#value!", "#div/0!", "#name?", "#null!", "#num!", "#error!", "#spill!", "#calc!",
)  # fmt: skip
MISSING_WORDS = tuple(mark for mark in MISSING_MARKS if mark not in ("none", "nil", "*"))  # in a column of words
SIGNS = "-−–"
SPACES = r"[\s\u00a0\u2007\u2009\u202f]"
SIGN = r"\-−–"  # in a class of characters
CELL = (
    rf"^(?P<open>\()?{SPACES}*(?P<sign>[+{SIGN}]?){SPACES}*(?P<prefix>[^\d()+{SIGN}.,]*?){SPACES}*"
    rf"(?P<inner>[+{SIGN}]?){SPACES}*(?P<digits>(?:\d(?:[\d.,'’_]|{SPACES})*|[.,]\d+)(?:[eE][+-]?\d+)?)"
    rf"(?P<suffix>[^\d()+{SIGN}][^()+{SIGN}]*?)?{SPACES}*(?P<close>\))?{SPACES}*(?P<trailing>[{SIGN}])?$"
)
# The digits of a number by the decimal separator; thousands may be separated by the other one, spaces or apostrophes.
GROUPS = r"[1-9]\d{0,2}(?: \d{3})+|[1-9]\d{0,2}(?:'\d{3})+"
EXPONENT = r"(?:[eE][+-]?\d+)?"
DIGITS: dict[Decimal, str] = {
    ".": rf"^(?:\d+|[1-9]\d{{0,2}}(?:,\d{{2,3}})*,\d{{3}}|{GROUPS})?(?:\.\d*)?{EXPONENT}$",
    ",": rf"^(?:\d+|[1-9]\d{{0,2}}(?:\.\d{{3}})+|{GROUPS})?(?:,\d*)?{EXPONENT}$",
}
CURRENCY = re.compile(
    r"(?:US|CA|C|AU|A|NZ|HK|S|R|MX)?\$|[€£¥₹₽₩₺₪฿₫₴₦₱]|kr\.?|zł|Kč|Ft|S?Fr\.?|Rs\.?|lei|(?i:USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|"
    r"AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|BRL|MXN|ARS|CLP|COP|ZAR|RUB|UAH|TRY|KRW|SGD|HKD|TWD|THB|IDR|MYR|PHP|"
    r"VND|ILS|AED|SAR|EGP|NGN|KES|BTC)"
)
MAGNITUDES = {
    "k": 1e3, "K": 1e3, "tsd": 1e3, "M": 1e6, "mn": 1e6, "mio": 1e6, "MM": 1e6, "million": 1e6, "B": 1e9, "bn": 1e9,
    "mrd": 1e9, "billion": 1e9,
}  # fmt: skip
UNITS = frozenset({
    "kg", "g", "mg", "t", "lb", "oz", "km", "m", "cm", "mm", "µm", "mi", "mile", "ft", "in", "inch", "yd", "h", "hr",
    "hour", "min", "minute", "s", "sec", "second", "ms", "d", "day", "wk", "week", "mo", "month", "y", "yr", "year",
    "°c", "°f", "c", "f", "w", "kw", "mw", "kwh", "mwh", "v", "mv", "hz", "khz", "mhz", "ghz", "kb", "mb", "gb", "tb",
    "bit", "l", "ml", "cl", "dl", "gal", "mph", "km/h", "kmh", "kmpl", "mpg", "l/100km", "cc", "hp", "bhp", "ps",
    "nm", "bar", "psi", "pa", "hpa", "kpa", "cal", "kcal", "kj", "px", "pt", "dpi", "sqft", "sqm", "m2", "m²", "km²",
    "ha", "acre", "pc", "x", "bp", "db", "ppm", "ppb", "star", "person", "people", "m/s", "g/l", "mg/dl", "mmol/l",
    "bpm", "mmhg",
})  # fmt: skip
MAX_AFFIXES = 40  # distinct texts before or after the digits; a column with more does not contain numbers


@dataclass(frozen=True)
class WrittenNumbers:
    """The parts of the cells of a column; a cell that is not a number has null digits."""

    digits: pl.Series  # without the sign, spaces as " " and apostrophes as "'"
    factor: pl.Series  # -1 for negative numbers, 1000 for ``k``, and so on
    unit: pl.Series  # currency, ``%`` or unit; "" if there is none

    def fits(self, decimal: Decimal) -> pl.Series:
        """Mask of cells that are numbers with that decimal separator."""
        return self.digits.str.contains(DIGITS[decimal]).fill_null(False)

    def values(self, decimal: Decimal) -> pl.Series:
        """The numbers; null where a cell does not fit."""
        thousands = "[,' ]" if decimal == "." else "[.' ]"
        plain = self.digits.str.replace_all(thousands, "").str.replace(decimal, ".", literal=True)
        return plain.set(~self.fits(decimal), None).cast(pl.Float64, strict=False) * self.factor

    @property
    def is_ambiguous(self) -> bool:
        """Whether every cell fits both decimal separators, and the values differ: ``1.234`` is 1.234 or 1234."""
        cells = self.digits.drop_nulls()
        both = cells.str.contains(DIGITS["."]) & cells.str.contains(DIGITS[","])
        return bool(both.all()) and bool(cells.str.contains("[.,]").any())


def split_numbers(text: pl.Series) -> WrittenNumbers:
    """The parts of cells without surrounding blanks; null cells stay null."""
    none = pl.Series([None] * len(text), dtype=pl.String)
    no_numbers = WrittenNumbers(none, pl.repeat(1.0, len(text), eager=True), none)
    if not text.str.contains(r"\d").any():
        return no_numbers
    parts = text.str.extract_groups(CELL).struct.unnest()
    prefix, suffix = (parts[name].str.strip_chars() for name in ("prefix", "suffix"))
    prefixes, suffixes = (affix.unique().drop_nulls().to_list() for affix in (prefix, suffix))
    digits = parts["digits"].str.strip_chars().str.replace_all(SPACES, " ").str.replace_all("[’_]", "'")
    if len(prefixes) > MAX_AFFIXES or len(suffixes) > MAX_AFFIXES:
        return no_numbers
    currencies = {each: _currency(each) for each in prefixes}
    has_currency = any(currencies.values())
    units = {each: _suffix(each, has_currency) for each in suffixes}
    before = _mapped(prefix, currencies, pl.String, "")
    after = _mapped(suffix, {key: pair and pair[1] for key, pair in units.items()}, pl.String, "")
    magnitude = _mapped(suffix, {key: pair and pair[0] for key, pair in units.items()}, pl.Float64, 1.0)
    has_open, has_close = parts["open"].is_not_null(), parts["close"].is_not_null()
    negative = sum(
        (parts[name].fill_null("").is_in(list(SIGNS)).cast(pl.Int8) for name in ("sign", "inner", "trailing")),
        (has_open & has_close).cast(pl.Int8),
    )
    # Several signs, a single parenthesis, or groups of digits after a plus, as in telephone numbers, are not a number.
    plus_groups = (parts["sign"].fill_null("") == "+") & digits.str.contains(" ").fill_null(False)
    invalid = before.is_null() | after.is_null() | (negative > 1) | (has_open != has_close) | plus_groups
    unit = pl.select(pl.when(before != "").then(before).otherwise(after)).to_series()
    factor = magnitude * (1 - 2 * negative.cast(pl.Float64))
    return WrittenNumbers(digits.set(invalid.fill_null(True), None), factor, unit)


def is_missing_mark(text: pl.Series, others: tuple[str, ...] = (), marks: tuple[str, ...] = MISSING_MARKS) -> pl.Series:
    """Mask of cells without surrounding blanks that mean a missing value; `others` are further marks."""
    return text.str.to_lowercase().is_in([*marks, *(other.strip().lower() for other in others)]).fill_null(True)


def _mapped(affix: pl.Series, values: Mapping[str, object], dtype: type[pl.DataType], absent: object) -> pl.Series:
    """`values` of each text; `absent` where there is none."""
    known = affix.replace_strict(
        list(values), pl.Series(list(values.values()), dtype=dtype), default=None, return_dtype=dtype
    )
    return known.set(affix.is_null(), absent)


def _currency(prefix: str) -> str | None:
    """The currency before a number; "" if there is nothing, None if it is something else."""
    return prefix.upper() if not prefix or CURRENCY.fullmatch(prefix) else None


def _suffix(text: str, has_currency: bool) -> tuple[float, str] | None:
    """Factor and unit of the text after a number; None if it is something else."""
    if text in ("", "%", "‰"):
        return 1.0, text
    currency = next((match.group() for match in [re.search(rf"(?:{CURRENCY.pattern})$", text)] if match), "")
    word = text[: len(text) - len(currency)].strip().rstrip(".")
    magnitudes = MAGNITUDES | ({"m": 1e6, "b": 1e9} if currency or has_currency else {})
    if not word:
        return 1.0, currency.upper()
    for name in (word, word.lower()):
        if name in magnitudes:
            return magnitudes[name], currency.upper()
    unit = text.lower().rstrip(".")
    singular = unit.removesuffix("s") or unit
    return (1.0, singular if singular in UNITS else unit) if {unit, singular} & UNITS else None
