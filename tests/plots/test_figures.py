"""Curves, silhouettes, dendrograms, heat maps, paths and graphical models show the data of the results."""

import numpy as np
import pytest

from coterie import (
    HDBSCAN,
    AgglomerativeClustering,
    BayesianGaussianMixture,
    GaussianMixture,
    KMeans,
    Mixture,
    distances,
    metrics,
    plots,
)
from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError
from coterie.families import Poisson, Product
from coterie.hierarchy import cut, leaves_list, linkage
from coterie.mixture import Prior
from coterie.plots import silhouette_display
from coterie.selection import gap_statistic, kneedle, mixture_table, stability, sweep

pytest.importorskip("matplotlib")

X = make_blobs(150, 2, centers=3, cluster_std=0.4, random_state=0)[0]
KM = KMeans(3, random_state=0).fit(X)


def caption(ax):
    return ax.get_title(loc="left").replace("\n", " ")


# over K


def test_an_elbow_shows_the_objectives_and_their_knee():
    found = sweep(KMeans(random_state=0), X, range(1, 8))
    display = plots.ElbowDisplay.from_result(found)
    np.testing.assert_array_equal(display.line_.get_xydata(), np.stack([found.ks, found.objectives], axis=1))
    assert display.knee_line_.get_xdata()[0] == kneedle(found.ks, found.objectives).x == display.knee
    short = plots.ElbowDisplay.from_result(sweep(KMeans(random_state=0), X, [2, 3]))
    assert short.knee is None
    assert caption(short.ax_) == "elbow: needs at least three K"


def test_a_gap_has_its_errors_and_the_choice_of_its_rule():
    found = gap_statistic(X, range(1, 6), n_references=5, random_state=0, se_factor=2.0)
    display = plots.GapDisplay.from_result(found)
    line, _, (bars,) = display.line_
    np.testing.assert_array_equal(line.get_ydata(), found.gap)
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 4 * found.se)
    assert display.choice_.get_xdata()[0] == found.recommended


def test_each_structure_has_its_curve_which_ends_where_there_is_no_fit():
    table = mixture_table(X[:12], range(1, 8), structures=["EII", "VVV"], random_state=0)
    assert not np.isfinite(table.bic).all()
    display = plots.InformationDisplay.from_result(table, criterion="icl")
    for j, line in enumerate(display.lines_):
        known = np.isfinite(table.icl[:, j])
        np.testing.assert_array_equal(np.isfinite(line.get_ydata()), known)
        np.testing.assert_array_equal(line.get_ydata()[known], table.icl[known, j])
    best = table.best(1, "icl")[0]
    assert display.best == [best.k, best.structure]
    assert len({line.get_marker() for line in display.lines_}) == 2


def test_stability_shows_every_cluster():
    found = stability(KMeans(n_init=2), X, range(2, 6), n_resamples=4, random_state=0)
    display = plots.StabilityDisplay.from_result(found)
    np.testing.assert_array_equal(display.line_[0].get_ydata(), found.mean)
    assert len(display.clusters_.get_offsets()) == 2 + 3 + 4 + 5
    assert display.threshold_.get_ydata()[0] == found.threshold


# silhouettes


def test_a_silhouette_plot_has_sorted_areas_and_a_line_at_the_mean():
    values = metrics.silhouette_samples(X, KM.labels_)
    display = plots.SilhouetteDisplay.from_estimator(KM, X)
    assert len(display.areas_) == 3
    for j, area in enumerate(display.areas_):
        own = np.sort(values[KM.labels_ == j])[::-1]
        np.testing.assert_allclose(display.outlines[j], own)
        assert area.get_paths()[0].vertices[:, 0].max() == pytest.approx(own.max())
        assert display.below[j] == (own < 0).mean()
    assert display.mean_line_.get_xdata()[0] == pytest.approx(values.mean())


def test_the_worst_of_many_clusters_are_drawn():
    display = plots.SilhouetteDisplay.from_estimator(KMeans(40, n_init=1, random_state=0).fit(X), X)
    assert len(display.areas_) == 30
    assert np.nanmax(display.means[display.shown]) <= np.delete(display.means, display.shown).min()
    assert "the 30 worst of 40 clusters" in caption(display.ax_)


def test_silhouettes_of_many_rows_use_a_sample_with_every_cluster(monkeypatch):
    monkeypatch.setattr(silhouette_display, "EXACT", 2000)
    rng = np.random.default_rng(0)
    sizes = [6000, 60, 4000]
    big = np.concatenate([rng.normal(at, 1, (size, 2)) for at, size in zip((0, 4, -4), sizes, strict=True)])
    labels = np.repeat([0, 1, 2], sizes)
    display = plots.SilhouetteDisplay.from_predictions(big, labels)
    exact = metrics.silhouette_score(big, labels, average=None)
    np.testing.assert_allclose(display.means, exact, atol=0.02)
    assert display.mean == pytest.approx(np.average(display.means, weights=sizes))
    assert display.sampled < 2060
    assert f"of {display.sampled:,} of 10,060 rows" in caption(display.ax_)


def test_silhouettes_take_any_distance_and_leave_out_rows_in_no_cluster():
    labels = np.where(np.arange(150) < 20, -1, KM.labels_)
    D = distances.pairwise(X, metric="manhattan")
    by_metric = plots.SilhouetteDisplay.from_predictions(X, labels, metric="manhattan")
    by_matrix = plots.SilhouetteDisplay.from_predictions(D, labels, metric="precomputed")
    exact = metrics.silhouette_score(X[20:], labels[20:], metric="manhattan")
    assert by_metric.mean == pytest.approx(exact)
    assert by_matrix.mean == pytest.approx(exact)
    assert by_metric.n == 130


# trees


@pytest.mark.parametrize("method", ["single", "average", "ward", "centroid"])
def test_a_whole_tree_is_drawn_as_its_matrix_says(method):
    Z = linkage(X[:30], method)
    display = plots.DendrogramDisplay.from_result(Z, n_clusters=4)
    np.testing.assert_allclose(display.y[:, 1], Z[:, 2])
    assert display.leaves == [str(j) for j in leaves_list(Z)]
    place = {j: (float(i), 0.0) for i, j in enumerate(leaves_list(Z))}
    for i, (left, right, height, _) in enumerate(Z):
        feet = np.array([place[int(left)], place[int(right)]])
        np.testing.assert_allclose([display.x[i, 0], display.x[i, 3]], feet[:, 0])
        np.testing.assert_allclose([display.y[i, 0], display.y[i, 3]], feet[:, 1])
        place[30 + i] = (feet[:, 0].mean(), height)
    labels = cut(Z, n_clusters=4)
    np.testing.assert_array_equal(display.leaf_cluster, labels[leaves_list(Z)])
    assert (display.cluster == -1).sum() == 3 or method == "centroid"


def test_the_top_of_a_large_tree_has_all_its_rows():
    table = make_blobs(100_000, 1, centers=20, cluster_std=0.1, random_state=0)[0]
    display = plots.DendrogramDisplay.from_result(linkage(table, "single"), n_clusters=5)
    assert display.sizes.sum() == 100_000
    assert len(display.y) == 40
    assert len(display.brackets_.get_segments()) == 40
    assert caption(display.ax_) == "the last 40 merges of 100,000 rows, cut into 5 clusters"


def test_a_chain_of_merges_needs_no_recursion():
    line = np.cumsum(np.arange(5000.0))[:, None]
    display = plots.DendrogramDisplay.from_result(linkage(line, "single"), merges=4999)
    display.figure_.draw_without_rendering()
    assert len(display.leaves) == 5000


def test_all_merges_above_the_cut_are_drawn_and_the_line_is_between():
    Z = linkage(X, "ward")
    display = plots.DendrogramDisplay.from_result(Z, n_clusters=60, merges=3)
    assert len(display.y) == 59
    assert sorted(set(display.leaf_cluster)) == list(range(60))
    assert Z[-60, 2] <= display.height <= Z[-59, 2]
    assert len(plots.dendrogram(AgglomerativeClustering(4).fit(X), n_clusters=2).lines) == 1


def test_trees_of_two_rows_and_of_one():
    assert plots.dendrogram([[0, 1, 0.0, 2]]).get_ylim()[1] > 0
    with pytest.raises(InputError, match="needs at least two rows"):
        plots.dendrogram(np.empty((0, 4)))
    with pytest.raises(InputError, match="names must have one entry for each of the 2 rows"):
        plots.dendrogram([[0, 1, 1.0, 2]], names="abc")


# density-based clusters


def test_the_bars_of_a_reachability_plot_are_the_distances_of_the_rows_in_the_order_of_the_tree():
    model = HDBSCAN(8).fit(X)
    display = plots.ReachabilityDisplay.from_estimator(model, eps=0.5)
    reach = model.reachability_[model.ordering_]
    np.testing.assert_array_equal(display.heights[1:], reach[1:])
    assert display.heights[0] == reach[1:].max()
    np.testing.assert_array_equal(display.labels, model.labels_[model.ordering_])
    assert [bar.get_height() for bar in display.bars_] == display.heights.tolist()
    assert display.radius_.get_ydata()[0] == 0.5


def test_a_reachability_plot_of_many_rows_has_few_bars_with_their_maximum():
    model = HDBSCAN(8).fit(np.random.default_rng(0).normal(size=(1500, 2)))
    display = plots.ReachabilityDisplay.from_estimator(model)
    assert len(display.heights) == 400
    assert display.edges[-1] == 1500
    assert display.heights.max() == model.minimum_spanning_tree_[:, 2].max()


def test_the_boxes_of_a_condensed_tree_are_its_clusters_and_the_rows_within():
    model = HDBSCAN(8).fit(X)
    tree, display = model.condensed_tree_, plots.CondensedTreeDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.stop - display.start, tree.cluster_size)
    np.testing.assert_array_equal(display.birth, tree.cluster_lambda)
    np.testing.assert_array_equal(display.death, tree.deaths())
    for start, stop, label in zip(display.start, display.stop, display.label, strict=True):
        if label >= 0:
            assert set(model.labels_[model.ordering_[start:stop]]) == {label}
    assert len(plots.condensed_tree(model, max_clusters=2).start) == 2


@pytest.mark.parametrize("draw", [plots.reachability, plots.condensed_tree])
def test_figures_of_density_need_a_tree_of_two_rows(draw):
    with pytest.raises(ParameterError, match="KMeans has no condensed_tree_: use HDBSCAN"):
        draw(KMeans(2).fit(X))
    with pytest.raises(InputError, match="at least two rows"):
        draw(HDBSCAN().fit(X[:1]))


# profiles


def test_profiles_are_means_in_standard_deviations():
    wide = X @ np.array([[1.0, 20, 0], [3, -5, 0]]) + 7
    display = plots.ProfilesDisplay.from_predictions(wide, KM.labels_)
    means = np.array([wide[KM.labels_ == j].mean(axis=0) for j in range(3)])
    np.testing.assert_allclose(display.means, means)
    expected = (means - wide.mean(axis=0))[:, :2] / wide.std(axis=0)[:2]
    np.testing.assert_allclose(display.image_.get_array()[:, :2], expected)
    np.testing.assert_array_equal(display.scores[:, 2], 0.0)  # a constant column
    assert display.texts_[0].get_text() == f"{means[0, 0]:.3g}"


def test_the_columns_that_differ_most_are_drawn():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(200, 60))
    labels = np.arange(200) % 2
    wide[:, [7, 50]] += 3 * labels[:, None]
    display = plots.ProfilesDisplay.from_predictions(wide, labels)
    assert len(display.shown) == 30
    assert {7, 50} <= set(display.shown)
    assert "the 30 of 60 columns that differ most" in caption(display.ax_)


# fits


def test_every_restart_has_a_curve_and_the_best_is_highlighted():
    starts = plots.Starts()
    model = KMeans(3, n_init=6, init="forgy", random_state=0, callback=starts).fit(X)
    display = plots.ConvergenceDisplay.from_result(starts)
    assert len(display.lines_) == 6
    np.testing.assert_array_equal(display.lines_[display.best].get_ydata(), model.history_)
    np.testing.assert_array_equal(plots.ConvergenceDisplay.from_estimator(model).values[0], model.history_)


def test_em_is_drawn_with_its_lower_bound():
    model = GaussianMixture(3, init_params="random_from_data", random_state=0).fit(X)
    display = plots.ConvergenceDisplay.from_estimator(model)
    x, y = display.bound_[0].get_data()
    np.testing.assert_array_equal(y, model.history_.lower_bound)
    whole = x == np.round(x)
    np.testing.assert_allclose(y[whole], display.values[0][whole], rtol=1e-9)
    assert (y <= display.values[0] + 1e-6).all()


# series


def test_the_path_is_drawn_over_the_cost_matrix():
    x, y = np.sin(np.arange(30.0)), np.sin(np.arange(25.0) * 1.2)
    found = distances.dtw_path(x, y, window=6)
    display = plots.DTWPathDisplay.from_predictions(x, y, window=6)
    np.testing.assert_array_equal(display.path_.get_xydata(), found.path[:, ::-1])
    shown = display.image_.get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), np.isinf(found.cost))
    np.testing.assert_array_equal(shown.compressed(), found.cost[np.isfinite(found.cost)])
    np.testing.assert_array_equal(display.side_.lines[0].get_xdata(), x)
    np.testing.assert_array_equal(display.top_.lines[0].get_ydata(), y)
    assert display.distance == pytest.approx(distances.dtw(x, y, window=6))


def test_the_cost_matrix_of_long_series_is_subsampled():
    x = np.random.default_rng(0).normal(size=(1000, 2)).cumsum(axis=0)
    display = plots.DTWPathDisplay.from_predictions(x, x[::2])
    assert display.cost.shape == (334, 250)
    assert len(display.side_.lines) == 2


# plates


def plates(model):
    graph = plots.PlateDisplay.from_estimator(model).graph
    return {node.name: (node.role, node.plates) for node in graph.nodes}, set(graph.edges), graph


def test_a_full_mixture_has_its_parameters_in_the_plate_of_components():
    nodes, edges, graph = plates(GaussianMixture(3, random_state=0).fit(X))
    assert nodes == {
        "z": ("latent", ("N",)),
        "x": ("observed", ("N",)),
        "pi": ("parameter", ()),
        "mu": ("parameter", ("K",)),
        "sigma": ("parameter", ("K",)),
    }
    assert edges == {("pi", "z"), ("z", "x"), ("mu", "x"), ("sigma", "x")}
    assert (graph.rows, graph.components) == ("150", "3")


@pytest.mark.parametrize(
    "structure, inside, outside",
    [
        ("tied", set(), {"sigma"}),
        ("EII", set(), {"volume"}),
        ("VII", {"volume"}, set()),
        ("VEI", {"volume"}, {"shape"}),
        ("EVE", {"shape"}, {"volume", "orientation"}),
        ("VEV", {"volume", "orientation"}, {"shape"}),
    ],
)
def test_shared_parameters_are_outside_the_plate_of_components(structure, inside, outside):
    nodes, _, _ = plates(GaussianMixture(2, covariance_type=structure))
    rest = {name: place for name, (_, place) in nodes.items() if name not in ("z", "x", "pi", "mu")}
    assert {name for name, place in rest.items() if place == ("K",)} == inside
    assert {name for name, place in rest.items() if place == ()} == outside


def test_priors_and_fixed_parameters_are_dots():
    nodes, edges, _ = plates(GaussianMixture(2, prior=Prior(concentration=2.0)))
    assert {name for name, (role, _) in nodes.items() if role == "constant"} == {"alpha", "m0", "kappa0", "nu0", "s0"}
    assert {("alpha", "pi"), ("sigma", "mu"), ("s0", "sigma")} <= edges
    assert "alpha" not in plates(GaussianMixture(2, prior="default"))[0]  # a flat one
    fixed, edges, _ = plates(GaussianMixture(2, fixed=("weights", "means"), means_init=[[0.0], [1.0]], prior="default"))
    assert fixed["pi"][0] == fixed["mu"][0] == "constant"
    assert "m0" not in fixed


def test_bayesian_mixtures_have_sticks_or_a_dirichlet():
    nodes, edges, _ = plates(BayesianGaussianMixture(5))
    assert nodes["pi"] == ("parameter", ("K",))
    assert ("sigma", "mu") in edges
    assert (
        plates(BayesianGaussianMixture(5, weight_concentration_prior_type="dirichlet_distribution"))[0]["pi"][1] == ()
    )
    assert plates(BayesianGaussianMixture(5, covariance_type="tied"))[0]["sigma"][1] == ()


def test_families_have_their_own_parameters():
    nodes, edges, _ = plates(Mixture(3, Product([("poisson", [0]), ("gaussian", [1, 2])])))
    assert {"x0", "x1", "λ0", "μ1", "Σ1"} <= set(nodes)
    assert {("λ0", "x0"), ("Σ1", "x1"), ("z", "x0"), ("z", "x1")} <= edges
    assert plates(Mixture("auto", Poisson(prior="default")))[2].components == "∞"
    assert "prior0" in plates(Mixture(2, Poisson(prior="default")))[0]


def test_every_node_is_drawn_once_apart_from_others_with_shading_for_rows():
    for model in (BayesianGaussianMixture(4), GaussianMixture(3, covariance_type="VEV", prior="default")):
        display = plots.PlateDisplay.from_estimator(model)
        assert set(display.circles_ if display.ax_ else ()) == {node.name for node in display.graph.nodes}
        assert len(display.arrows_) == len(display.graph.edges)
        places = np.array(list(display.places.values()))
        apart = np.linalg.norm(places[:, None] - places, axis=2) + 9 * np.eye(len(places))
        assert apart.min() > 0.6
        from matplotlib.colors import to_rgba

        assert display.circles_["x"].get_facecolor() == to_rgba("#c9ced6")
        assert display.circles_["z"].get_facecolor() == to_rgba("white")
