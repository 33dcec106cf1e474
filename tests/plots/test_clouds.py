"""Figures of rows by cluster show the data."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from coterie import BayesianGaussianMixture, FuzzyCMeans, GaussianMixture, KMeans, KMedians, Mixture, palette, plots
from coterie.datasets import make_blobs
from coterie.errors import InputError
from coterie.families.structures import STRUCTURES
from coterie.plots.projection import View, as_rows

pytest.importorskip("matplotlib")

X = make_blobs(150, 2, centers=3, cluster_std=0.4, random_state=0)[0]
KM = KMeans(3, random_state=0).fit(X)


def rgb(text):
    from matplotlib.colors import to_rgb

    return to_rgb(text)


def test_points_are_the_rows_in_the_colour_of_their_cluster():
    display = plots.ClustersDisplay.from_estimator(KM, X)
    np.testing.assert_array_equal(display.rows_.get_offsets(), X)
    shown = display.rows_.get_facecolors()[:, :3]
    np.testing.assert_allclose(shown, [rgb(palette.colours(3)[j]) for j in KM.labels_])


def test_numbers_are_at_the_means_so_that_colour_is_not_all_there_is():
    display = plots.ClustersDisplay.from_estimator(KM, X)
    at = {text.get_text(): text.get_position() for text in display.numbers_}
    for j in range(3):
        np.testing.assert_allclose(at[str(j)], X[KM.labels_ == j].mean(axis=0))


def test_colours_are_told_apart():
    many = palette.as_rgb(palette.colours(50))
    apart = np.abs(many[:, None] - many).sum(axis=2) + 9 * np.eye(50)
    assert len(set(palette.colours(50))) == 50
    assert apart.min() > 0.02
    assert apart[:12, :12].min() > 0.2


def test_rows_of_minus_one_are_in_no_cluster():
    labels = np.where(np.arange(150) < 10, -1, KM.labels_)
    display = plots.ClustersDisplay.from_predictions(X, labels)
    assert display.cloud.names == ["0", "1", "2"]
    np.testing.assert_allclose(display.rows_.get_facecolors()[:10, :3], [rgb(palette.NOISE)] * 10)
    assert display.cloud.sizes.sum() == 140
    assert len(display.numbers_) == 3
    text = [entry.get_text() for entry in display.ax_.get_legend().get_texts()]
    assert text[-1] == "none: 10 rows"


def test_rows_all_in_no_cluster_are_drawn():
    display = plots.ClustersDisplay.from_predictions(X, np.full(150, -1))
    display.figure_.draw_without_rendering()
    assert display.numbers_ == []


def test_labels_may_be_words():
    names = np.array(["north", "south", "a name much too long to be drawn"])[KM.labels_]
    display = plots.ClustersDisplay.from_predictions(X, names)
    assert {text.get_text() for text in display.numbers_} == {"north", "south", "a name much…"}


def test_more_columns_are_seen_along_their_principal_axes():
    wide = np.random.default_rng(0).normal(size=(300, 5)) * [1, 9, 2, 5, 0.1] + 100
    view = View.of(as_rows(wide))
    P = view.points(wide)
    centered = wide - wide.mean(axis=0)
    _, values, axes = np.linalg.svd(centered, full_matrices=False)
    np.testing.assert_allclose(np.abs(P), np.abs(centered @ axes[:2].T), atol=1e-9)
    shares = values**2 / (values**2).sum()
    assert view.axes[0] == f"principal axis 1 ({100 * shares[0]:.3g} % of the variance)"
    np.testing.assert_allclose(view.points(view.to_rows(P)), P, atol=1e-9)
    largest = np.abs(view.directions).argmax(axis=0)
    assert (view.directions[largest, [0, 1]] > 0).all()


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("name", ["clusters", "voronoi", "ellipses", "profiles"])
def test_hostile_tables_are_drawn(name, d):
    one_row, constant, far = np.ones((1, d)), np.full((20, d), 3.0), X[:20, :1] * np.ones(d) + 1e9
    for table, k in ((one_row, 1), (constant, 1), (constant, 2), (far, 2)):
        labels = np.arange(len(table)) % k
        figure = getattr(plots, name)(labels, table).figure
        figure.draw_without_rendering()
        (left, right), (bottom, top) = np.sort([figure.axes[0].get_xlim(), figure.axes[0].get_ylim()])
        assert figure.axes[0].has_data()
        assert np.isfinite([left, right, bottom, top]).all()
        assert left < right
        assert bottom < top
        if name != "profiles" and d <= 2:
            assert left < table[:, 0].min() <= table[:, 0].max() < right


def test_one_cluster_is_drawn_by_all_but_silhouettes():
    one = KMeans(1).fit(X)
    for name in ("clusters", "voronoi", "profiles"):
        getattr(plots, name)(one, X).figure.draw_without_rendering()
    plots.ellipses(GaussianMixture(1).fit(X), X).figure.draw_without_rendering()
    with pytest.raises(InputError, match="at least two clusters with rows"):
        plots.silhouette(one, X)


def test_many_rows_are_shades_that_count_them_all():
    n = 1_000_000
    big = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    labels = (big[:, 0] > 0).astype(int)
    display = plots.ClustersDisplay.from_predictions(big, labels)
    shades = display.cloud.shades
    assert shades.counts.sum() == n
    assert "1,000,000 rows, darker where there are more" in display.ax_.get_title(loc="left").replace("\n", " ")
    right = shades.x > 0.1
    assert set(np.unique(shades.owner[:, right])) == {-1, 1}
    assert (shades.owner >= 0).sum() == (shades.counts > 0).sum()
    assert len(display.cloud.points) == 20_000  # what a page may show one by one
    assert len(str(display.to_dict())) < 4_000_000


def test_one_column_is_bars_that_count_all_rows():
    display = plots.ClustersDisplay.from_predictions(X[:, :1], np.where(np.arange(150) < 9, -1, KM.labels_))
    bars = display.cloud.bars
    assert bars.counts.sum() == 150
    np.testing.assert_array_equal(bars.counts[:3].sum(axis=1), display.cloud.sizes)
    top = display.rows_[-1].get_data().values
    np.testing.assert_array_equal(top, bars.counts.sum(axis=0))


def test_fifty_clusters_are_numbered_and_leave_out_the_legend():
    table = make_blobs(2000, 2, centers=50, random_state=0)[0]
    display = plots.ClustersDisplay.from_estimator(KMeans(50, n_init=1, random_state=0).fit(table), table)
    assert len(display.numbers_) == 50
    assert display.ax_.get_legend() is None


# cells


@pytest.mark.parametrize(
    "model", [KM, KMedians(3, random_state=0).fit(X), GaussianMixture(3, init_params="kmeans", random_state=0).fit(X)]
)
def test_a_cell_is_whose_the_model_says(model):
    display = plots.VoronoiDisplay.from_estimator(model, X)
    for i, j in ((0, 0), (150, 150), (299, 10), (20, 250)):
        assert display.owner[i, j] == model.predict([[display.x[j], display.y[i]]])[0]


def test_cells_of_labels_are_nearest_to_means_through_all_columns():
    wide = make_blobs(100, 4, centers=3, random_state=1)[0]
    labels = KMeans(3, random_state=0).fit_predict(wide)
    display = plots.VoronoiDisplay.from_predictions(wide, labels)
    means = np.array([wide[labels == j].mean(axis=0) for j in range(3)])
    view = View.of(as_rows(wide))
    place = view.to_rows(np.array([[display.x[40], display.y[200]]]))
    assert display.owner[200, 40] == ((place - means) ** 2).sum(axis=1).argmin()
    assert "on a slice through the mean of the rows" in display.ax_.get_title(loc="left").replace("\n", " ")


def test_cells_of_one_column_are_bands_behind_the_bars():
    line = X[:, :1]
    display = plots.VoronoiDisplay.from_estimator(model := KMeans(3, random_state=0).fit(line), line)
    np.testing.assert_array_equal(display.owner, model.predict(display.x[:, None]))
    assert display.ax_.get_ylim()[1] > display.cloud.bars.counts.sum(axis=0).max()


def test_cells_reach_as_far_as_the_farthest_of_many_rows():
    big = np.random.default_rng(0).normal(size=(60_000, 2))
    big[17] = [40.0, -30.0]
    ax = plots.voronoi((big[:, 0] > 0).astype(int), big)
    assert ax.get_xlim()[1] > 40
    assert ax.get_ylim()[0] < -30


def test_places_that_a_family_does_not_take_have_no_cells():
    counts = np.random.default_rng(0).poisson(3.0, (60, 2))
    with pytest.raises(InputError, match="Mixture cannot predict all places"):
        plots.voronoi(Mixture(2, "poisson", random_state=0).fit(counts), counts)


# ellipses


@pytest.mark.parametrize("structure", [*STRUCTURES, "full", "tied", "diag", "spherical"])
def test_an_ellipse_is_at_its_distance_from_the_mean(structure):
    wide = make_blobs(120, 3, centers=3, random_state=2)[0]  # as many columns as components: forms look alike
    model = GaussianMixture(3, covariance_type=structure, random_state=0).fit(wide)
    display = plots.EllipsesDisplay.from_estimator(model, wide, columns=[0, 2])
    spread = _full(model)[:, [0, 2]][:, :, [0, 2]]
    for lines, radius in zip(display.outlines(), (1.0, 2.0), strict=True):
        away = lines - model.means_[:, None, [0, 2]]
        distance = np.einsum("kcp,kpq,kcq->kc", away, np.linalg.inv(spread), away)
        np.testing.assert_allclose(distance, radius**2, rtol=1e-6)


def _full(model):
    """Covariances (k, d, d), by way of samples of their definition: what Mahalanobis distances need."""
    k, d = model.means_.shape
    precisions = np.asarray(model.precisions_)
    name = {"full": "VVV", "tied": "EEE", "diag": "VVI", "spherical": "VII"}.get(
        model.covariance_type, model.covariance_type
    )
    if name.endswith("II"):
        return np.eye(d) / precisions[:, None, None]
    if name.endswith("I"):
        return np.array([np.diag(1 / row) for row in precisions])
    return np.linalg.inv(np.broadcast_to(precisions, (k, d, d)))


def test_contours_are_of_the_density_of_the_mixture():
    model = GaussianMixture(3, random_state=0).fit(X)
    display = plots.EllipsesDisplay.from_estimator(model, X)
    grid = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    exact = np.exp(model.score_samples(grid)).reshape(display.density.shape)
    np.testing.assert_allclose(display.density, exact, rtol=1e-2, atol=1e-4 * exact.max())


def test_a_picture_of_many_columns_shows_their_marginal():
    wide = make_blobs(200, 4, centers=2, random_state=3)[0]
    model = BayesianGaussianMixture(2, random_state=0).fit(wide)
    display = plots.EllipsesDisplay.from_estimator(model, wide)
    V = View.of(as_rows(wide))
    at = np.array([display.x[30], display.y[70]])
    parts = zip(model.weights_, V.points(model.means_), model.covariances_, strict=True)
    exact = sum(w * multivariate_normal(m, V.directions.T @ S @ V.directions).pdf(at) for w, m, S in parts)
    np.testing.assert_allclose(display.density[70, 30], exact, rtol=1e-2, atol=1e-5)


def test_components_of_students_t_have_ellipses_too():
    model = Mixture(2, "student_t", random_state=0).fit(X)
    assert len(plots.ellipses(model, X, deviations=2).lines) == 2


def test_one_column_has_curves_that_hold_as_much_as_the_bars():
    model = GaussianMixture(3, random_state=0).fit(X[:, :1])
    display = plots.EllipsesDisplay.from_estimator(model, X[:, :1])
    x, y = display.contours_[0].get_data()
    width = np.diff(display.cloud.bars.edges)[0]
    assert np.trapezoid(y, x) / width == pytest.approx(150, rel=0.02)


# responsibilities


def test_a_row_has_the_blend_of_its_shares():
    shares = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    display = plots.ResponsibilitiesDisplay.from_predictions(X[:3], shares)
    shown = display.rows_.get_facecolors()[:, :3]
    one, other = (np.array(rgb(name)) for name in palette.colours(2))
    np.testing.assert_allclose(shown[:2], [one, other], atol=1e-12)
    np.testing.assert_allclose(shown[2] ** 2.2, (one**2.2 + other**2.2) / 2)


def test_shares_of_a_sample_are_those_of_its_rows():
    big = np.random.default_rng(0).normal(size=(60_000, 2))
    model = FuzzyCMeans(2, random_state=0).fit(big)
    display = plots.ResponsibilitiesDisplay.from_estimator(model, big)
    assert len(display.shares) == 20_000
    np.testing.assert_allclose(display.shares, model.predict_proba(display.cloud.points), atol=1e-7)
    assert "20,000 of 60,000 rows" in display.ax_.get_title(loc="left")


def test_shares_must_be_shares():
    with pytest.raises(InputError, match="sum to 1"):
        plots.responsibilities(np.ones((150, 2)), X)
    with pytest.raises(InputError, match=r"must have the shape \(n, k\) for the n = 150 rows"):
        plots.responsibilities(np.ones((3, 2)) / 2, X)


@pytest.mark.parametrize("most", [10, 299])
def test_axes_of_very_many_columns_are_the_same(monkeypatch, most):
    from coterie.plots import projection as module

    table = as_rows(make_blobs(300 if most == 10 else 200, most + 2, centers=3, random_state=0)[0])
    few = View.of(table)
    monkeypatch.setattr(module, "WIDE", most)
    many = View.of(table)
    assert many.axes == few.axes
    np.testing.assert_allclose(many.directions, few.directions, atol=1e-7)
