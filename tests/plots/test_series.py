"""Lines of time series by cluster."""

import numpy as np
import pandas as pd
import pytest

from coterie import KMedoids, TimeSeriesKMeans, plots
from coterie.distances import pairwise
from coterie.errors import ParameterError
from coterie.metrics import silhouette_score
from coterie.plots.series_display import LINES, POINTS

pytest.importorskip("matplotlib")

rng = np.random.default_rng(0)
SERIES = [np.sin(np.arange(rng.integers(15, 25)) / 3 + rng.uniform()) * (1 if i % 2 else -2) for i in range(30)]
MODEL = TimeSeriesKMeans(2, random_state=0).fit(SERIES)


def test_lines_are_the_series_of_each_cluster():
    display = plots.SeriesDisplay.from_estimator(MODEL, SERIES)
    for j in range(2):
        members = [SERIES[i] for i in np.flatnonzero(MODEL.labels_ == j)]
        assert len(display.lines[j]) == display.sizes[j] == len(members)
        for line, values in zip(display.lines[j], members, strict=True):
            np.testing.assert_array_equal(line, np.column_stack([np.arange(len(values)), values]))
        lengths = [len(values) for values in members]
        assert display.lengths[j].tolist() == [min(lengths), max(lengths)]


@pytest.mark.parametrize("metric, name", [
    ("dtw", "DTW barycenter"), ("softdtw", "soft-DTW barycenter"), ("euclidean", "mean"),
])  # fmt: skip
def test_centers_are_those_of_the_model(metric, name):
    X = np.array([values[:15] for values in SERIES])
    model = TimeSeriesKMeans(2, metric=metric, random_state=0).fit(X)
    display = plots.SeriesDisplay.from_estimator(model, X)
    assert display.center == name
    for center, expected in zip(display.centers, model.cluster_centers_, strict=True):
        np.testing.assert_array_equal(center[:, 1], expected)


def test_labels_have_means_of_the_series_that_are_long_enough():
    display = plots.SeriesDisplay.from_predictions([[1, 3], [3, 5, 7], [0, 0]], ["a", "a", "b"])
    assert display.center == "mean"
    np.testing.assert_array_equal(display.centers[0], [[0, 2], [1, 4], [2, 7]])


def test_a_medoid_is_called_a_medoid():
    X = np.array([values[:15] for values in SERIES])
    display = plots.SeriesDisplay.from_estimator(KMedoids(2, random_state=0).fit(X), X)
    assert display.center == "medoid"


def test_a_table_of_series_that_end_early_is_like_a_list():
    width = max(map(len, SERIES))
    table = pd.DataFrame([np.pad(x, (0, width - len(x)), constant_values=np.nan) for x in SERIES])
    one, other = (plots.SeriesDisplay.from_predictions(X, MODEL.labels_) for X in (table, SERIES))
    assert one.to_dict() == other.to_dict()


def test_many_series_are_sampled_and_the_caption_says_so():
    X = rng.normal(size=(200, 10))
    display = plots.series(np.zeros(200), X)
    assert len(display.lines[0]) == LINES
    assert "up to 40 series of each cluster" in " ".join(display.get_title(loc="left").split())


def test_a_long_series_keeps_its_extremes():
    x = rng.normal(size=5000)
    x[1234] = 99
    display = plots.SeriesDisplay.from_predictions([x, x[:3]], [0, 0])
    line = display.lines[0][0]
    assert len(line) <= POINTS + 2
    assert line[:, 1].max() == 99
    assert (line[0, 0], line[-1, 0]) == (0, 4999)
    assert (x[line[:, 0].astype(int)] == line[:, 1]).all()


def test_channels_are_drawn_one_at_a_time():
    X = rng.normal(size=(6, 8, 3))
    display = plots.series([0, 0, 0, 1, 1, 1], X, channel=2)
    np.testing.assert_array_equal(display.lines[0][0][:, 1], X[0, :, 2])
    assert "channel 2 of 3" in display.get_title(loc="left")
    with pytest.raises(ParameterError, match="channel=3 but the series have 3 channels"):
        plots.series([0, 0, 0, 1, 1, 1], X, channel=3)


def test_panels_share_their_axes_and_can_be_drawn_into_given_axes():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = plots.series(MODEL, SERIES, ax=ax)
    assert display.ax_ is ax
    assert len(display.panels_) == 2
    assert len({panel.get_ylim() for panel in display.panels_}) == 1


def test_many_clusters_show_the_largest():
    labels = np.repeat(np.arange(30), 2)[:59]
    display = plots.SeriesDisplay.from_predictions(rng.normal(size=(59, 5)), labels)
    assert len(display.shown) == 24
    assert 29 not in display.shown


def test_silhouettes_of_series_are_those_of_time_warping():
    display = plots.SilhouetteDisplay.from_estimator(MODEL, SERIES)
    expected = silhouette_score(pairwise(SERIES, metric="dtw"), MODEL.labels_, metric="precomputed")
    assert display.mean == pytest.approx(expected)
    narrow = TimeSeriesKMeans(2, window=1, random_state=0).fit(SERIES)
    distances = pairwise(SERIES, metric="dtw", window=1)
    expected = silhouette_score(distances, narrow.labels_, metric="precomputed")
    assert plots.SilhouetteDisplay.from_estimator(narrow, SERIES).mean == pytest.approx(expected)
