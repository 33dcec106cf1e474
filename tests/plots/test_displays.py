"""Properties that all displays have in common."""

import json
from dataclasses import fields
from functools import cache
from pkgutil import iter_modules

import numpy as np
import pandas as pd
import pytest

from coterie import HDBSCAN, AgglomerativeClustering, BayesianGaussianMixture, GaussianMixture, KMeans, choose_k, plots
from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError
from coterie.selection import gap_statistic, mixture_table, stability, sweep

pytest.importorskip("matplotlib")

X = make_blobs(120, 2, centers=3, cluster_std=0.4, random_state=0)[0]
WIDE = make_blobs(120, 5, centers=3, random_state=0)[0]
KM, GM = KMeans(3, random_state=0).fit(X), GaussianMixture(3, init_params="kmeans", random_state=0).fit(X)


@cache
def found(name):
    return {
        "elbow": lambda: sweep(KMeans(random_state=0), X, range(1, 6)),
        "gap": lambda: gap_statistic(X, range(1, 5), n_references=3, random_state=0),
        "information": lambda: mixture_table(X, range(1, 4), structures=["EII", "VVV"], random_state=0),
        "stability": lambda: stability(KMeans(n_init=1), X, range(2, 5), n_resamples=3, random_state=0),
        "tree": lambda: AgglomerativeClustering(3).fit(X),
        "density": lambda: HDBSCAN(8).fit(X),
        "trace": lambda: GaussianMixture(3, init_params="random_from_data", random_state=0).fit_trace(X),
        "beliefs": lambda: BayesianGaussianMixture(2, random_state=0).fit(X),
    }[name]()


MAKERS = {
    "clusters": lambda ax=None: plots.ClustersDisplay.from_estimator(KM, X, ax=ax),
    "clusters of labels": lambda ax=None: plots.ClustersDisplay.from_predictions(WIDE, np.arange(120) % 4 - 1, ax=ax),
    "clusters of one column": lambda ax=None: plots.ClustersDisplay.from_predictions(X[:, :1], KM.labels_, ax=ax),
    "clusters on a neighbour map": lambda ax=None: plots.ClustersDisplay.from_predictions(
        WIDE[:30], np.arange(30) % 3, map="neighbours", ax=ax
    ),
    "series": lambda ax=None: plots.SeriesDisplay.from_predictions(WIDE, KM.labels_, ax=ax),
    "voronoi": lambda ax=None: plots.VoronoiDisplay.from_estimator(KM, X, ax=ax),
    "voronoi of labels": lambda ax=None: plots.VoronoiDisplay.from_predictions(WIDE, KM.labels_, ax=ax),
    "voronoi of one column": lambda ax=None: plots.VoronoiDisplay.from_predictions(X[:, 0][:, None], KM.labels_, ax=ax),
    "ellipses": lambda ax=None: plots.EllipsesDisplay.from_estimator(GM, X, ax=ax),
    "ellipses of labels": lambda ax=None: plots.EllipsesDisplay.from_predictions(WIDE, KM.labels_, ax=ax),
    "ellipses of one column": lambda ax=None: plots.EllipsesDisplay.from_predictions(X[:, :1], KM.labels_, ax=ax),
    "responsibilities": lambda ax=None: plots.ResponsibilitiesDisplay.from_estimator(GM, X, ax=ax),
    "responsibilities of shares": lambda ax=None: plots.ResponsibilitiesDisplay.from_predictions(
        X[:, :1], GM.predict_proba(X), ax=ax
    ),
    "silhouette": lambda ax=None: plots.SilhouetteDisplay.from_estimator(KM, X, ax=ax),
    "silhouette of labels": lambda ax=None: plots.SilhouetteDisplay.from_predictions(X, list("aab" * 40), ax=ax),
    "profiles": lambda ax=None: plots.ProfilesDisplay.from_estimator(KM, X, ax=ax),
    "profiles of labels": lambda ax=None: plots.ProfilesDisplay.from_predictions(WIDE, KM.labels_, ax=ax),
    "elbow": lambda ax=None: plots.ElbowDisplay.from_result(found("elbow"), ax=ax),
    "gap": lambda ax=None: plots.GapDisplay.from_result(found("gap"), ax=ax),
    "information": lambda ax=None: plots.InformationDisplay.from_result(found("information"), ax=ax),
    "stability": lambda ax=None: plots.StabilityDisplay.from_result(found("stability"), ax=ax),
    "dendrogram": lambda ax=None: plots.DendrogramDisplay.from_estimator(found("tree"), ax=ax),
    "reachability": lambda ax=None: plots.ReachabilityDisplay.from_estimator(found("density"), eps=0.3, ax=ax),
    "condensed tree": lambda ax=None: plots.CondensedTreeDisplay.from_estimator(found("density"), ax=ax),
    "convergence": lambda ax=None: plots.ConvergenceDisplay.from_estimator(KM, ax=ax),
    "convergence of EM": lambda ax=None: plots.ConvergenceDisplay.from_estimator(GM, X, ax=ax),
    "convergence of beliefs": lambda ax=None: plots.ConvergenceDisplay.from_estimator(found("beliefs"), ax=ax),
    "bound": lambda ax=None: plots.BoundDisplay.from_result(found("trace"), ax=ax),
    "dtw_path": lambda ax=None: plots.DTWPathDisplay.from_predictions([1.0, 2, 3, 1], [1.0, 3, 1], window=1, ax=ax),
    "plate": lambda ax=None: plots.PlateDisplay.from_estimator(GaussianMixture(3, prior="default"), ax=ax),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every
def test_the_dictionary_is_json_data(make):
    display = make()
    told = display.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert set(told) == {"kind", *(field.name for field in fields(display))}
    assert told["kind"] == display.kind


@every
def test_given_axes_are_drawn_into_and_others_are_not(make):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5))
    one, other = figure.subplots(1, 2)
    display = make(one)
    assert display.ax_ is one
    assert display.figure_ is figure
    assert one.has_data() or one.patches or one.child_axes
    assert not other.has_data()
    figure.draw_without_rendering()


@every
def test_a_new_figure_is_drawn_on_access_and_not_registered_with_pyplot(make):
    import matplotlib.pyplot as plt

    display = make()
    assert "ax_" not in vars(display)
    assert display.ax_.figure is display.figure_
    display.figure_.draw_without_rendering()
    assert plt.get_fignums() == []
    assert display.plot() is display


@every
def test_nothing_is_drawn_outside_of_the_figure(make):
    figure = make().figure_
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert -0.02 <= box.x0 <= box.x1 <= width + 0.02
    assert -0.02 <= box.y0 <= box.y1 <= height + 0.02


def test_every_display_is_tested_here():
    displays = {name for name in plots.__all__ if name.endswith("Display") and name != "Display"}
    displays.remove("CriteriaDisplay")  # of several Axes: test_choosing.py
    assert displays == {type(make()).__name__ for make in MAKERS.values()}


def test_no_module_hides_a_public_function():
    """Importing a module sets its name in the package, which would replace a function of the same name."""
    assert {module.name for module in iter_modules(plots.__path__)}.isdisjoint(plots.__all__)


def test_a_notebook_gets_a_picture():
    assert MAKERS["plate"]()._repr_png_().startswith(b"\x89PNG")


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="lines_"):
        MAKERS["plate"]().plot().lines_  # noqa: B018


def test_results_of_choose_k_are_drawn_by_each_figure():
    chosen = choose_k(
        X, range(1, 6), criteria=["elbow", "gap", "bic", "prediction_strength"], budget="quick", random_state=0
    )
    for name in ("elbow", "gap", "information", "stability"):
        getattr(plots, name)(chosen).figure.draw_without_rendering()
    none = choose_k(X, range(1, 4), criteria=["silhouette"], budget="quick", random_state=0)
    for name in ("gap", "information", "stability"):
        with pytest.raises(ParameterError, match="the result of choose_k has no "):
            getattr(plots, name)(none)


@pytest.mark.parametrize("name", ["clusters", "voronoi", "ellipses", "profiles", "silhouette"])
def test_bad_input_is_named(name):
    draw = getattr(plots, name)
    with pytest.raises(InputError, match=r"infinity: column 1 \(1\)"):
        draw(KM.labels_, np.where(np.arange(240).reshape(120, 2) == 7, np.inf, X))
    with pytest.raises(InputError, match="labels has 3 entries and X has 120 rows"):
        draw([0, 1, 2], X)
    with pytest.raises(ParameterError, match="model must be fitted"):
        draw(KMeans(3), X)
    with pytest.raises(ParameterError, match="model must be a fitted estimator; got the class KMeans"):
        draw(KMeans, X)
    with pytest.raises(ParameterError, match="ax must be one matplotlib Axes"):
        draw(KM.labels_, X, ax=[1, 2])
    with pytest.raises(ValueError, match="X has 1 features, but KMeans is expecting 2"):
        draw(KM, X[:, :1])


@every
@pytest.mark.parametrize("projection", ["3d", "polar"])
def test_axes_with_a_projection_are_errors(make, projection):
    from matplotlib.figure import Figure

    with pytest.raises(ParameterError, match=f"ax must be Axes with two straight axes; got {projection} Axes"):
        make(Figure().add_subplot(projection=projection))


@pytest.mark.parametrize(
    "name, makers",
    [
        ("elbow", "sweep or choose_k"),
        ("gap", "gap_statistic or choose_k"),
        ("stability", "stability or choose_k"),
        ("information", "mixture_table or choose_k"),
        ("criteria", "choose_k"),
        ("bound", "fit_trace"),
        ("animate", "fit_trace"),
    ],
)
@pytest.mark.parametrize("result", [KM, KM.labels_, X, None, {"ks": [1, 2]}], ids=lambda result: type(result).__name__)
def test_results_of_the_wrong_type_are_errors(name, makers, result):
    with pytest.raises(ParameterError, match=f"must be the result of {makers}; got {type(result).__name__}"):
        getattr(plots, name)(result)
    with pytest.raises(ParameterError, match="model must be a fitted estimator; got ndarray"):
        plots.convergence(X)


@every
def test_a_display_prints_in_a_line_or_two(make):
    display = make()
    text = repr(display)
    assert text.startswith(f"{type(display).__name__}({fields(display)[0].name}=")
    assert len(text) < 400
    assert "\n" not in text


def test_models_without_the_required_attributes_are_errors():
    with pytest.raises(ParameterError, match="no Gaussian components"):
        plots.ellipses(KM, X)
    with pytest.raises(ParameterError, match="has no predict_proba"):
        plots.responsibilities(KM, X)
    for k in (None, 2):
        with pytest.raises(ParameterError, match="has no linkage_matrix_"):
            plots.dendrogram(KM, n_clusters=k)
    with pytest.raises(ParameterError, match="has no history_"):
        plots.convergence(AgglomerativeClustering(2).fit(X))
    with pytest.raises(ParameterError, match="got KMeans"):
        plots.plate(KM)
    with pytest.raises(ParameterError, match="has recorded no fit"):
        plots.convergence(plots.Starts())


def test_frames_give_their_names_to_axes():
    frame = pd.DataFrame({"height": X[:, 0], "weight": X[:, 1], "age": X[:, 0] ** 2})
    model = KMeans(2, random_state=0).fit(frame)
    ax = plots.clusters(model, frame, columns=["weight", "height"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("weight", "height")
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), frame[["weight", "height"]])
    assert [label.get_text() for label in plots.profiles(model, frame).get_xticklabels()] == list(frame)
    plots.voronoi(model, frame).figure.draw_without_rendering()  # asked without names, and without a warning
    with pytest.raises(ParameterError, match="'length' is not a column; use one of 'height'"):
        plots.clusters(model, frame, columns=["length"])
    with pytest.raises(ParameterError, match="one or two different columns"):
        plots.clusters(model, frame, columns=["age", "age"])


def test_functions_return_a_drawn_display_whose_methods_are_those_of_the_axes():
    display = plots.clusters(KM, X)
    assert isinstance(display, plots.ClustersDisplay)
    assert "ax_" in vars(display)
    assert display.get_title(loc="left") == display.ax_.get_title(loc="left")
    assert display.figure is display.figure_
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        display.colour  # noqa: B018


def test_given_axes_are_those_of_the_display():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = plots.clusters(KM, X, ax=ax)
    assert display.ax_ is ax
    assert display._repr_png_().startswith(b"\x89PNG")


def test_a_figure_that_the_backend_shows_is_not_shown_again(monkeypatch):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    try:
        display = plots.clusters(KM, X, ax=ax)
        assert display._repr_png_() is not None  # nothing else shows figures of this backend
        monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
        assert display._repr_png_() is None
        assert plots.clusters(KM, X)._repr_png_() is not None
    finally:
        plt.close(figure)
