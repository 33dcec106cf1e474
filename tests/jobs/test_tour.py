"""The tour that compiles all kernels: `coterie warm`, and the kernels of a wheel."""

import inspect
import json

import numba
import numpy as np
import pytest

import coterie
from coterie import distances, hierarchy, kmeans, metrics, selection
from coterie.cli import main
from coterie.jobs import kernel_compilation, tour

WITHOUT_KERNELS = {
    "check_tree", "to_newick", "as_distance", "register", "kneedle", "second_derivative", "explain", "export", "load",
    "make_report", "save",
}  # fmt: skip


def public_names():
    for module in (coterie, kmeans, hierarchy, distances, metrics, selection):
        for name in module.__all__:
            value = getattr(module, name)
            is_result = isinstance(value, type) and not hasattr(value, "fit")
            if callable(value) and not is_result and name not in WITHOUT_KERNELS:
                yield name


def test_the_tour_calls_every_estimator_and_function():
    steps = {name.split(",")[0] for name, _ in tour.tour(tour.Tables.of("float64"))}
    assert sorted({*public_names()} - steps) == []


def test_it_calls_every_family_metric_and_linkage():
    steps = {name for name, _ in tour.tour(tour.Tables.of("float32"))}
    families = set(coterie.families.CLASSES)
    assert {f"Mixture, {name}" for name in families - {"product"}} <= steps
    assert {f"pairwise, {name}" for name in distances.distance._HOME} <= steps
    assert {f"linkage, {name}, weights" for name in tour.LINKAGES} <= steps


def test_results_have_the_names_of_their_steps(monkeypatch):
    monkeypatch.setattr(tour, "tour", lambda tables: [("a", lambda: tables.X.dtype), ("b", lambda: 2)])
    seen = []
    results = tour.run(callback=lambda progress: seen.append((progress.step, progress.done, progress.total)))
    assert results == {"a, float64": np.float64, "b, float64": 2, "a, float32": np.float32, "b, float32": 2}
    assert seen[-1] == ("b, float32", 4, 4)


def test_it_stops_when_the_callback_returns_true(monkeypatch):
    monkeypatch.setattr(tour, "tour", lambda tables: [("a", lambda: 1), ("b", lambda: 2)])
    assert tour.run(callback=lambda progress: True) == {"a, float64": 1}


@pytest.fixture
def two_steps(monkeypatch, tmp_path):
    """A tour of two steps, with an empty cache."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tour, "DTYPES", ("float64",))
    short = list(tour.tour(tour.Tables.of("float64")))[:1]
    monkeypatch.setattr(tour, "tour", lambda tables: short)


def test_warm_says_how_many_kernels_are_ready(two_steps, capsys):
    assert main(["warm", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["kernels"] >= 1
    assert main(["warm"]) == 0
    assert "ready; " in capsys.readouterr().out


def test_every_kernel_is_found_once():
    tables = tour.Tables.of("float64")
    coterie.KMeans(8, n_init=1, random_state=0).fit(tables.X)
    kernels = kernel_compilation.all_kernels()
    assert len({id(kernel) for kernel in kernels}) == len(kernels)
    assert "lloyd" in {kernel.__name__ for kernel in kernels}
    assert all(inspect.getmodule(kernel.py_func).__name__.startswith("coterie.kernels.") for kernel in kernels)
