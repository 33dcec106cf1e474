"""Options of jobs in Python: names, and tables in memory."""

import dataclasses
import pickle

import polars as pl
import pytest

import coterie
from coterie.datasets import make_blobs
from coterie.errors import ParameterError
from coterie.jobs import ChooseJob, CompareJob, Job, run

X, _ = make_blobs(60, 2, centers=3, cluster_std=0.3, random_state=0)
FRAME = pl.DataFrame(X, schema=["a", "b"])


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Job, {"method": "ward"}, "Job has no option 'method': use algorithm="),
        (Job, {"n_clusters": 3}, "Job has no option 'n_clusters': use k="),
        (Job, {"random_state": 3}, "Job has no option 'random_state': use seed="),
        (Job, {"colums": ["a"]}, "Job has no option 'colums': use columns="),
        (Job, {"n_init": 3}, "Job has no option 'n_init': options of algorithms are options={'n_init': ...}"),
        (ChooseJob, {"method": "gmm"}, "ChooseJob has no option 'method': use algorithm="),
        (CompareJob, {"method": "gmm"}, "CompareJob has no option 'method': options are algorithms, batch_rows, "),
    ],
)
def test_an_unknown_option_is_rejected_with_the_one_to_use(kind, options, message):
    with pytest.raises(TypeError) as error:
        kind(FRAME, **options)
    assert str(error.value).startswith(message)


def test_jobs_can_be_copied_and_pickled():
    job = Job("x.csv", k=3, columns=("a",))
    assert dataclasses.replace(job, k=4).k == 4
    assert pickle.loads(pickle.dumps(job)) == job


def test_a_relation_of_duckdb_is_a_table():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("SELECT a, b FROM FRAME WHERE a IS NOT NULL")
    result = coterie.Job(relation, k=3).run()
    assert result.columns == ("a", "b")
    assert (result.labels == coterie.Job(FRAME, k=3).run().labels).all()


@pytest.mark.parametrize("k", [range(2, 4), [2, 3], "2:4", "2", 2.5, (2, 3, 4), None])
def test_other_types_of_k_are_rejected(k):
    with pytest.raises(ParameterError, match=r"k must be a number, two numbers such as \(2, 12\), or .auto.; got"):
        run(Job(FRAME, k=k))
