"""Rules of clusters: they hold as printed, are short, and are honest."""

import json
import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.cluster import DBSCAN
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie.datasets import load_demo, make_blobs
from coterie.errors import InputError, ParameterError
from coterie.explanation import Condition, Rule
from coterie.explanation.columns import as_columns
from coterie.explanation.explain import search_sample

NUMBER = r"-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?"


def satisfied(text: str, frame: pd.DataFrame) -> np.ndarray:
    """The rows that satisfy a rule, from its text alone."""
    mask = np.ones(len(frame), bool)
    for part in text.split(" and "):
        between = re.fullmatch(rf"({NUMBER}) < (.+) ≤ ({NUMBER})", part)
        if between:
            x = frame[between[2]].to_numpy()
            mask &= (x > x.dtype.type(value(between[1]))) & (x <= x.dtype.type(value(between[3])))
            continue
        column, sign, right = re.fullmatch(r"(.+) ([>≤=]) (.+)", part).groups()
        x = frame[column].to_numpy()
        if x.dtype.kind == "O":
            mask &= np.isin(x, right.split(" or "))
        else:
            threshold = x.dtype.type(value(right))
            mask &= {">": x > threshold, "≤": x <= threshold, "=": x == threshold}[sign]
    return mask


def value(text: str) -> float:
    return float(text.replace(",", ""))


def random_table(seed: int, dtype=np.float64) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers of several scales, whole numbers, categories and missing values; and clusters that partly follow them."""
    rng = np.random.default_rng(seed)
    n = 300
    y = rng.integers(0, 4, n)
    frame = pd.DataFrame(
        {
            "money": (rng.lognormal(size=n) * 1000 * (1 + 3 * (y == 1))).astype(dtype),
            "small": (rng.normal(size=n) * 1e-6 + 5e-6 * (y == 2)).astype(dtype),
            "doors": np.where(y == 3, 5, rng.integers(2, 6, n)),
            "colour": np.where(rng.random(n) < 0.8, np.array(["red", "blue", "red", "green"])[y], "white"),
        }
    )
    frame.loc[rng.random(n) < 0.05, "money"] = np.nan
    return frame, y


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_rule_holds_as_printed(seed, dtype):
    frame, y = random_table(seed, dtype)
    explanation = coterie.explain(y, frame)
    for rule in explanation:
        mask = satisfied(rule.text, frame)
        assert rule.conditions
        assert (rule.fitting, rule.correct) == (mask.sum(), (mask & (y == int(rule.label))).sum())
        assert rule.rows == (y == int(rule.label)).sum()
        assert rule.coverage == pytest.approx(rule.correct / rule.rows)
        assert rule.precision == pytest.approx(rule.correct / rule.fitting)
        assert rule.phi == pytest.approx(np.corrcoef(mask, y == int(rule.label))[0, 1])


def test_clusters_that_are_apart_have_exact_rules_of_one_condition():
    X, y = make_blobs(300, centers=[[0, 0], [30, 0], [0, 30]], random_state=0)
    explanation = coterie.explain(y, X)
    assert [len(rule.conditions) for rule in explanation] == [2, 1, 1]
    assert all(rule.precision == rule.coverage == 1.0 for rule in explanation)
    assert explanation.cost_ratio == pytest.approx(1.0)
    assert "of 100 rows, 100% of rows that fit the rule" in str(explanation)


def test_penguins_are_described_in_their_own_units():
    table = load_demo("penguins")
    frame = pd.DataFrame({name: table[name] for name in table.columns}).dropna()
    numbers = frame[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].astype(float)
    model = make_pipeline(StandardScaler(), coterie.KMeans(3, n_init=10, random_state=0)).fit(numbers)
    explanation = coterie.explain(model, numbers)
    assert all(rule.describes and len(rule.conditions) <= 3 for rule in explanation)
    assert min(rule.phi for rule in explanation) > 0.8
    assert 1.0 <= explanation.cost_ratio < 1.2
    species = coterie.explain(frame["species"], frame.drop(columns="species"))
    assert [rule.label for rule in species] == ["Adelie", "Chinstrap", "Gentoo"]


def test_clusters_that_follow_no_column_have_no_short_rule():
    rng = np.random.default_rng(0)
    explanation = coterie.explain(rng.integers(0, 4, 1000), rng.normal(size=(1000, 5)))
    assert not any(rule.describes for rule in explanation)
    assert all(str(rule).startswith("no short rule") for rule in explanation)


def test_a_large_cluster_is_not_described_by_a_condition_that_all_rows_satisfy():
    rng = np.random.default_rng(0)
    y = (rng.random(1000) < 0.05).astype(int)
    explanation = coterie.explain(y, rng.normal(size=(1000, 3)))
    assert not explanation[0].describes


def test_a_ring_around_another_cluster_needs_ranges():
    rng = np.random.default_rng(0)
    inner = rng.uniform(-1, 1, size=(200, 2))
    outer = rng.uniform(-10, 10, size=(2000, 2))
    outer = outer[np.abs(outer).max(axis=1) > 2]
    explanation = coterie.explain([0] * 200 + [1] * len(outer), np.concatenate([inner, outer]))
    assert explanation[0].coverage == 1.0
    assert explanation[0].precision == 1.0
    assert [condition.lower is not None and condition.upper is not None for condition in explanation[0].conditions]


def test_weight_two_is_the_row_twice():
    frame, y = random_table(0)
    w = np.random.default_rng(1).integers(0, 3, len(y))
    weighted = coterie.explain(y, frame, sample_weight=w)
    repeated = coterie.explain(np.repeat(y, w), frame.loc[frame.index.repeat(w)].reset_index(drop=True))
    for one, other in zip(weighted, repeated, strict=True):
        assert one.phi == pytest.approx(other.phi, abs=0.05)
    for rule in weighted:
        mask, inside = satisfied(rule.text, frame), y == int(rule.label)
        assert rule.coverage == pytest.approx(w[mask & inside].sum() / w[inside].sum())
        assert rule.precision == pytest.approx(w[mask & inside].sum() / w[mask].sum())


def test_a_cluster_of_rows_without_a_category_has_no_rule():
    frame = pl.DataFrame({"a": ["yes", "no", "yes", "no", None, None]})
    explanation = coterie.explain([0, 1, 0, 1, 2, 2], frame)
    assert [str(rule).partition(":")[0] for rule in explanation] == ["a = yes", "a = no", "no short rule"]


def test_noise_has_no_rule_but_counts_against_rules():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(100, 1)), rng.normal(size=(100, 1)) + 20, rng.uniform(-1, 1, size=(10, 1))])
    y = np.repeat([0, 1, -1], [100, 100, 10])
    explanation = coterie.explain(y, X)
    assert [rule.label for rule in explanation] == ["0", "1"]
    assert explanation.noise == 10
    assert explanation[0].coverage == 1.0
    assert explanation[0].precision == pytest.approx(100 / 110)
    assert explanation[1].precision == 1.0


def test_labels_of_any_type_are_accepted():
    X, y = make_blobs(60, centers=[[0, 0], [9, 9]], random_state=0)
    names = np.array(["north", "south"])[y]
    assert coterie.explain(names.tolist(), X)["north"].label == "north"
    assert len(coterie.explain(pl.Series(names), pl.DataFrame(X, schema=["a", "b"]))) == 2
    assert coterie.explain(y == 1, X)[True].label == "True"


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_of_any_library_give_the_same_rules(library):
    frame, y = random_table(1)
    as_pandas = coterie.explain(y, frame)
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    if library is pl:
        other = pl.DataFrame(columns).with_columns(pl.col("money").fill_nan(None))
    else:
        other = pd.DataFrame(columns).astype({"colour": "category"})
    assert coterie.explain(y, other) == as_pandas


def test_a_model_is_explained_by_its_labels_or_predictions():
    X, _ = make_blobs(200, centers=3, random_state=2)
    model = coterie.KMeans(3, random_state=0).fit(X)
    assert coterie.explain(model, X) == coterie.explain(model.labels_, X)
    assert coterie.explain(model, X[:50]) == coterie.explain(model.predict(X[:50]), X[:50])
    mixture = coterie.GaussianMixture(2, random_state=0).fit(X)
    assert len(coterie.explain(mixture, X)) == 2
    with pytest.raises(InputError, match="X has 50 rows, but model was fitted to 200 rows and cannot predict"):
        coterie.explain(DBSCAN().fit(X), X[:50])


def test_rows_beyond_the_sample_are_counted(monkeypatch):
    module = sys.modules["coterie.explanation.explain"]  # the function has the same name
    monkeypatch.setattr(module, "SAMPLE", 100)
    monkeypatch.setattr(module, "MIN_SAMPLE", 100)
    monkeypatch.setattr(module, "MIN_CLUSTER_ROWS", 20)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = np.where(np.arange(3000) < 30, 1, 0)
    X[:30] += 12
    explanation = coterie.explain(y, X)
    assert explanation.searched_rows < 200
    assert explanation.rows == 3000
    assert (explanation[1].correct, explanation[1].fitting) == (30, 30)


def test_one_cluster_and_constant_columns_have_no_rule():
    explanation = coterie.explain([0, 0, 0], [[1.0], [2.0], [3.0]])
    assert not explanation[0].describes
    assert explanation.cost_ratio is None
    constant = coterie.explain([0, 1, 1], np.ones((3, 2)))
    assert not any(rule.describes for rule in constant)


def test_the_cost_ratio_is_that_of_the_tree_it_prints():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = coterie.KMeans(2, n_init=5, random_state=0).fit(X)
    explanation = coterie.explain(model, X)
    column, threshold = re.match(r"column (\d) ≤ (\S+):", explanation.tree).groups()
    leaf = X[:, int(column)] <= value(threshold)
    cost = sum(((X[side] - X[side].mean(axis=0)) ** 2).sum() for side in (leaf, ~leaf))
    assert explanation.cost_ratio == pytest.approx(cost / model.inertia_, rel=1e-6)
    assert explanation.cost_ratio > 1


def test_the_result_is_json_and_readable():
    frame, y = random_table(2)
    explanation = coterie.explain(y, frame)
    plain = json.loads(json.dumps(explanation.to_dict()))
    assert plain["rules"][0]["conditions"][0].keys() == {"column", "lower", "upper", "values"}
    assert len(str(explanation).splitlines()) == len(explanation) + 1
    with pytest.raises(KeyError, match="no cluster 9"):
        explanation[9]


def test_invalid_tables_are_rejected_with_a_remedy():
    from scipy import sparse

    with pytest.raises(InputError, match="sparse"):
        coterie.explain([0, 1], sparse.csr_array(np.eye(2)))
    with pytest.raises(InputError, match="all labels are -1"):
        coterie.explain([-1, -1], np.eye(2))
    with pytest.raises(InputError, match="2 entries"):
        coterie.explain([0, 1], np.eye(3))
    with pytest.raises(ParameterError, match="max_conditions"):
        coterie.explain([0, 1], np.eye(2), max_conditions=0)
    with pytest.raises(InputError, match="data frame"):
        as_columns(np.array(["a", "b"]))


def test_a_threshold_that_is_a_value_of_the_column_is_compared_exactly():
    x = np.repeat(np.arange(21.0), 3)[:, np.newaxis]
    explanation = coterie.explain((x[:, 0] > 12).astype(int), x)
    assert [rule.text for rule in explanation] == ["column 0 ≤ 12", "column 0 > 12"]
    assert [(rule.fitting, rule.correct) for rule in explanation] == [(39, 39), (24, 24)]


def test_numbers_of_single_precision_are_compared_and_printed_in_it():
    x = np.repeat(np.array([0.1, 0.2, 0.3], np.float32), 10)[:, np.newaxis]
    rule = coterie.explain(np.repeat([0, 1, 0], 10), x)[1]
    assert rule.text == "column 0 = 0.2"
    assert (rule.fitting, rule.correct) == (10, 10)
    columns = as_columns(x)
    assert columns.satisfies(Condition("column 0", lower=0.1)).sum() == 20
    assert columns.satisfies(Condition("column 0", upper=0.3)).sum() == 30


def test_a_rule_must_say_more_than_the_size_of_its_cluster():
    condition = (Condition("x", lower=0.0),)
    assert not Rule("0", condition, 95, 90, 86, coverage=0.9, precision=0.95, phi=0.1).describes
    assert Rule("0", condition, 95, 90, 90, coverage=0.95, precision=1.0, phi=0.8).describes


def test_a_sample_has_the_weight_of_each_cluster():
    codes = np.repeat([-1, 0, 1], [500, 60_000, 50])
    w = np.random.default_rng(0).random(len(codes))
    rows, scaled = search_sample(codes, w, 5)
    assert len(rows) < 21_000
    assert (codes[rows] == 1).sum() == 50
    assert np.bincount(codes[rows] + 1, scaled) == pytest.approx(np.bincount(codes + 1, w))


def test_years_have_no_separator_of_thousands():
    assert str(Condition("model_year", lower=1931.0, upper=1999.5)) == "1931 < model_year ≤ 1999.5"
    assert str(Condition("Year", values=(1931.0,))) == "Year = 1931"
    assert str(Condition("yearly income", lower=32_000.0)) == "yearly income > 32,000"
    assert str(Condition("weight", lower=1931.0)) == "weight > 1,931"
