"""A column of numbers that a few words make one of text: which, how many, and where."""

from pathlib import Path

import pytest

from coterie.cli import main


def warned(capsys, values: list[str], *more: str) -> str:
    lines = [f"{i % 7},{value}" for i, value in enumerate(values)]
    Path("t.csv").write_text("\n".join(["x,size", *lines]), encoding="utf-8")
    assert main(["fit", "t.csv", "-k", "2", *more]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "skipped as text because" in line]
    return "\n".join(told)


@pytest.mark.parametrize("rows", [[], ["--batch-rows", "1"], ["--batch-rows", "7"], ["--batch-rows", "33"]])
def test_the_word_is_told_with_its_row_whatever_is_read_at_a_time(folder, capsys, rows):
    values = [str(i / 4) for i in range(40)]
    values[3] = "unknown"
    assert warned(capsys, values, *rows) == (
        'warning: column "size" was skipped as text because 1 of its 40 values is not a number, "unknown" in row 3 '
        "(from 0): correct or empty it to use the column, or add --na-values unknown."
    )
    values[30] = "many"
    assert '2 of its 40 values are not numbers, such as "unknown" in row 3 (from 0): correct or empty them' in warned(
        capsys, values, *rows
    )


def test_text_that_is_text_is_left_alone(folder, capsys):
    assert warned(capsys, ["red", "blue"] * 20) == ""


def test_what_is_missing_is_no_number(folder, capsys):
    assert warned(capsys, [*[""] * 38, "red", "blue"]) == ""
    assert '1 of its 21 values is not a number, "red" in row 40' in warned(capsys, [*["2", ""] * 20, "red"])


def test_the_remedy_names_all_words_and_it_works(folder, capsys):
    values = [str(i / 4) for i in range(60)]
    values[3], values[9], values[20], values[41] = "unknown", "too much", "unknown", '"kg, more"'
    text = warned(capsys, values)
    remedy = """--na-values 'unknown,too much,"kg, more"'"""
    assert text.endswith(f"or add {remedy}.")
    assert warned(capsys, values, "--na-values", remedy[13:-1], "--missing", "drop") == ""


def test_the_word_is_told_if_no_other_column_is_of_numbers(folder, capsys):
    Path("t.csv").write_text("size\n" + "\n".join([*map(str, range(30)), "broken"]), encoding="utf-8")
    assert main(["fit", "t.csv", "-k", "2"]) == 3
    assert '1 of its 31 values is not a number, "broken" in row 30' in capsys.readouterr().err
