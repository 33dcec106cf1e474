"""Features of the shape of series, and what is said of clusters of series."""

import numpy as np
import pytest

from coterie.jobs import Job, run
from coterie.report.build import series_features
from coterie.report.text import as_text


def simple_features(values):
    """The features of one series, by NumPy functions for one series."""
    steps = np.arange(len(values))
    slope = np.polyfit(steps, values, 1)[0] if len(values) > 1 else 0.0
    differences = np.abs(np.diff(values))
    return [
        np.mean(values), slope * (len(values) - 1), np.ptp(values), np.argmax(values) + 1, np.argmin(values) + 1,
        differences.mean() if len(values) > 1 else 0.0,
    ]  # fmt: skip


def test_features_of_series_of_different_lengths_are_those_of_each_series(monkeypatch):
    monkeypatch.setattr(series_features, "ROWS", 4)
    rng = np.random.default_rng(0)
    series = [rng.normal(size=length) for length in (1, 2, 5, 9, 9, 3, 7)]
    X = np.full((len(series), 9), np.nan)
    for row, values in zip(X, series, strict=True):
        row[: len(values)] = values
    np.testing.assert_allclose(series_features.features(X), [simple_features(each) for each in series], atol=1e-12)


def bump(t, at):
    return np.exp(-(((t - at) / 0.08) ** 2))


@pytest.fixture(scope="module")
def shapes_result(tmp_path_factory):
    """Clusters that differ in the time of their peak, or in how often they turn; their means hardly differ."""
    t, rng = np.linspace(0, 1, 24), np.random.default_rng(0)
    shapes = [bump(t, 0.25), bump(t, 0.75), 0.5 * np.sin(10 * np.pi * t) + 0.2]
    X = np.array([shapes[i % 3] + rng.normal(0, 0.03, len(t)) for i in range(36)])
    path = tmp_path_factory.mktemp("series") / "series.csv"
    np.savetxt(path, X, delimiter=",", header=",".join(f"t{j}" for j in range(len(t))), comments="")
    return run(Job(path, k=3, algorithm="kmeans-dtw", names="auto"))


def test_clusters_of_series_are_described_by_their_shape(shapes_result):
    by_label = {shapes_result.labels[i]: i for i in range(3)}  # the first rows have the three shapes
    words = {by_label[one.label]: [trait.column for trait in one.stands_out_by] for one in shapes_result.clusters}
    assert "early maximum" in words[0]
    assert "late maximum" in words[1]
    assert words[2][0] == "large steps"


def test_names_and_summary_of_clusters_of_series_use_the_same_words(shapes_result):
    page = as_text(shapes_result)
    for one in shapes_result.clusters:
        assert one.name.split(", ")[0] == one.stands_out_by[0].column
        assert f"{one.stands_out_by[0].column} " in page
    assert "t3 " not in page


def test_a_feature_that_is_the_same_for_all_series_sets_no_cluster_apart():
    X = np.array([[0.1, 0.3, 0.2], [0.1, 0.3, 0.2], [0.1, 0.3, 0.2]]) + 1e6
    traits = series_features.series_traits(X, np.array([0, 1, 1]), 2, None)
    assert [trait.deviation for cluster in traits for trait in cluster] == [0.0] * 12
