"""Indices of two labellings: against scikit-learn, counting by hand, and laws."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, log

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from coterie import metrics
from coterie.errors import InputError, ParameterError
from coterie.metrics.contingency import contingency_table
from coterie.metrics.labels import as_labels
from coterie.metrics.mutual_info import expected_mutual_information
from coterie.metrics.pair_counting import pairs

rng = np.random.default_rng(0)
AVERAGES = ("min", "geometric", "arithmetic", "max")
BOTH_WAYS = {
    "rand_score": metrics.rand_score,
    "adjusted_rand_score": metrics.adjusted_rand_score,
    "mutual_info_score": metrics.mutual_info_score,
    "adjusted_mutual_info_score": metrics.adjusted_mutual_info_score,
    "normalized_mutual_info_score": metrics.normalized_mutual_info_score,
    "fowlkes_mallows_score": metrics.fowlkes_mallows_score,
}
ALL = BOTH_WAYS | {
    "v_measure": lambda *labels, **how: metrics.homogeneity_completeness_v_measure(*labels, **how)[2],
    "purity_score": metrics.purity_score,
    "accuracy": lambda *labels, **how: metrics.matched_confusion(*labels, **how).accuracy,
}
labelling = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 5)), min_size=1, max_size=40)


def draw(n, k, m):
    a = rng.integers(0, k, n)
    return a, np.where(rng.random(n) < 0.6, a % m, rng.integers(0, m, n))


LABELS = [draw(300, 4, 4), draw(1000, 12, 5), draw(60, 30, 2), draw(500, 250, 200), (np.arange(9), np.zeros(9, int))]


@pytest.mark.parametrize("name", BOTH_WAYS)
@pytest.mark.parametrize("a, b", LABELS)
def test_scikit_learn_agrees(name, a, b):
    want = getattr(sk, name)(a, b)
    assert BOTH_WAYS[name](a, b) == pytest.approx(want, abs=1e-12)
    assert BOTH_WAYS[name](b, a) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("a, b", LABELS)
def test_matrices_and_v_measures_are_scikit_learns(a, b):
    names = np.array(list("zyxwvutsrqponmlkjihgfedcba"))[a % 26]
    for labels in ((a, b), (b, a), (names, b)):
        expected = contingency_matrix(*labels)
        np.testing.assert_array_equal(metrics.contingency_matrix(*labels), expected)
        np.testing.assert_array_equal(metrics.contingency_matrix(*labels, eps=0.5), expected + 0.5)
        table = metrics.contingency_matrix(*labels, sparse=True, dtype=np.float32)
        np.testing.assert_array_equal(table.toarray(), expected)
        assert (table.format, table.dtype) == ("csr", np.float32)
        np.testing.assert_array_equal(metrics.pair_confusion_matrix(*labels), pair_confusion_matrix(*labels))
        for name in ("homogeneity_score", "completeness_score", "v_measure_score"):
            assert getattr(metrics, name)(*labels) == pytest.approx(getattr(sk, name)(*labels), abs=1e-12)
        assert metrics.v_measure_score(*labels, beta=0.3) == pytest.approx(sk.v_measure_score(*labels, beta=0.3))
        for counts in (expected, table):
            score = metrics.mutual_info_score(None, None, contingency=counts)
            assert score == pytest.approx(metrics.mutual_info_score(*labels))


def test_weights_of_matrices_are_numbers_of_rows():
    a, b = LABELS[0]
    w = rng.integers(0, 4, len(a))
    repeated = np.repeat(a, w), np.repeat(b, w)
    for name in ("contingency_matrix", "pair_confusion_matrix", "v_measure_score"):
        score = getattr(metrics, name)
        np.testing.assert_allclose(score(a, b, sample_weight=w), score(*repeated))
    for counts in ([1, 2], [[1, -1]], [[0, 0]]):
        with pytest.raises(InputError, match="contingency must be a matrix"):
            metrics.mutual_info_score(None, None, contingency=counts)
    with pytest.raises(ParameterError, match="eps must be None with sparse=True"):
        metrics.contingency_matrix(a, b, eps=0.1, sparse=True)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("a, b", LABELS)
def test_all_averages_are_scikit_learns(average, a, b):
    for name in ("normalized_mutual_info_score", "adjusted_mutual_info_score"):
        want = getattr(sk, name)(a, b, average_method=average)
        assert BOTH_WAYS[name](a, b, average_method=average) == pytest.approx(want, abs=1e-10)


@pytest.mark.parametrize("beta", [0.0, 0.6, 1.0, 1.8])
@pytest.mark.parametrize("a, b", LABELS)
def test_v_measure_is_scikit_learns(beta, a, b):
    want = sk.homogeneity_completeness_v_measure(a, b, beta=beta)
    assert metrics.homogeneity_completeness_v_measure(a, b, beta=beta) == pytest.approx(want, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(labelling)
def test_pairs_are_counted_as_by_hand(rows):
    a, b = zip(*rows, strict=True)
    agree, both, true, pred = 0, 0, 0, 0
    for i, j in combinations(range(len(a)), 2):
        one, other = a[i] == a[j], b[i] == b[j]
        agree, both, true, pred = agree + (one == other), both + (one and other), true + one, pred + other
    every = comb(len(a), 2)
    assert metrics.rand_score(a, b) == (agree / every if every else 1.0)
    if true and pred:
        assert metrics.fowlkes_mallows_score(a, b) == pytest.approx(both / (true * pred) ** 0.5, rel=1e-14)
    if every and (denominator := Fraction(true + pred, 2) - Fraction(true * pred, every)):
        want = (both - Fraction(true * pred, every)) / denominator
        assert metrics.adjusted_rand_score(a, b) == float(want)


@settings(max_examples=60, deadline=None)
@given(labelling, st.sampled_from(sorted(ALL)))
def test_indices_are_numbers_in_their_range(rows, name):
    a, b = (list(labels) for labels in zip(*rows, strict=True))
    value = ALL[name](a, b)
    low = {"adjusted_rand_score": -0.5, "adjusted_mutual_info_score": -np.inf}.get(name, 0.0)
    assert low <= value <= (log(5) + 1e-12 if name == "mutual_info_score" else 1.0)
    if name != "mutual_info_score":
        assert ALL[name](a, a) == 1.0


@settings(max_examples=60, deadline=None)
@given(labelling, st.sampled_from(sorted(ALL)), st.data())
def test_weight_two_is_the_row_twice_and_zero_no_row(rows, name, data):
    a, b = (np.array(labels) for labels in zip(*rows, strict=True))
    w = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(a), max_size=len(a))))
    if w.any():
        want = ALL[name](np.repeat(a, w), np.repeat(b, w))
        assert ALL[name](a, b, sample_weight=w) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_names_of_clusters_do_not_matter(name):
    a, b = draw(200, 5, 6)
    want = ALL[name](a, b)
    text = np.array(["zero", "one", "two", "three", "four", "five"])
    tuples = [(0, int(label)) for label in b]
    for renamed in ((a * 1.5, text[b]), (-a, (b * 10**12).tolist()), (text[a].tolist(), tuples)):
        assert ALL[name](*renamed) == pytest.approx(want, abs=1e-12)


def test_labels_are_taken_from_frames_and_lists_of_any_kind():
    a, b = draw(50, 3, 3)
    want = metrics.adjusted_rand_score(a, b)
    text = np.array(["x", "y", "z"])[b]
    sets, table = [frozenset([label]) for label in text], {"c": text}
    columns = [pd.Series(text), pd.DataFrame(table), pd.Categorical(text), pl.Series(text), pl.DataFrame(table)]
    for labels in (*columns, pd.Series(b, dtype="Int64"), sets):
        assert metrics.adjusted_rand_score(a, labels) == want
    assert metrics.rand_score([1, "1", 1], [0, 1, 0]) == 1.0  # a number is not its text
    assert metrics.rand_score([True, 1, 0], [1, 1, 0]) == 1.0


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_numbers_at_the_ends_of_their_type_are_labels(dtype):
    ends = np.iinfo(dtype)
    for labels in ([ends.min, ends.max, ends.min], [ends.max - 1, ends.max, ends.max - 1]):
        found = as_labels(np.array(labels, dtype))
        assert found.codes.tolist() == [0, 1, 0]
        assert found.names.tolist() == labels[:2]


def test_a_million_rows_do_not_overflow():
    a, b = np.repeat([0, 1], 500_000), np.tile([0, 1], 500_000)
    n, half, quarter = 10**6, comb(500_000, 2), comb(250_000, 2)
    assert metrics.rand_score(a, b) == float(Fraction(comb(n, 2) + 2 * 4 * quarter - 4 * half, comb(n, 2)))
    expected = Fraction(4 * half * half, comb(n, 2))
    want = (4 * quarter - expected) / (2 * half - expected)
    assert metrics.adjusted_rand_score(a, b) == float(want)
    m = 10**11  # as many rows as no memory holds
    both, true, pred, every = (
        2 * comb(m, 2) + comb(2 * m, 2),
        2 * comb(2 * m, 2),
        comb(m, 2) + comb(3 * m, 2),
        comb(4 * m, 2),
    )
    expected = Fraction(true * pred, every)
    want = (both - expected) / (Fraction(true + pred, 2) - expected)
    assert metrics.adjusted_rand_score([0, 0, 1], [0, 1, 1], sample_weight=[m, m, 2 * m]) == float(want)
    assert pairs(np.array([m, m])) == 2 * comb(m, 2)


def test_expected_mutual_information_is_the_mean_over_all_labellings():
    a, b = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 1])
    every = [metrics.mutual_info_score(a, rng.permutation(b)) for _ in range(4000)]
    want = expected_mutual_information(contingency_table(a, b))
    assert abs(np.mean(every) - want) < 4 * np.std(every) / len(every) ** 0.5
    exact = [metrics.mutual_info_score(a, np.isin(np.arange(6), ones)) for ones in combinations(range(6), 4)]
    assert np.mean(exact) == pytest.approx(want, rel=1e-13)


def test_expected_mutual_information_of_many_rows_keeps_its_digits():
    """Against sums over all overlaps, in exact fractions but for the logarithms."""
    sizes, others, n = [700, 300], [550, 450], 1000
    want = 0.0
    for x in sizes:
        for y in others:
            for shared in range(max(1, x + y - n), min(x, y) + 1):
                chance = Fraction(comb(y, shared) * comb(n - y, x - shared), comb(n, x))
                want += float(chance) * shared / n * log(n * shared / (x * y))
    table = contingency_table(np.repeat([0, 1], sizes), np.repeat([0, 1], others))
    assert expected_mutual_information(table) == pytest.approx(want, rel=1e-11)


def test_random_labels_score_about_zero():
    a, b = rng.integers(0, 50, 500), rng.integers(0, 40, 500)
    assert metrics.normalized_mutual_info_score(a, b) > 0.3
    assert abs(metrics.adjusted_mutual_info_score(a, b)) < 0.05
    assert abs(metrics.adjusted_rand_score(a, b)) < 0.02


def test_purity_and_matching_by_hand():
    true, pred = ["x"] * 5 + ["y"] * 3 + ["z"] * 2, [0, 0, 0, 1, 1, 1, 1, 1, 2, 0]
    assert metrics.purity_score(true, pred) == 0.7
    found = metrics.matched_confusion(true, pred)
    assert found.table.tolist() == [[3, 2, 0], [0, 3, 0], [1, 0, 1]]
    assert found.matching == {0: "x", 1: "y", 2: "z"}
    assert found.accuracy == 0.7
    more = metrics.matched_confusion([0, 0, 1, 1], ["b", "c", "a", "a"])
    assert more.clusters.tolist() in (["b", "a", "c"], ["c", "a", "b"])
    assert more.accuracy == 0.75
    fewer = metrics.matched_confusion([0, 1, 2, 2], [5, 5, 7, 7], sample_weight=[1, 2, 1, 0.5])
    assert fewer.matching == {5: 1, 7: 2}
    assert fewer.accuracy == pytest.approx(3.5 / 4.5)


def test_matching_is_the_best_of_all():
    from itertools import permutations

    a, b = rng.integers(0, 5, 100), rng.integers(0, 5, 100)
    best = max(np.mean(np.array(names)[b] == a) for names in permutations(range(5)))
    found = metrics.matched_confusion(a, b)
    assert found.accuracy == pytest.approx(best)
    assert np.trace(found.table) == pytest.approx(100 * best)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "a, b, message",
    [
        ([0, 1], [0, 1, 1], "labels_true has 2 entries and labels_pred has 3"),
        ([0.0, np.nan], [0, 1], "labels_true is missing .* for 1 rows, the first is row 1"),
        ([0, 1], ["a", None], "labels_pred is missing"),
        ([0, 1], pd.Series([1, None], dtype="Int64"), "labels_pred is missing"),
        ([], [], "labels_true is empty"),
        (
            np.zeros((2, 2)),
            [0, 1],
            r"labels_true must have one dimension, one label for each row; its shape is \(2, 2\)",
        ),
        ([{}, {}], [0, 1], "labels_true must be hashable values"),
    ],
)
def test_invalid_labels_are_errors(name, a, b, message):
    with pytest.raises(InputError, match=message):
        ALL[name](a, b)


@pytest.mark.parametrize("name", ["rand_score", "adjusted_rand_score", "adjusted_mutual_info_score"])
def test_counts_of_pairs_need_integer_weights(name):
    with pytest.raises(InputError, match=r"sample_weight must be integers for this index, .*; row 1 has 0.5"):
        ALL[name]([0, 1], [0, 1], sample_weight=[1, 0.5])


def test_invalid_options_are_errors():
    with pytest.raises(ParameterError, match="average_method must be 'min' or"):
        metrics.adjusted_mutual_info_score([0], [0], average_method="mean")
    with pytest.raises(ParameterError, match="beta must be"):
        metrics.homogeneity_completeness_v_measure([0], [0], beta=-1)
    with pytest.raises(InputError, match="sample_weight must not be negative"):
        metrics.purity_score([0, 1], [0, 1], sample_weight=[1, -1])
