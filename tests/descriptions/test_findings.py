"""Numbers in the findings of `diagnose` are recomputed from the rows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.metrics import silhouette_samples

from coterie import KMeans, diagnose
from descriptions import recomputed as again

rng = np.random.default_rng(0)
GROUP = np.arange(240) % 3
BLOBS = rng.normal(5.0 * np.stack([GROUP, GROUP == 1], axis=1), 0.8)
GAPS = np.where(np.arange(480).reshape(240, 2) % 37 == 3, np.nan, BLOBS)
UP = np.array([0, 0.1])
SMALL = np.r_[np.zeros(237, int), 1, 1, 1]


def sentence(X, words, labels=None):
    """The only finding with these words."""
    (found,) = [each.sentence for each in diagnose(X, model=labels, random_state=0).findings if words in each.sentence]
    return found


def agree(text, pattern, *values):
    shown = re.search(pattern, text)
    assert shown, text
    assert len(shown.groups()) == len(values)
    wrong = [(cell, value) for cell, value in zip(shown.groups(), values, strict=True) if not again.agrees(cell, value)]
    assert not wrong, text


def test_incomplete_and_repeated_rows_are_counted():
    incomplete = np.isnan(GAPS).any(axis=1)
    agree(sentence(GAPS, "missing values"), r"^(\d+) of (\d+) rows \(([\d.]+%)\).*use only the (\d+) complete",
          incomplete.sum(), 240, incomplete.mean(), (~incomplete).sum())  # fmt: skip
    X = np.concatenate([BLOBS, BLOBS[:80]])
    agree(sentence(X, "duplicates"), r"^(\d+) of (\d+) rows \(([\d.]+%)\).*only (\d+) distinct", 80, 320, 0.25, 240)


def test_spreads_of_columns():
    X = BLOBS * [1, 500]
    wide, narrow = X.std(axis=0)[::-1]
    agree(sentence(X, "standard deviation"), r"is ([\d,]+) times that of", wide / narrow)
    shares = X.var(axis=0) / X.var(axis=0).sum()
    agree(sentence(X, "alone accounts"), r"accounts for ([\d.]+%) of all", shares.max())


def test_columns_with_the_same_information():
    X = np.column_stack([BLOBS, 2 * BLOBS[:, 0] + rng.normal(0, 0.01, 240)])
    r = np.abs(np.corrcoef(X, rowvar=False) - np.eye(3)).max()
    agree(sentence(X, "correlated"), r"^(\d+) pairs? of columns .*\|r\| up to ([\d.]+)\)", 1, r)
    flat = np.column_stack([BLOBS, np.ones(240)])
    agree(sentence(flat, "almost no information"), r"^(\d+) of (\d+) columns", 1, 3)


def test_rows_of_clusters():
    agree(
        sentence(BLOBS, "as large as", SMALL), r"^Cluster (\d) is (\d+) times .* \(([\d.]+%) and ([\d.]+%)",
        0, 79, 237 / 240, 3 / 240,
    )  # fmt: skip
    mixed = np.where(np.arange(240) % 4 == 0, (GROUP + 1) % 3, GROUP)
    values = silhouette_samples(BLOBS, mixed)
    agree(
        sentence(BLOBS, "nearer to another cluster", mixed), r"^([\d.]+%) of (\d+) rows.* silhouette is ([−\d.]+)\.",
        (values < 0).mean(), 240, values.mean(),
    )  # fmt: skip


def test_a_better_solution_is_one_of_all_rows():
    one, others = BLOBS[GROUP == 1].mean(axis=0), BLOBS[GROUP != 1].mean(axis=0)
    model = KMeans(3, init=np.stack([one + UP, one - UP, others]), n_init=1, search="none").fit(BLOBS)
    best = SklearnKMeans(3, n_init=20, random_state=0).fit(BLOBS).inertia_
    text = sentence(BLOBS, "above the inertia", model)
    agree(text, r"is ([\d.]+%) above .*all (\d+) rows", model.inertia_ / best - 1, 240)
    everything = " ".join(each.sentence for each in diagnose(BLOBS, model=GROUP, random_state=0).findings)
    assert "above the inertia" not in everything


@pytest.mark.parametrize("labels", [None, GROUP], ids=["rows", "clusters"])
def test_separated_rows_have_no_finding(labels):
    assert not diagnose(BLOBS * 2, model=labels, random_state=0).findings
