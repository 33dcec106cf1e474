"""Every check detects its problem and has no finding for clean data; the result is plain data and reproducible."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import coterie
from coterie import KMeans, diagnose
from coterie.diagnosis import Check, Diagnosis, Finding
from coterie.errors import InputError, ParameterError
from coterie.metrics import inertia
from diagnosis import faults
from many_parts import many_parts

pytestmark = pytest.mark.whole_search
CASES = [
    pytest.param(check, table, id=f"{check}-{i}")
    for check, tables in faults.FAULTS.items()
    for i, table in enumerate(tables)
]
SHAPES = [(200, 1, 2), (150, 2, 3), (600, 2, 5), (3000, 2, 2), (400, 5, 4), (500, 20, 3), (300, 100, 2)]


def names(diagnosis):
    """Names of the checks that have a finding."""
    return [finding.check for finding in diagnosis.findings]


@pytest.mark.parametrize("check, table", CASES)
def test_every_fault_is_found(check, table):
    X, model = table(2)
    finding = diagnose(X, model=model, random_state=2)[check].finding
    assert finding is not None
    assert finding.severity in ("note", "warning", "serious")
    assert any(character.isdigit() for character in finding.sentence)
    assert finding.sentence.endswith(".")
    assert finding.remedy.endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize("check, table", CASES)
def test_every_fault_is_found_from_most_seeds(check, table):
    """The test of uniform rows rejects them one time in twenty; all other checks should fail less often."""
    tables = [(seed, *table(seed)) for seed in range(3, 13)]
    diagnoses = [diagnose(X, model=model, random_state=seed) for seed, X, model in tables]
    detected = [diagnosis[check].finding is not None for diagnosis in diagnoses]
    assert sum(detected) >= 8


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_a_better_solution_is_only_claimed_if_it_is_better_for_all_rows(seed):
    """Restarts on 5,000 of 8,000 skewed rows fit these rows better than the best solution for all rows does."""
    X = np.exp(np.random.default_rng(seed).normal(size=(8000, 3)) * 1.3)
    best = KMeans(6, search="fast", random_state=seed).fit(X)
    check = diagnose(X, model=best, random_state=0)["missed_optimum"]
    assert check.finding is None
    worse = KMeans(6, init="random", n_init=1, random_state=seed).fit(X)
    check = diagnose(X, model=worse, random_state=0)["missed_optimum"]
    if check.finding is not None:  # the remedy has exactly the inertia that was claimed
        remedy = KMeans(6, search="thorough", search_budget=10, random_state=seed).fit(X)
        assert check.rows == len(X)
        assert f"KMeans(6, search='thorough', search_budget=10, random_state={seed})" in check.finding.remedy
        assert check.value == pytest.approx(inertia(X, worse.labels_) / remedy.inertia_ - 1)


@pytest.mark.parametrize("n, d, k", SHAPES)
def test_nothing_is_found_in_clean_clusters(n, d, k):
    X, y = faults.blobs(3, n, d, k)
    assert names(diagnose(X, model=y, random_state=0)) == []


@pytest.mark.parametrize("n, d, k", SHAPES[1::2])
def test_nothing_is_found_without_labels_and_k_is_right(n, d, k):
    X, _ = faults.blobs(4, n, d, k)
    diagnosis = diagnose(X, random_state=0)
    assert names(diagnosis) == []
    assert diagnosis.ok
    assert diagnosis.n_clusters == k


@pytest.mark.slow
def test_false_alarms_are_rare():
    """At most 3 of 84 clean tables: a rate of 3 % passes half of the time, a rate of 1 % in 99 of 100 cases."""
    tables = [faults.blobs(seed, n, d, k) for n, d, k in SHAPES for seed in range(10, 22)]
    alarms = [names(diagnose(X, random_state=0)) for X, _ in tables]
    assert sum(map(bool, alarms)) <= 3, [alarm for alarm in alarms if alarm]


MODELS = [
    coterie.KMeans(3, random_state=0),
    coterie.MiniBatchKMeans(3, random_state=0),
    coterie.BisectingKMeans(3, random_state=0),
    coterie.BalancedKMeans(3, random_state=0),
    coterie.KMedians(3, random_state=0),
    coterie.KMedoids(3, random_state=0),
    coterie.FuzzyCMeans(3, random_state=0),
    coterie.GaussianMixture(3, random_state=0),
    coterie.AgglomerativeClustering(3),
    coterie.AgglomerativeClustering(3, linkage="single"),
    coterie.DivisiveClustering(3),
    coterie.KMeans(3, metric_weights=[1, 0.5], random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.usefixtures("short_searches")
def test_models_of_all_kinds_are_checked(model):
    X, _ = faults.blobs(3, 240)
    diagnosis = diagnose(X, model=model.fit(X), random_state=0)
    assert names(diagnosis) == []
    assert diagnosis.clusters == type(model).__name__
    assert diagnosis.n_clusters == 3


def test_assumptions_that_a_model_does_not_make_give_no_finding():
    X, y = faults.long_ones(0)
    X[:, 1] += 100 * y
    round_, full = (
        diagnose(X, model=coterie.GaussianMixture(2, covariance_type=kind, random_state=0).fit(X), random_state=0)
        for kind in ("spherical", "full")
    )
    assert "elongated_clusters" in names(round_)
    assert names(full) == []
    assert full["elongated_clusters"].value > full["elongated_clusters"].threshold


def test_single_linkage_has_not_missed_the_pieces_it_found():
    X, _ = faults.rings(0)
    model = coterie.AgglomerativeClustering(2, linkage="single").fit(X)
    assert "nested_clusters" not in names(diagnose(X, model=model, random_state=0))


def test_rows_are_transformed_as_the_model_transforms_them():
    X, _ = faults.blobs(3)
    X = X * [1, 1000]
    weighed = coterie.KMeans(3, metric_weights=1 / X.var(axis=0), random_state=0).fit(X)
    assert diagnose(X, model=weighed, random_state=0)["unscaled_columns"].value == pytest.approx(1)


def test_clusters_far_apart_along_a_column_are_not_a_problem_of_scale():
    X, _ = faults.blobs(3, k=1)
    X[::2, 0] += 60
    diagnosis = diagnose(X, model=np.arange(len(X)) % 2, random_state=0)
    assert diagnosis["unscaled_columns"].value > 10
    assert diagnosis["dominating_column"].value > 0.99
    assert names(diagnosis) == []


def test_rows_of_a_small_cluster_that_was_merged_are_not_outliers():
    X, _ = faults.blobs(3, k=1)
    X[:40] += 40
    diagnosis = diagnose(X, model=np.zeros(len(X)), random_state=0)
    assert 600 * diagnosis["outliers"].value <= 2  # of forty rows; one may be at the edge of the cluster
    assert "too_few_clusters" in names(diagnosis)
    alone = np.concatenate([X, [[400.0, 0.0]]])
    assert diagnose(alone, model=np.zeros(len(alone)), random_state=0)["outliers"].finding.details["indices"][0] == 600


def test_labels_may_be_text_and_minus_one_is_no_cluster():
    X, y = faults.blobs(3)
    words = np.array(["a", "b", "c"])[y]
    assert diagnose(X, model=words, random_state=0)["tiny_clusters"].value == pytest.approx(1 / 3)
    part = np.where(np.arange(len(X)) < 60, -1, y)
    diagnosis = diagnose(X, model=part, random_state=0)
    assert diagnosis.n_clusters == 3
    assert names(diagnosis) == []
    assert diagnose(X, model=np.full(len(X), -1), random_state=0).n_clusters is None


def test_findings_use_the_names_of_columns():
    X, _ = faults.blobs(3)
    table = pd.DataFrame(X * [1, 1000], columns=["age", "income"])
    for frame in (table, pl.DataFrame(table.to_dict("list"))):
        finding = diagnose(frame, random_state=0)["unscaled_columns"].finding
        assert "standard deviation of income is" in finding.sentence
        assert "that of age" in finding.sentence
        assert finding.details["widest"] == "income"
    model = coterie.GaussianMixture(2, random_state=0).fit(table)
    assert (
        diagnose(table, model=model, random_state=0).clusters == "GaussianMixture"
    )  # predict gets the frame, with its column names


def test_missing_values_are_counted_and_other_checks_use_complete_rows():
    X, y = faults.blobs(3)
    X[:50, 0] = np.nan
    X[40:60, 1] = np.nan
    diagnosis = diagnose(pd.DataFrame(X, columns=["a", "b"]), model=y, random_state=0)
    assert diagnosis.rows == 540
    assert diagnosis["missing_values"].value == 0.1
    assert diagnosis["missing_values"].finding.details["columns"] == {"a": 50, "b": 20}
    assert names(diagnosis) == ["missing_values"]
    nothing = diagnose(np.full((5, 2), np.nan), random_state=0)
    assert (nothing.rows, list(nothing.checks)) == (0, ["missing_values"])


@pytest.mark.usefixtures("short_searches")
def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    X, _ = faults.blobs(3, 1000, 4)
    many_parts(monkeypatch, X)
    one, three = (json.dumps(diagnose(X, random_state=5, n_jobs=jobs).to_dict()) for jobs in (1, 3))
    assert one == three


@pytest.mark.usefixtures("short_searches")
def test_rows_of_weight_zero_are_ignored():
    X, _ = faults.blobs(3)
    w = np.random.default_rng(0).uniform(0.5, 2, len(X))
    w[::3], X[::3] = 0, 1e6
    has_weight = w > 0
    assert (
        diagnose(X, sample_weight=w, random_state=0).to_dict()
        == diagnose(X[has_weight], sample_weight=w[has_weight], random_state=0).to_dict()
    )


@pytest.mark.usefixtures("short_searches")
def test_weight_two_is_the_row_twice_in_spreads_and_shares():
    X, y = faults.blobs(3)
    X[:, 1] *= 30
    w = 1 + np.arange(len(X)) % 2 * 2
    once = diagnose(X, model=y, sample_weight=w, random_state=0)
    often = diagnose(np.repeat(X, w, axis=0), model=np.repeat(y, w), random_state=0)
    for check in ("unscaled_columns", "dominating_column", "unequal_sizes", "unequal_spread", "elongated_clusters"):
        assert once[check].value == pytest.approx(often[check].value, rel=1e-9)


@pytest.mark.usefixtures("short_searches")
def test_float32_gives_the_same_findings():
    X, y = faults.unequally_wide(0)
    single, double = (diagnose(rows, model=y, random_state=0) for rows in (X.astype(np.float32), X))
    assert names(single) == names(double)
    assert single["unequal_spread"].value == pytest.approx(double["unequal_spread"].value, rel=1e-5)


@pytest.mark.parametrize("change", [lambda X: X * 1e-140, lambda X: X * 1e140, lambda X: X + 1e8, lambda X: -X])
@pytest.mark.usefixtures("short_searches")
def test_neither_unit_nor_origin_matters(change):
    X, y = faults.long_ones(0)
    assert names(diagnose(change(X), model=y, random_state=0)) == names(diagnose(X, model=y, random_state=0)) != []


@pytest.mark.usefixtures("short_searches")
def test_large_tables_are_sampled_and_the_text_says_so():
    X, y = faults.blobs(3, 5000)
    X[7] += 1000
    diagnosis = diagnose(X, model=y, sample_size=1000, random_state=0)
    assert diagnosis.sample == 1000
    assert "sample of 1,000" in str(diagnosis)
    assert diagnosis["duplicated_rows"].rows == 5000
    assert diagnosis["outliers"].rows == 1000
    assert diagnosis.to_dict() == diagnose(X, model=y, sample_size=1000, random_state=0).to_dict()


@pytest.mark.usefixtures("short_searches")
def test_files_and_dask_arrays_are_read(tmp_path):
    da = pytest.importorskip("dask.array")
    X, y = faults.blobs(3)
    np.save(tmp_path / "rows.npy", X)
    expected = names(diagnose(X, model=y, random_state=0))
    assert names(diagnose(tmp_path / "rows.npy", model=y, random_state=0)) == expected
    assert names(diagnose(da.from_array(X, chunks=(200, 2)), model=y, random_state=0)) == expected


def test_the_result_is_plain_data_and_text():
    X, _ = faults.blobs(3)
    diagnosis = diagnose(X * [1, 1000], random_state=0)
    assert isinstance(diagnosis, Diagnosis)
    assert isinstance(diagnosis["unscaled_columns"], Check)
    assert all(isinstance(finding, Finding) for finding in diagnosis.findings)
    assert json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False)) == diagnosis.to_dict()
    assert not diagnosis.ok
    text = str(diagnosis)
    for finding in diagnosis.findings:
        assert f"{finding.severity}: {finding.check}" in text
    words = " ".join(text.split())
    assert all(finding.remedy in words and finding.sentence in words for finding in diagnosis.findings)
    assert max(map(len, text.splitlines())) <= 100
    severities = [finding.severity for finding in diagnosis.findings]
    assert severities == sorted(severities, key=("serious", "warning", "note").index)
    with pytest.raises(KeyError):
        diagnosis["no_such_check"]


def test_a_result_with_notes_only_is_ok():
    X, y = faults.unequally_large(0)
    diagnosis = diagnose(X, model=y, random_state=0)
    assert names(diagnosis) == ["unequal_sizes"]
    assert diagnosis.ok


def test_every_check_is_in_the_docs():
    X, _ = faults.blobs(3, 100)
    page = (Path(__file__).parents[2] / "docs" / "diagnose.md").read_text(encoding="utf-8")
    assert [check for check in diagnose(X, random_state=0).checks if f"`{check}`" not in page] == []
    assert set(faults.FAULTS) == set(diagnose(X, random_state=0).checks)


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, 2.0]],
        [[1.0], [1.0]],
        [[1.0, 2.0], [3.0, 4.0]],
        np.ones((50, 1)),
        np.ones((300, 3)),
        np.repeat([[0.0], [1.0]], 60, axis=0),
        np.random.default_rng(0).integers(0, 2, (200, 2)),
        np.random.default_rng(0).normal(size=(25, 60)),
        np.random.default_rng(0).normal(size=(60, 700)),
        np.full((100, 2), 1e-310) * np.arange(100)[:, None],
        np.arange(12_000)[:, None] == [0, 1],
    ],
    ids=[
        "one row",
        "two equal",
        "two",
        "constant",
        "constant 3",
        "two places",
        "four places",
        "wide",
        "wider",
        "tiny",
        "lone",
    ],
)
@pytest.mark.usefixtures("short_searches")
def test_degenerate_tables_give_a_result_with_reasons(X):
    diagnosis = diagnose(X, random_state=0)
    json.dumps(diagnosis.to_dict(), allow_nan=False)
    assert all(check.reason for check in diagnosis.checks.values() if check.value is None)


numbers = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 1e-30, 1e30, np.nan]), st.floats(-1e6, 1e6))


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.usefixtures("short_searches")
def test_random_tables_give_a_result_or_an_input_error(data):
    shape = data.draw(st.tuples(st.integers(1, 70), st.integers(1, 3)))
    X = data.draw(arrays(np.float64, shape, elements=numbers))
    w = data.draw(st.none() | arrays(np.float64, shape[0], elements=st.sampled_from([0.0, 1.0, 2.5])))
    labels = data.draw(st.none() | arrays(np.int64, shape[0], elements=st.integers(-1, 3)))
    try:
        diagnosis = diagnose(X, model=labels, sample_weight=w, random_state=0, n_jobs=1)
    except InputError:
        assert w is not None
        assert not w.any()
        return
    json.dumps(diagnosis.to_dict(), allow_nan=False)
    assert str(diagnosis)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda X: diagnose(sparse.csr_array(X)), "Input X is sparse: diagnose needs dense rows"),
        (lambda X: diagnose(np.where(X[0, 0] == X, np.inf, X)), "infinity: column 0"),
        (lambda X: diagnose(X, model=coterie.KMeans(2)), "model must be fitted: call KMeans.fit"),
        (lambda X: diagnose(X, model=[0, 1]), "labels has 2 entries and X has 30 rows"),
        (lambda X: diagnose(X, sample_size=10), "sample_size must be a whole number of at least 100; got 10"),
        (lambda X: diagnose(X, sample_weight=np.zeros(30)), "sample_weight is zero for every row"),
        (lambda X: diagnose(X, random_state="x"), "random_state must be None, an integer"),
        (
            lambda X: diagnose(X @ X.T, model=coterie.KMedoids(2, metric="precomputed").fit(np.abs(X - X[:, 0]))),
            "diagnose supports only models of rows of numbers",
        ),
    ],
)
def test_errors_say_what_is_wrong_and_what_to_do(call, message):
    X = np.random.default_rng(0).normal(size=(30, 1))
    with pytest.raises((InputError, ParameterError), match=message):
        call(X)


@pytest.mark.usefixtures("short_searches")
def test_random_draws_of_one_check_do_not_change_another():
    """Fitting K-means draws random numbers, but the checks of rows stay the same."""
    X, y = faults.blobs(3, 3000)
    run = partial(diagnose, X, sample_size=500, random_state=9)
    default, with_labels = run(), run(model=y)
    for check in ("concentration", "evenly_spread", "duplicated_rows", "correlated_columns"):
        assert default[check] == with_labels[check]
