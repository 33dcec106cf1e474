"""Every number that describes clusters is recomputed from the input file, without coterie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from coterie import jobs
from coterie.jobs import Job
from coterie.report.build import reliability
from coterie.report.html import Absent
from coterie.report.json import as_dict
from coterie.report.text import as_text
from descriptions import checks, evidence
from descriptions.checks import Description
from descriptions.tables import Case, cases, read_values
from report.pages import read

CASES = cases()
CHECKS = (*checks.OF_JOBS, *evidence.OF_PAGES)


@pytest.fixture
def describe(tmp_path, monkeypatch):
    """A function that runs the job of a case once, and reads all of its outputs."""
    monkeypatch.setattr(reliability, "resampling_stability", lambda *_: Absent("left out"))
    monkeypatch.setattr(reliability, "diagnosis", lambda *_: Absent("left out"))

    def run(case: Case, folder: Path = tmp_path) -> Description:
        path = case.write(folder)
        files = {"output": folder / "out.csv", "profiles": folder / "p.csv", "report": folder / "r.html"}
        defaults: dict[str, Any] = {"k": 3, "options": {"n_init": 2}}
        result = jobs.run(Job(path, **{**defaults, **case.options, **files}))
        page = read(files["report"].read_text("utf-8"))
        table = read_values(path, case.kinds)
        for name in result.categories:
            table[name] = table[name].map(str, na_action="ignore")
        labels = pd.read_csv(files["output"])["cluster"]
        plain = json.loads(json.dumps(as_dict(result)))
        return Description(case, table, plain, as_text(result), page, pd.read_csv(files["profiles"]), labels)

    return run


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_that_of_the_input_file(describe, name):
    said = describe(CASES[name])
    problems = [f"{check.__name__}: {problem}" for check in CHECKS for problem in check(said)]
    assert not problems, "\n".join(problems)
