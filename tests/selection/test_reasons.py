"""Every sentence of a reason is true: it is compared with the table of criteria, the labels and the rows."""

import re
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from coterie import choose_k
from coterie.datasets import make_blobs
from coterie.selection.votes import NAMES

pytestmark = pytest.mark.whole_search
NUMBER = r"(\d+(?:\.\d+)?(?:e-\d+)?)"


def rows_with_structure(name):
    rng = np.random.default_rng(3)
    centers = np.array([[0, 0], [3.6, 0], [20, 0], [23.6, 0], [10, 16], [13.6, 16]])
    newsletter = np.column_stack([rng.integers(0, 2, 400) * 2.0, rng.normal(0, 0.35, (400, 3))])
    tables = {
        "clear": lambda: make_blobs(300, 2, centers=4, cluster_std=0.4, random_state=0)[0],
        "uniform": lambda: rng.random((300, 3)),
        "pairs": lambda: (rng.normal(0, 1, (6, 60, 2)) + centers[:, None]).reshape(-1, 2),
        "overlap": lambda: np.concatenate([rng.normal((3.3 * i, 2 * (i % 2)), 1, (90, 2)) for i in range(3)]),
        "elongated": lambda: np.concatenate([rng.normal((0, 9 * i), (6, 1), (120, 2)) for i in range(2)]),
        "lognormal": lambda: rng.lognormal(size=(300, 3)),
        "simplex": lambda: rng.dirichlet(np.full(4, 0.5), 300),
        "outliers": lambda: np.concatenate([rng.normal(size=(300, 2)), [[40.0, 40], [41, 40]]]),
        "few rows": lambda: rng.normal(size=(40, 4)),
        "one column decides": lambda: newsletter,
        "unscaled": lambda: make_blobs(300, 2, centers=3, cluster_std=0.5, random_state=1)[0] * [1.0, 0.0],
        "survey": lambda: np.clip(np.round(3 + rng.normal(0, 1.2, (300, 4))), 1, 5),
    }
    X = tables[name]()
    return X + [0.0, 1.0] * rng.normal(0, 900.0, (300, 2)) if name == "unscaled" else X


TABLES = ("clear", "uniform", "pairs", "overlap", "elongated", "lognormal", "simplex", "outliers", "few rows",
          "one column decides", "unscaled", "survey")  # fmt: skip


def labels_of(result, k):
    return np.asarray(result.sweep.labels[result.sweep.ks.tolist().index(k)])


def smallest_share(result, k):
    return np.bincount(labels_of(result, k), minlength=k).min() / result.rows


def is_subset(result, few, many):
    """Whether nearly all rows of each of the many clusters are in one of the few."""
    table = np.zeros((many, few))
    np.add.at(table, (labels_of(result, many), labels_of(result, few)), 1)
    return table.max(axis=1).sum() >= 0.97 * table.sum()


def value(result, k, name):
    return next(row[name] for row in result.table() if row["k"] == k)


def check_votes(result, sentence):
    """Each list of criteria before 'prefer K' is exactly that of the votes for K."""
    text = re.split(r": (?!.* prefer)", sentence)[0]
    votes = {NAMES[vote.criterion].lower(): vote.k for vote in result.votes}
    ends = [0, *(match.end() for match in re.finditer(r"prefers? (?:\d+|one cluster)", text))]
    assert len(ends) > 1, sentence
    for start, stop in pairwise(ends):
        names, k = re.fullmatch(r"(.*) prefers? (\d+|one cluster)", text[start:stop]).groups()
        told = [name for name in votes if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", names.lower())]
        assert told, sentence
        assert {votes[name] for name in told} == {1 if k == "one cluster" else int(k)}, sentence


def check_cause(result, cause):
    k = result.recommended
    if match := re.fullmatch(r"the (\d+) clusters are subsets of fewer, larger clusters", cause):
        assert any(is_subset(result, few, int(match[1])) for few in range(2, int(match[1])) if few in result.sweep.ks)
    elif "less than 1 % of the rows" in cause:
        assert any(smallest_share(result, many) < 0.01 for many in result.ks.tolist() if many > k)
    elif cause.startswith("components overlap"):
        votes = {vote.criterion: vote.k for vote in result.votes}
        assert votes["bic"] > votes["icl"]
    elif "covariances that are not spherical" in cause:
        table = result.results["mixtures"]
        bic = dict(zip(table.structures, table.bic[table.ks.tolist().index(k)], strict=True))
        assert min(bic.values()) < bic["EII"]
    else:
        match = re.fullmatch(rf"the total support is {NUMBER} for (\d+) and {NUMBER} for (\d+)", cause)
        assert match, cause
        for shown, which in ((match[1], match[2]), (match[3], match[4])):
            assert float(shown) == pytest.approx(value(result, int(which), "support"), abs=0.006)


def check_sentence(result, X, sentence):
    k, test, total = result.recommended, result.tendency, result.votes
    judged = k if k > 1 else result.runner_up
    if "data without clusters" in sentence.lower() and "p = " in sentence:
        shown = float(re.search(rf"p = {NUMBER}", sentence)[1])
        assert shown == pytest.approx(test.p_value, rel=0.06)
        assert ("split better" in sentence) == (test.p_value < 0.01)
    elif sentence.startswith("No clear number"):
        assert result.strength == "none"
    elif sentence.startswith("No criterion with a weight prefers more"):
        assert all(vote.k in (None, 1) for vote in total if vote.weight > 0)
    elif match := re.match(rf"No criterion prefers (\d+); its total support is {NUMBER}", sentence):
        assert all(vote.k != int(match[1]) for vote in total if vote.weight > 0)
        assert float(match[2]) == pytest.approx(value(result, int(match[1]), "support"), abs=0.006)
    elif match := re.fullmatch(r"All (\d+) criteria (with a weight )?prefer (\d+)(; .*)?\.", sentence):
        counted = [vote for vote in total if vote.k is not None and (vote.weight > 0 or not match[2])]
        assert [vote.k for vote in counted] == [int(match[3])] * int(match[1])
    elif match := re.search(rf"The (\d+) clusters are not stable .*prediction strength {NUMBER}", sentence):
        strength = value(result, int(match[1]), "prediction_strength")
        assert int(match[1]) == judged
        assert float(match[2]) == pytest.approx(strength, abs=0.006)
        assert strength < 0.6
    elif match := re.search(rf"Only {NUMBER} of (\d+) clusters have fewer rows around them", sentence):
        apart = value(result, int(match[2]), "valleys")
        assert float(match[1]) == pytest.approx(apart, abs=0.06)
        assert apart < 0.7 * judged
    elif match := re.search(r"smallest of (?:the )?(\d+) clusters has less than 1 %", sentence):
        assert smallest_share(result, int(match[1])) < 0.01
    elif match := re.fullmatch(r"These (\d+) clusters are the values of (.*)\.", sentence):
        column = X[:, result.columns.index(match[2])]
        values = [set(column[labels_of(result, judged) == j]) for j in range(judged)]
        assert len(np.unique(column)) == int(match[1]) == judged
        assert all(len(each) == 1 for each in values)
    elif match := re.fullmatch(r"These (\d+) clusters are groups of the (\d+) values of (.*)\.", sentence):
        column = X[:, result.columns.index(match[3])]
        clusters = [set(labels_of(result, judged)[column == each]) for each in np.unique(column)]
        assert len(clusters) == int(match[2]) > int(match[1]) == judged
        assert all(len(each) == 1 for each in clusters)
    elif match := re.search(
        rf"clusters overlap: .* silhouette is {NUMBER}, and data without clusters reach {NUMBER}", sentence
    ):
        assert float(match[1]) == pytest.approx(test.best, abs=0.006)
        assert any(float(match[2]) == pytest.approx(each.mean(), abs=0.006) for each in test.references.values())
    elif match := re.search(r"(\d+) or (\d+) depends on the detail .* parts of the", sentence):
        assert is_subset(result, int(match[1]), int(match[2]))
    elif match := re.match(rf"The standard deviation of (.*) is {NUMBER} times that of (.*):", sentence):
        wide, narrow = (X[:, result.columns.index(name)].std() for name in (match[1], match[3]))
        assert float(match[2]) == pytest.approx(wide / narrow, abs=0.51)
        assert wide > 10 * narrow
    elif match := re.fullmatch(r"The runner-up is (\d+)\.", sentence):
        assert int(match[1]) == result.runner_up
    elif sentence == f"ICL of Gaussian mixtures prefers {result.runner_up}.":
        assert {vote.criterion: vote.k for vote in total}["icl"] == result.runner_up
    elif "is the largest number that was compared" in sentence:
        assert k == result.ks.max()
    elif sentence.startswith("The rows are a regular grid"):
        assert all(len(np.unique(column)) < 20 for column in X.T)
    elif "prefer" in sentence:
        check_votes(result, sentence)
        _, _, causes = sentence.partition(": ")
        if causes:
            for cause in causes.removesuffix(".").split("; "):
                check_cause(result, cause)
    else:
        assert sentence.startswith(("More rows, or what", "The table has only")), f"unknown sentence: {sentence}"


def sentences(result):
    for text in result.reasons:
        yield from re.split(r"(?<=\.) (?=[A-Z])", text)


@pytest.mark.parametrize("ks", ["auto", range(2, 6)], ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_every_sentence_is_true(name, ks):
    X = rows_with_structure(name)
    result = choose_k(X, ks, budget="normal" if ks == "auto" else "quick", random_state=0)
    assert result.reasons
    for sentence in sentences(result):
        check_sentence(result, X, sentence)


def test_a_column_of_two_values_that_decides_is_named():
    X = pl.DataFrame(rows_with_structure("one column decides"), schema=["Newsletter", "a", "b", "c"])
    result = choose_k(X, budget="quick", random_state=0)
    assert (result.recommended, result.strength) == (2, "weak")
    assert "These 2 clusters are the values of Newsletter." in result.reasons


@pytest.mark.parametrize(
    "values, k, strength, words",
    [
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], 3, "weak", "These 3 clusters are the values of plan."),
        ([[0], [2], [2.2]], 2, "weak", "These 2 clusters are groups of the 3 values of plan."),
        ([[0], [1]], 2, "weak", "These 2 clusters are the values of plan."),
    ],
)
def test_a_category_and_a_column_of_few_values_that_decide_are_named(values, k, strength, words):
    rng = np.random.default_rng(0)
    plan = np.array(values)[rng.integers(0, len(values), 300)]
    X = np.hstack([plan, rng.normal(0, 0.13, (300, 2))])
    names = ["plan"] if plan.shape[1] == 1 else [f"plan={value}" for value in ("basic", "pro", "team")]
    frame = pl.DataFrame(X, schema=[*names, "a", "b"])
    result = choose_k(frame, range(1, 5), budget="quick", random_state=0)
    assert (result.recommended, result.strength) == (k, strength)
    assert words in result.reasons
    if len(names) == 1:
        for sentence in sentences(result):
            check_sentence(result, X, sentence)


def test_a_column_that_most_criteria_follow_is_named_where_no_clusters_are_found():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"Newsletter": rng.integers(0, 2, 600) * 1.9, **{name: rng.normal(size=600) for name in "abc"}})
    result = choose_k(X, budget="quick", random_state=0)
    assert (result.recommended, result.has_clusters) == (1, False)
    assert "These 2 clusters are the values of Newsletter." in result.reasons


def test_a_column_beside_others_that_separate_the_clusters_too_does_not_decide():
    X, group = make_blobs(300, 3, centers=[[0, 0, 0], [8, 8, 8]], cluster_std=0.6, random_state=0)
    frame = pl.DataFrame(np.column_stack([X, group]), schema=["a", "b", "c", "plan"])
    result = choose_k(frame, budget="quick", random_state=0)
    assert (result.recommended, result.strength) == (2, "clear")


def test_columns_of_different_scale_are_named_where_no_clusters_are_found():
    X, _ = make_blobs(300, 2, centers=3, cluster_std=0.5, random_state=1)
    noise = np.random.default_rng(0).normal(0, 5000.0, (300, 1))
    result = choose_k(pl.DataFrame(np.hstack([X, noise]), schema=["a", "b", "income"]), budget="quick", random_state=0)
    assert result.recommended == 1
    assert "The standard deviation of income is" in result.reasons[-1]
    assert "standardise the columns first" in result.reasons[-1]
    scaled = choose_k((X - X.mean(axis=0)) / X.std(axis=0), budget="quick", random_state=0)
    assert "standardise" not in scaled.reason
    X, _ = make_blobs(300, 2, centers=3, cluster_std=0.5, random_state=0)
    clear = choose_k(pl.DataFrame(X * [1, 500]), budget="quick", random_state=0)  # by the wide column alone
    assert (clear.strength, "standardise the columns first" in clear.reasons[-1]) == ("clear", True)


@pytest.mark.parametrize("form", ["file", "arrow", "vectors"])
def test_columns_have_the_names_of_the_rows_that_are_read(tmp_path, form):
    X, _ = make_blobs(300, 2, centers=3, cluster_std=0.5, random_state=0)
    frame = pl.DataFrame(X * [1, 500], schema=["age", "income"])
    if form == "file":
        frame.write_parquet(tmp_path / "rows.parquet")
    vectors = frame.select(v=pl.concat_list("age", "income"))
    rows = {"file": tmp_path / "rows.parquet", "arrow": frame.to_arrow(), "vectors": vectors}[form]
    reason = choose_k(rows, budget="quick", random_state=0).reasons[-1]
    assert f"The standard deviation of {'v_1' if form == 'vectors' else 'income'} is" in reason


@pytest.mark.parametrize("seed", range(3))
def test_round_clusters_are_not_called_elongated(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal((3.4 * i, 3 * (i % 2)), 1, (150, 2)) for i in range(3)])
    result = choose_k(X, random_state=0)
    assert result.recommended == 3 or "not spherical" not in result.reason


def test_of_weighted_rows_small_clusters_have_little_weight():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal((9.0 * i, 0), 0.4, (60, 2)) for i in range(3)])
    w = np.where(np.arange(180) < 60, 0.02, 1.0)  # a third of the rows
    result = choose_k(X, range(1, 5), sample_weight=w, budget="quick", random_state=0)
    text = " ".join(result.reasons)
    assert "less than 1 % of the weight" in text
    assert "of the rows." not in text
