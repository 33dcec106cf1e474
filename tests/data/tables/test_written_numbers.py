"""Numbers as people write them."""

import numpy as np
import polars as pl
import pytest

from coterie.data.tables.written_numbers import is_missing_mark, split_numbers
from coterie.preparation import detect_readings

POINT = {
    "12": 12, "-3.5": -3.5, "+4": 4, "1e3": 1000, ".5": 0.5, "5.": 5, "$1,001.35": 1001.35, "68.2%": 68.2,
    "(120)": -120,
    "($1,200.50)": -1200.5, "1 234": 1234, "1\u00a0234.5": 1234.5, "1\u202f234": 1234, "1'234.50": 1234.5,
    "1’234": 1234,
    "12k": 12_000, "1.2M": 1.2e6, "$3m": 3e6, "2 bn": 2e9, "1.5 million": 1.5e6, "€ 5": 5, "5 €": 5, "USD 5": 5,
    "5 usd": 5,
    "US$ 7": 7, "-$5": -5, "$-5": -5, "120-": -120, "−7": -7, "5 kg": 5, "180cm": 180, "3 days": 3,
    "12,34,567": 1234567,
    "1,234,567.8": 1234567.8, "0": 0, "20 °C": 20,
}  # fmt: skip
COMMA = {
    "1.003,33": 1003.33, "3,5": 3.5, "1.234.567": 1234567, "1 234,5": 1234.5, "12 €": 12, "1'234,5": 1234.5,
    "-0,5 %": -0.5,
    "1,5 Mio. €": 1.5e6,
}  # fmt: skip
NEITHER = [
    "a", "1.2.3", "12:30", "1-2", "2024-01-31", "A12", "12 34", "1,23,4", "1st", "12 apples", "$", "--5", "(5", "5)",
    "1.2,3.4",
    "+49 170 123", "#5", "10/12", "1,234.5,6", "IV", "5 € kg",
]  # fmt: skip


@pytest.mark.parametrize("decimal, cells", [(".", POINT), (",", COMMA)])
def test_the_value_is_that_a_person_reads(decimal, cells):
    for cell, value in cells.items():  # one by one: the unit of a column does not matter here
        parts = split_numbers(pl.Series([cell]))
        assert parts.values(decimal).to_list() == pytest.approx([value]), cell


def test_other_text_is_not_a_number():
    for cell in NEITHER:
        parts = split_numbers(pl.Series([cell]))
        assert not parts.fits(".").any(), cell
        assert not parts.fits(",").any(), cell


def test_three_digits_after_a_single_separator_are_ambiguous():
    for cells, is_ambiguous in [
        (["1.234", "2.500"], True), (["1,234", "12"], True), (["1.234", "0.5"], False), (["1.234.567"], False),
        (["0.123"], False), (["1234.500"], False), (["12", "13"], False),
    ]:  # fmt: skip
        assert split_numbers(pl.Series(cells)).is_ambiguous is is_ambiguous, cells


def test_a_column_with_very_many_words_is_not_numbers():
    cells = pl.Series([f"{i} {'abcdefgh'[i % 8]}{i}x" for i in range(60)])
    assert split_numbers(cells).digits.null_count() == 60


def test_marks_of_missing_values():
    marks = ["N/A", "-", "n/a?", "#REF!", "?", "", "None", "#DIV/0!", "—", "nan", None, "tbd"]
    assert is_missing_mark(pl.Series(marks), ("TBD",)).all()
    assert not is_missing_mark(pl.Series(["0", "x", "no", "-1", "tbd"])).any()


def test_one_number_with_a_clear_separator_decides_that_a_column_is_not_ambiguous():
    rng = np.random.default_rng(0)
    parts = ["1", "12", "123", "1234", "0", "5 kg", "-", "", "$", "abc", ".", ",", "'", " ", "e5", "%"]
    count = {True: 0, False: 0}
    for _ in range(60):
        cells = ["".join(rng.choice(parts[: rng.integers(5, 17)], rng.integers(1, 5))) for _ in range(3)]
        with_point = [cell.replace("'", ".") for cell in cells]
        for column in (cells, with_point, ["1.234", with_point[0]], ["1,234", *cells[:1]]):
            text = pl.Series(column)
            assert detect_readings._is_ambiguous(text) is split_numbers(text).is_ambiguous, column
            count[split_numbers(text).is_ambiguous] += 1
    assert min(count.values()) > 10
    assert all(
        pl.Series([cell]).str.contains(detect_readings.ONE_SEPARATOR).all() for cell in ("1.5", "-0,25", "3.1416")
    )


def test_a_column_without_a_digit_has_no_numbers():
    parts = split_numbers(pl.Series(["red", None, "", "--", "$"]))
    assert parts.digits.null_count() == len(parts.factor) == 5
    assert not parts.fits(".").any()
    assert not parts.is_ambiguous
