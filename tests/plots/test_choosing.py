import numpy as np
import pytest

from coterie import choose_k
from coterie.datasets import make_blobs
from coterie.errors import InputError
from coterie.plots.criteria_display import CriteriaDisplay, panels

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def chosen():
    X = make_blobs(150, 2, centers=3, cluster_std=0.3, random_state=0)[0]
    return choose_k(X, range(1, 7), criteria=["silhouette", "davies_bouldin", "gap", "elbow"], random_state=0)


def test_every_criterion_has_a_panel_with_its_numbers(chosen):
    drawn = {panel.name: panel for panel in panels(chosen)}
    assert set(drawn) == {"support", "objective", "silhouette", "davies_bouldin", "gap"}
    np.testing.assert_array_equal(drawn["gap"].values, chosen.results["gap"].gap)
    np.testing.assert_array_equal(drawn["gap"].errors, chosen.results["gap"].se)
    assert drawn["silhouette"].ks.tolist() == [2, 3, 4, 5, 6]


def test_the_figure_shows_the_panels(chosen):
    axes = chosen.plot().axes_
    drawn = panels(chosen)
    assert len(axes) == len(drawn)
    for ax, panel in zip(axes[1:], drawn[1:], strict=True):
        curve = next(line for line in ax.lines if len(line.get_xdata()) == len(panel.ks))
        np.testing.assert_array_equal(curve.get_ydata(), panel.values)
    heights = [bar.get_height() for bar in axes[0].patches]
    np.testing.assert_allclose(heights, chosen.support)
    axes[0].figure.canvas.draw()


def test_given_axes_are_drawn_into(chosen):
    from matplotlib.figure import Figure

    given = Figure().subplots(3, 2)
    axes = chosen.plot(given).axes_
    assert [ax.figure for ax in axes] == [given[0, 0].figure] * 5
    assert not given[2, 1].get_visible()
    with pytest.raises(InputError, match="axes must contain at least 5 Axes"):
        chosen.plot(given[:1])


def test_the_data_of_the_display_do_not_need_a_drawing(chosen):
    display = CriteriaDisplay.from_result(chosen)
    told = display.to_dict()
    assert "axes_" not in vars(display)
    assert told["recommended"] == chosen.recommended
    assert [panel["name"] for panel in told["panels"]] == [panel.name for panel in panels(chosen)]
    assert told["panels"][0]["values"] == chosen.support.tolist()
    assert len(display.axes_) == len(told["panels"])
    assert display.figure_ is display.ax_.figure
