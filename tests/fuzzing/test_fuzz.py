"""The fuzzer finds planted faults, says how to repeat them, survives crashes and hangs, and covers all public names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fuzz import registry, tables
from fuzz.draw import RandomDraw

ROOT = Path(__file__).parents[2]


def fuzz(*arguments):
    """Exit code and output of the fuzzer with the planted laws."""
    paths = os.pathsep.join([str(ROOT), str(Path(__file__).parent), *filter(None, sys.path)])
    command = [sys.executable, "-m", "fuzz", "--laws", "planted", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def planted_run():
    """One round: each planted law as often as it weighs."""
    return fuzz("--seed", "5", "--cases", "19", "--timeout", "3", "--workers", "2")


def finding(text, subject):
    """The paragraph about the finding of that subject."""
    return next(part for part in text.split("FINDING  ") if part.startswith(f"{subject}:"))


def test_a_planted_fault_is_found_and_its_command_repeats_it(planted_run):
    code, text = planted_run
    assert code == 1
    found = finding(text, "wrong")
    number = re.search(r"--seed 5 --case (\d+)", found)[1]
    assert "labels_: 1 of 1 values differ" in found
    again, repeated = fuzz("--seed", "5", "--case", number)
    assert again == 1
    assert "labels_: 1 of 1 values differ" in finding(repeated, "wrong")


def test_a_hang_is_reported_with_the_place(planted_run):
    _, text = planted_run
    found = finding(text, "slow")
    assert "hang at" in found
    assert "in fits_end" in found


def test_a_crash_is_reported_and_does_not_end_the_run(planted_run):
    _, text = planted_run
    found = finding(text, "fragile")
    assert "crash at" in found
    assert "Segmentation fault" in found
    assert "in fits_do_not_crash" in found


def test_a_warning_of_numpy_is_a_finding_and_a_rejected_table_is_none(planted_run):
    _, text = planted_run
    assert "overflow encountered in exp" in finding(text, "warns")
    assert "FINDING  strict" not in text
    assert "FINDING  right" not in text
    assert re.search(r"strict +tables are rejected +(\d+) +\1 ", text)


def test_a_run_without_findings_succeeds():
    code, text = fuzz("--seed", "5", "--cases", "19", "--only", "^right", "--workers", "1")
    assert code == 0
    assert "0 findings" in text


def test_a_pattern_without_laws_is_an_error():
    code, text = fuzz("--only", "no_such_law")
    assert code == 2
    assert "--only 'no_such_law' matches no \"subject: law\"" in text


def test_every_public_name_has_a_law_or_a_reason():
    registry.load()
    assert registry.unexplained() == []


def test_no_name_that_has_a_law_is_excused_and_no_excuse_is_out_of_date():
    registry.load()
    packages = {name for name in registry.NOT_COVERED if name in registry.PACKAGES}
    names = set(registry.NOT_COVERED) - packages
    assert names & registry.covered() == set()
    assert names <= set(registry.public_names())


def test_the_law_of_a_case_depends_on_seed_and_number_alone():
    registry.load()
    some = [registry.law_of(3, number) for number in range(50)]
    registry._order.cache_clear()
    assert [registry.law_of(3, number) for number in range(50)] == some
    each_once = [registry.law_of(3, number) for number in range(len(registry.pairs()))]
    assert {(law.name, subject) for law, subject in each_once} == {
        (law.name, subject) for law, subject in registry.pairs()
    }


@pytest.mark.parametrize("kind", tables.HOSTILE, ids=lambda kind: kind.__name__)
def test_tables_are_finite_and_repeat(kind):
    X, again = (kind(RandomDraw(1, 2), 30, 3) for _ in range(2))
    assert X.shape == (30, 3)
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, again)
