"""How often `choose_k` finds the known number of clusters of many tables, and how often it is clear but wrong."""

import pytest

from benchmarks.bench_choose_k_quality import OURS, Answer, answer, count_right, summary
from benchmarks.choose_k_tables import HELD_OUT, TUNED, tables

HALVES = (TUNED, HELD_OUT)
RIGHT = {TUNED: 0.62, HELD_OUT: 0.58}  # share of the tables, at least
CLEAR, CLEAR_AND_RIGHT = 0.35, 0.9  # share of the tables that are clear, and of these that are right


def test_there_are_enough_tables_of_each_half_and_no_name_is_used_twice():
    every = tables()
    names = [table.name for table in every]
    assert len(set(names)) == len(names)
    assert sum(not table.name.startswith(("sipu/", "fcps/")) for table in every) >= 60
    for half in HALVES:
        assert sum(table.half == half for table in every) >= 30
        assert any(table.k == 1 for table in every if table.half == half)


def test_an_answer_is_honest_if_it_is_right_or_not_clear():
    options = {"table": "t", "half": TUNED, "k": 3, "runner_up": 2, "seconds": 0.0}
    right = Answer(**options, strength="clear", answers={OURS: 3, "gap": 5})
    wrong = Answer(**options, strength="clear", answers={OURS: 4, "gap": None})
    doubtful = Answer(**options, strength="weak", answers={OURS: 9, "gap": 3})
    assert [each.is_honest() for each in (right, wrong, doubtful)] == [True, False, True]
    assert (count_right([right, wrong, doubtful], OURS), count_right([right, wrong, doubtful], OURS, 1)) == (1, 2)
    row = summary([right, wrong, doubtful], "quick").rows[0]
    assert row == [f"**{OURS}**", "1", "2", "2", "0", "0", "0"]


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_choose_k_is_right_as_often_as_the_best_criterion_and_rarely_clear_but_wrong(half):
    answers = [answer(table, "quick") for table in tables() if table.half == half]
    criteria = {name for each in answers for name in each.answers} - {OURS}
    right = count_right(answers, OURS)
    assert right >= max(count_right(answers, name) for name in criteria)
    assert right >= RIGHT[half] * len(answers)
    clear = [each for each in answers if each.strength == "clear"]
    assert len(clear) >= CLEAR * len(answers)
    assert count_right(clear, OURS) >= CLEAR_AND_RIGHT * len(clear)
