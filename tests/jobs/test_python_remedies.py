"""Remedies name options of a `Job` for users of Python, and options of the command line for its users."""

import re

import numpy as np
import polars as pl
import pytest

from coterie import Job
from coterie.errors import InputError, ParameterError
from coterie.jobs import ChooseJob, CompareJob, choose, compare, run
from coterie.jobs.python_remedies import as_job_options

OPTION = re.compile(r"(^|[\s(])-{1,2}[a-z]")
TRANSLATED = {
    "Use --missing drop (keeps 9 rows), --missing median, or --exclude A,B.": (
        'Use missing="drop" (keeps 9 rows), missing="median", or exclude="A,B".'
    ),
    "skipped as text: Order No (to use it: --one-hot 'Order No').": (
        'skipped as text: Order No (to use it: one_hot="Order No").'
    ),
    "outliers, or -k too large?": "outliers, or k too large?",
    "-k 900 asks for more; use -k 2:12.": "k=900 asks for more; use k=(2, 12).",
    "try a larger --max-iter or --tol.": 'try a larger options["max_iter"] or options["tol"].',
    "use --search thorough, or -a gmm": 'use options={"search": "thorough"}, or algorithm="gmm"',
    "--dates cyclic adds columns, --dates skip leaves them out": (
        'dates="cyclic" adds columns, dates="skip" leaves them out'
    ),
    'sheet "May" was read; --sheet reads another: June.': 'sheet "May" was read; sheet= reads another: June.',
    "If so, add --na-values -9999,99 and use --missing. See": 'If so, add na_values="-9999,99" and use missing=. See',
    "columns x--missing, --unknown and a-k 3 stay": "columns x--missing, --unknown and a-k 3 stay",
}


@pytest.mark.parametrize(("text", "expected"), TRANSLATED.items())
def test_an_option_of_the_command_line_becomes_one_of_a_job(text, expected):
    assert as_job_options(text) == expected


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 40), rng.normal(9, 1, 40)])
    return pl.DataFrame(
        {
            "x": x,
            "y": rng.normal(0, 1, 80) + x,
            "city": ["Bern", "Basel", "Chur", "Genf"] * 20,
            "day": pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 3, 20), eager=True),
            "gap": [None, *range(0, 158, 2)],
        }
    )


ERRORS = [
    ({}, InputError, 'missing="drop"'),
    ({"missing": "drop", "k": 900}, InputError, "k=900"),
    ({"k": "x"}, ParameterError, "k must"),
]


@pytest.mark.parametrize(("options", "error", "text"), ERRORS, ids=["missing", "k", "word"])
def test_errors_in_python_name_options_of_the_job(frame, tmp_path, options, error, text):
    frame.write_csv(tmp_path / "t.csv")
    for table in (frame, str(tmp_path / "t.csv")):
        with pytest.raises(error) as caught:
            Job(table, **options).run()
        assert text in str(caught.value)
        assert not OPTION.search(str(caught.value))


def test_errors_of_the_command_line_name_its_options(frame, tmp_path):
    frame.write_csv(tmp_path / "t.csv")
    with pytest.raises(InputError, match="--missing drop"):
        run(Job(tmp_path / "t.csv", k=2))


def test_notes_and_warnings_in_python_name_options_of_the_job(frame):
    options = {"exclude": "gap", "seed": 1}
    results = [
        Job(frame, k=2, **options).run(),
        choose(ChooseJob(frame, k=(2, 3), criteria="silhouette", **options)),
        compare(CompareJob(frame, k=2, algorithms="kmeans", **options)),
    ]
    for result in results:
        texts = " ".join((*result.notes, *result.warnings))
        assert 'one_hot="city"' in texts
        assert 'dates="skip"' in texts
        assert not OPTION.search(texts)


def test_several_names_may_be_one_string_as_on_the_command_line(frame):
    by_string = Job(frame, k=2, columns='x,"y"', names="low, high").run()
    by_list = Job(frame, k=2, columns=["x", "y"], names=["low", "high"]).run()
    assert by_string.columns == by_list.columns == ("x", "y")
    assert [one.name for one in by_string.clusters] == ["low", "high"]
    np.testing.assert_array_equal(by_string.labels, by_list.labels)


def test_a_report_in_python_names_no_option_of_the_command_line(frame, tmp_path):
    options = {"exclude": "gap,city,day", "missing": "drop", "options": {"max_iter": 1, "n_init": 1}}
    for table, is_python in ((frame, True), (tmp_path / "t.csv", False)):
        frame.write_csv(tmp_path / "t.csv")
        run(Job(table, k=5, report=tmp_path / "r.html", force=True, **options))
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        page = page[: page.index('id="reproduce"')]  # the command is there
        assert ("use -k auto" in page.lower()) != is_python
        assert ('use k="auto"' in page.lower().replace("&quot;", '"').replace("&#34;", '"')) == is_python
