"""Progress of a job, and options that are rejected before it runs."""

import numpy as np
import pytest

from coterie import machine
from coterie.errors import InputError
from coterie.jobs import ChooseJob, CompareJob, Job, Progress, choose, compare, run


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).normal(size=(80, 2)))
    return path


def counted(steps: list[Progress], stage: str) -> list[tuple[int, int | None]]:
    return [(step.done, step.total) for step in steps if step.step.startswith(stage) and step.total is not None]


def test_starts_are_counted(rows):
    steps: list[Progress] = []
    run(Job(rows, k=3, options={"n_init": 4}), steps.append)
    assert list(dict.fromkeys(counted(steps, "fitting K-means"))) == [(0, 4), (1, 4), (2, 4), (3, 4)]


def test_merges_are_counted_to_the_end(rows):
    steps: list[Progress] = []
    run(Job(rows, algorithm="ward", k=3), steps.append)
    assert counted(steps, "fitting Ward's linkage")[-1] == (79, 79)


def test_criteria_are_counted_by_name(rows):
    steps: list[Progress] = []
    choose(ChooseJob(rows, k=(2, 4), criteria=("silhouette", "elbow")), steps.append)
    assert [step for step in steps if step.total and step.step.startswith("choosing")] == [
        Progress("choosing K: silhouette", 1, 2),
        Progress("choosing K: elbow", 2, 2),
    ]


def test_rows_are_counted_as_they_are_read_and_written(rows, tmp_path):
    steps: list[Progress] = []
    run(Job(rows, k=3, batch_rows=30, output=tmp_path / "out.parquet"), steps.append)
    assert counted(steps, "reading x.npy") == [(30, 80), (60, 80), (80, 80)]
    assert counted(steps, "writing out.parquet") == [(30, 80), (60, 80), (80, 80)]


def test_runs_of_a_comparison_are_counted(rows):
    steps: list[Progress] = []
    compare(CompareJob(rows, algorithms=("kmeans", "single"), k=(2, 3)), steps.append)
    assert counted(steps, "fitting") == [(0, 4), (1, 4), (2, 4), (3, 4)]


@pytest.mark.parametrize("method", ["average", "complete", "weighted", "divisive"])
def test_distances_that_do_not_fit_are_rejected_with_a_remedy(rows, monkeypatch, method):
    monkeypatch.setattr(machine, "free_memory", lambda: 50_000)
    monkeypatch.setattr(machine, "SMALL_OBJECT", 0)
    message = r"80 rows .* 51.2 KB of memory, but only 50 KB are free: try -a bisecting .* --sample 20000"
    with pytest.raises(InputError, match=message):
        run(Job(rows, algorithm=method, k=3))
    run(Job(rows, algorithm=method, k=3, sample=60))


def test_part_of_a_name_is_enough_for_a_suggestion(tmp_path):
    path = tmp_path / "customers.csv"
    path.write_text("recency_days,avg_basket\n1,2\n3,4\n", encoding="utf-8")
    with pytest.raises(InputError, match=r'no column "basket"\. Did you mean "avg_basket"\? Columns: recency_days'):
        run(Job(path, columns=("basket",)))


def test_a_mixture_skips_text_that_hardly_repeats(tmp_path):
    path = tmp_path / "people.csv"
    lines = [f"person {i},{'ab'[i % 2]},{i % 2 * 9 + i % 7 / 7}" for i in range(60)]
    path.write_text("\n".join(["name,group,x", *lines]), encoding="utf-8")
    result = run(Job(path, algorithm="mixture", k=2))
    assert result.categories == ("group",)
    assert "skipped as text that hardly repeats: name." in result.notes


def test_an_invalid_weight_is_rejected(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("x,w\n1,1\n2,\n3,-1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r'column "w" has 2 invalid weights'):
        run(Job(path, k=2, weight="w"))


@pytest.mark.parametrize("name, message", [("code", "300 different values"), ("nothing", "is empty")])
def test_categories_that_would_make_no_column_or_too_many_are_rejected(tmp_path, name, message):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,code,nothing", *(f"{i},c{i}," for i in range(300))]), encoding="utf-8")
    with pytest.raises(InputError, match=rf'column "{name}".*{message}'):
        run(Job(path, k=2, one_hot=(name,)))
