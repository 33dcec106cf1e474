"""Readability of figures: ticks, captions, colours, scales."""

from dataclasses import replace

import numpy as np
import pytest

from coterie import FuzzyCMeans, GaussianMixture, KMeans, Mixture, choose_k, plots
from coterie.datasets import make_blobs
from coterie.errors import ParameterError
from coterie.selection import gap_statistic, mixture_table, stability, sweep

pytest.importorskip("matplotlib")

X = make_blobs(150, 2, centers=3, cluster_std=0.6, random_state=0)[0]
WIDE = make_blobs(150, 5, centers=3, cluster_std=2.0, random_state=0)[0]


def ticks(ax):
    low, high = ax.get_xlim()
    return [float(at) for at in ax.get_xticks() if low <= at <= high]


# over K


@pytest.mark.parametrize("ks", [[30, 40, 50, 60], [3], [1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("name", ["elbow", "gap", "stability", "information"])
def test_ticks_are_at_the_numbers_of_clusters(name, ks):
    made = {
        "elbow": lambda: sweep(KMeans(n_init=1, random_state=0), X, ks),
        "gap": lambda: gap_statistic(X, ks, n_references=2, random_state=0),
        "stability": lambda: stability(KMeans(n_init=1), X, ks, n_resamples=2, random_state=0),
        "information": lambda: mixture_table(
            X[:, :1], [k for k in ks if k < 10] or [2, 4, 6], structures=["E"], random_state=0
        ),
    }
    found = made[name]()
    ax = getattr(plots, name)(found)
    assert ticks(ax) == [float(k) for k in found.ks]
    assert [text.get_text() for text in ax.get_xticklabels()] == [str(k) for k in found.ks]


def test_ticks_of_many_numbers_of_clusters_leave_room_for_each_other():
    display = plots.ElbowDisplay(np.array([1, 2, 3, 4, 100, 200, *range(201, 240)]), np.arange(45.0), None, None)
    shown = ticks(display.ax_)
    assert set(shown) <= set(display.ks.tolist())
    assert shown[0] == 1
    assert np.diff(shown).min() >= 238 / 14


def test_the_axis_label_says_that_lower_is_better():
    chosen = choose_k(X, range(1, 5), criteria=["silhouette", "davies_bouldin"], budget="quick", random_state=0)
    for ax in chosen.plot().axes_:
        assert ax.get_xlabel() == "K"
        assert ("lower is better" in ax.get_ylabel()) == ("Davies" in ax.get_ylabel())
        assert ticks(ax) == ticks(ax)[:1] + [k for k in (2.0, 3.0, 4.0) if k > ticks(ax)[0]]


def test_tick_labels_have_no_common_offset():
    values = -1041.0 - np.linspace(0.002, 0.001, 20)
    display = plots.ConvergenceDisplay("log-likelihood", [np.arange(20)], [values], 0)
    display.figure_.canvas.draw()
    assert display.ax_.yaxis.get_offset_text().get_text() == ""
    assert display.ax_.get_yticklabels()[1].get_text().startswith("−1041.00")


# words


def test_captions_use_the_singular_for_one():
    one = KMeans(1).fit(X)
    assert plots.voronoi(one, X).get_title(loc="left") == "cells of 1 cluster; 150 rows"
    assert plots.clusters(one.predict(X[:1]), X[:1]).get_title(loc="left") == "1 cluster, 1 row"
    path = plots.DTWPathDisplay.from_predictions([1.0], [2.0])
    path.plot()
    assert path.top_.get_title(loc="left").endswith("a path of 1 step")
    ax = plots.ellipses(np.zeros(150, int), X[:, :1])
    assert ax.get_title(loc="left").startswith("1 component and")


# colours and places


def test_numbers_in_a_map_of_means_can_be_read_on_every_colour():
    display = plots.ProfilesDisplay.from_predictions(WIDE, np.arange(150) % 3)
    scores = np.linspace(-2.2, 2.2, 15).reshape(3, 5)
    display = replace(display, scores=scores)

    def luminance(rgb):
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in rgb[:3]]
        return np.dot(linear, [0.2126, 0.7152, 0.0722])

    from matplotlib.colors import to_rgb

    colours = display.image_.to_rgba(scores)
    for text, (i, j) in zip(display.texts_, np.ndindex(3, 5), strict=True):
        one, other = sorted([luminance(to_rgb(text.get_color())), luminance(colours[i, j])])
        assert (other + 0.05) / (one + 0.05) > 4.4


def test_names_of_clusters_do_not_hide_rows_if_there_are_few():
    rows = np.array([[0.0, 0], [1, 1], [2, 2], [8, 0], [9, 0], [10, 0], [5, 5]])  # means of clusters are rows
    display = plots.ClustersDisplay.from_predictions(rows, [0, 0, 0, 1, 1, 1, 2])
    figure = display.figure_
    figure.canvas.draw()
    places = display.ax_.transData.transform(rows)
    for number in display.numbers_:
        box = number.get_window_extent().padded(0.2 * number.get_fontsize() * figure.dpi / 72)
        assert not any(box.contains(*place) for place in places)
        middle = display.ax_.transData.transform(number.get_position())
        assert np.hypot(*(middle - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])) < 20 * figure.dpi / 72


def test_only_principal_axes_of_voronoi_cells_have_equal_scales():
    model = KMeans(3, random_state=0).fit(WIDE)
    flat = WIDE * [1, 0.02, 0.02, 0.02, 0.02]
    for made, rows in ((model, WIDE), (KMeans(3, random_state=0).fit(flat), flat)):
        ax = plots.voronoi(made, rows)
        ax.figure.canvas.draw()
        assert ax.get_aspect() == 1.0
        width, height = np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())
        assert height >= 0.39 * width
    assert plots.voronoi(model, WIDE, columns=[0, 1]).get_aspect() == "auto"


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_bars_cover_the_range_of_the_values(unit):
    column = X[:, :1] * unit
    edges = plots.ClustersDisplay.from_predictions(column, np.zeros(150, int)).cloud.bars.edges
    assert (edges[0], edges[-1]) == pytest.approx((column.min(), column.max()), rel=1e-9)


# responsibilities along one column


@pytest.mark.parametrize("model", [GaussianMixture(3, random_state=0), FuzzyCMeans(3, random_state=0)])
def test_responsibilities_along_one_column_are_exact(model):
    few = X[::10, :1]
    display = plots.ResponsibilitiesDisplay.from_estimator(model.fit(X[:, :1]), few)
    assert len(display.x) == 400
    assert (display.x[0], display.x[-1]) == pytest.approx((few.min(), few.max()), rel=0.01)
    np.testing.assert_allclose(display.bands, model.predict_proba(display.x[:, None]), atol=1e-12)
    assert display.ax_.get_ylabel() == "responsibility"


def test_responsibilities_of_a_model_of_several_columns_are_means_of_bins():
    shares = GaussianMixture(3, random_state=0).fit(X).predict_proba(X)
    display = plots.ResponsibilitiesDisplay.from_predictions(X, shares, columns=[1])
    width = display.x[1] - display.x[0]
    for x, band in zip(display.x, display.bands, strict=True):
        own = np.abs(X[:, 1] - x) <= width / 2 * (1 + 1e-9)
        np.testing.assert_allclose(band, shares[own].mean(axis=0) if own.any() else 0.0, atol=1e-9)
    assert display.ax_.get_ylabel() == "mean responsibility"


def test_responsibilities_of_counts_are_means_of_bins():
    counts = np.random.default_rng(0).poisson(np.repeat([2.0, 20.0], 60))[:, None].astype(float)
    display = plots.ResponsibilitiesDisplay.from_estimator(Mixture(2, "poisson", random_state=0).fit(counts), counts)
    display.figure_.draw_without_rendering()
    assert not display.exact


# animations


def test_the_speed_of_a_gif_is_limited(tmp_path):
    trace = KMeans(3, init="forgy", n_init=1, random_state=0).fit_trace(X)
    with pytest.raises(ParameterError, match=r"fps must be at most 50 for a \.gif.*got 120"):
        trace.save(tmp_path / "way.gif", fps=120)
    trace.save(tmp_path / "way.html", fps=120)
    trace.save(tmp_path / "way.gif", fps=50)
    with pytest.importorskip("PIL.Image").open(tmp_path / "way.gif") as image:
        assert image.info["duration"] == 20


def test_the_title_of_an_animation_mentions_missing_values():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    holes = holes[~np.isnan(holes).all(axis=1)]
    whole, torn = (KMeans(3, missing="ignore", random_state=0).fit_trace(rows).animate() for rows in (X, holes))
    told = "missing values are shown at the means of their columns"
    assert told in torn.to_html()
    assert told not in whole.to_html()
    from coterie.plots.video import Video

    assert any(told in text.get_text() for text in Video(torn).map.texts)
    assert not any(told in text.get_text() for text in Video(whole).map.texts)
    assert len(repr(torn)) < 200
