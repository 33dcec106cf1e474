from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest
import scipy.cluster.hierarchy
import sklearn.cluster
import sklearn.metrics.cluster
import sklearn.mixture
from sklearn.base import BaseEstimator

import coterie
from coterie import errors
from coterie.algorithms import ESTIMATORS
from coterie.core.stored import CLASSES
from coterie.persistence import classes

HEAVY = ("numpy", "scipy", "sklearn", "numba", "dask", "torch", "matplotlib", "polars", "pandas")


def modules_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


def test_the_public_names_are_these():
    assert sorted(coterie.__all__) == [
        "AgglomerativeClustering",
        "BalancedKMeans",
        "BayesianGaussianMixture",
        "BisectingKMeans",
        "DBSCAN",
        "DivisiveClustering",
        "FuzzyCMeans",
        "GaussianMixture",
        "HDBSCAN",
        "Job",
        "KMeans",
        "KMedians",
        "KMedoids",
        "KernelKMeans",
        "MiniBatchKMeans",
        "Mixture",
        "SphericalKMeans",
        "TimeSeriesKMeans",
        "__version__",
        "choose_k",
        "diagnose",
        "explain",
        "export",
        "load",
        "make_report",
        "save",
    ]
    assert dir(coterie) == sorted([*coterie.__all__, *coterie._MODULES])
    for name in coterie.__all__:
        assert getattr(coterie, name) is not None


def test_every_estimator_is_registered_under_its_name_module_and_tag():
    """`Bisections` is the tree of `DivisiveClustering`, and not public."""
    for package in classes.PACKAGES:
        classes._import_modules(package)
    tags = {tag: kind for tag, kind in CLASSES.items() if issubclass(kind, BaseEstimator) and tag != "Bisections"}
    assert {tag: kind.__module__ for tag, kind in tags.items()} == ESTIMATORS
    for name, module in ESTIMATORS.items():
        package = import_module(module.rpartition(".")[0])
        assert getattr(package, name) is getattr(coterie, name) is tags[name]
        assert name in package.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="KMeens"):
        coterie.KMeens  # noqa: B018


def test_importing_coterie_loads_nothing_heavy():
    assert modules_after("import coterie").isdisjoint(HEAVY)


SMALL = """
import coterie, sys
assert "numpy" not in sys.modules
assert coterie.metrics.silhouette_score and coterie.selection.sweep and coterie.plots.clusters
from coterie.kmeans import KMeans
from coterie.medoids import KMedoids
from coterie.mixture import GaussianMixture
assert KMeans is coterie.KMeans and KMedoids is coterie.KMedoids and GaussianMixture is coterie.GaussianMixture

from importlib import import_module
import numpy as np
X = np.random.default_rng(0).normal(size=(150, 4))
steps = {
    "rows in memory": lambda: import_module("coterie.data").as_source(X),
    "KMeans": lambda: coterie.KMeans(3, search="none").fit(X),
    "KMeans of one column": lambda: coterie.KMeans(5).fit(np.random.default_rng(0).normal(size=(800, 1))),
    "KMedians l1": lambda: coterie.KMedians(3, metric="l1", search="none").fit(X),
    "KMedians l2": lambda: coterie.KMedians(3, metric="l2", search="none").fit(X),
    "BalancedKMeans": lambda: coterie.BalancedKMeans(3, cannot_link=[[0, 1]]).fit(X),
    "linkage": lambda: [coterie.hierarchy.linkage(X, m) for m in coterie.hierarchy.linkage_methods.METHODS],
    "metrics": lambda: [
        getattr(coterie.metrics, name)(X[:4], [0, 0, 1, 1])
        for name in ("silhouette_score", "dunn_score", "davies_bouldin_score", "inertia")
    ],
    "displays": lambda: coterie.plots.ClustersDisplay.from_predictions(np.eye(3), [0, 1, 1]).to_dict(),
}
for name, step in steps.items():
    step()
    heavy = {module.partition(".")[0] for module in sys.modules}
    assert heavy.isdisjoint({"numba", "llvmlite", "dask", "matplotlib", "polars"}), name
"""


def test_small_tables_without_a_search_need_no_compiler_and_submodules_no_import_of_their_own():
    """One process for all of them: it takes a second to start."""
    subprocess.run([sys.executable, "-c", SMALL], check=True)


@pytest.mark.parametrize("name", ["coterie.kernels.cpu", "coterie.kernels.plain", "coterie.kernels.sparse"])
def test_no_file_hides_a_kernel(name):
    """A file becomes a name of its package once it is imported, and would take the place of a function of that name."""
    package = import_module(name)
    for module in iter_modules(package.__path__):
        import_module(f"{name}.{module.name}")
    body = ast.parse(Path(package.__file__).read_text()).body
    kernels = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    assert [kernel for kernel in kernels if not callable(getattr(package, kernel))] == []


PACKAGES = [f"coterie.{name}" for name in (*coterie._MODULES, "exports", "jobs", "report")]
PACKAGES = ["coterie", *(name for name in PACKAGES if hasattr(import_module(name), "__path__"))]


@pytest.mark.parametrize("name", PACKAGES)
def test_no_module_is_taken_for_a_function(name):
    """A file with the name of a function is a name of its package, too; the file of a figure is that of its class."""
    package, functions = import_module(name), {*coterie.__all__, *import_module(name).__all__}
    modules = {module.name for module in iter_modules(package.__path__)}
    for module in modules & functions:
        import_module(f"{name}.{module}")
    assert {module for module in modules & functions if inspect.ismodule(getattr(package, module))} == set()
    if name == "coterie.plots":
        assert {f"{function}_plot" for function in package.__all__} & modules == set()


def test_every_exception_and_warning_is_in_errors_or_built_in():
    """`Cancelled` stops threads of a computation, and does not leave it; nor do errors of the app leave its server."""
    classes, package = set(), Path(coterie.__file__).parent
    for path in package.rglob("*.py"):
        if path.is_relative_to(package / "app"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise):
                classes.add(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
                classes.update(node.args[1:])
    names = {node.id for node in classes if isinstance(node, ast.Name) and node.id[0].isupper()}
    assert {"InputError", "ParameterError", "ConvergenceWarning", "ClusterWarning", "RuntimeWarning"} <= names
    assert {name for name in names if not hasattr(errors, name) and not hasattr(builtins, name)} == {"Cancelled"}


def signatures():
    packages = ("datasets", "diagnosis", "distances", "explanation", "hierarchy", "metrics", "plots", "selection")
    for package in ("", *(f".{name}" for name in packages)):
        module = import_module(f"coterie{package}")
        for name in module.__all__:
            if callable(getattr(module, name)) and getattr(module, name).__module__.startswith("coterie"):
                yield f"coterie{package}.{name}", inspect.signature(getattr(module, name)).parameters


def test_random_state_is_none_by_default():
    defaults = {name: p["random_state"].default for name, p in signatures() if "random_state" in p}
    assert len(defaults) > 20
    assert {name for name, default in defaults.items() if default is not None} == set()


def test_arguments_have_one_order():
    """An estimator, model or result, then X, then numbers of clusters; the rest by keyword."""
    for name, parameters in signatures():
        package, function = name.split(".")[1], name.split(".")[-1]
        if package in ("diagnosis", "explanation", "plots", "selection") and function[0].islower():
            free = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
            objects = [word for word in free if word in ("estimator", "model", "result", "trace", "Z", "x", "y")]
            numbers = [word for word in free if word in ("ks", "k_min", "k_max")]
            assert free == [*objects, *(["X"] if "X" in free else []), *numbers], name


def test_method_means_the_way_a_tree_is_built():
    """SciPy's word; others are `algorithm`, `approximation`, `criteria` and `resampling`."""
    names = {
        name.split(".")[-1] for name, parameters in signatures() if "method" in parameters or "methods" in parameters
    }
    assert names == {"linkage", "DivisiveClustering"}


@pytest.mark.parametrize(
    "module, name, missing",
    [
        (sklearn.cluster, "KMeans", set()),
        (sklearn.cluster, "MiniBatchKMeans", {"compute_labels"}),
        (sklearn.cluster, "BisectingKMeans", set()),
        (sklearn.cluster, "AgglomerativeClustering", set()),
        (sklearn.cluster, "DBSCAN", {"algorithm", "leaf_size", "p"}),
        (sklearn.cluster, "HDBSCAN", {"algorithm", "alpha", "copy", "leaf_size", "store_centers"}),
        (sklearn.mixture, "GaussianMixture", {"verbose_interval"}),
        (sklearn.mixture, "BayesianGaussianMixture", {"verbose_interval"}),
    ],
)
def test_parameters_of_scikit_learn_are_accepted(module, name, missing):
    """What is missing is on the page "Coming from scikit-learn"."""
    theirs, ours = (inspect.signature(getattr(home, name)).parameters for home in (module, coterie))
    assert set(theirs) - set(ours) == missing


def test_functions_of_scikit_learn_and_scipy_take_their_arguments_in_the_same_order():
    """Arguments after these are keyword-only, or new. `linkage` and `optimal_leaf_ordering` call SciPy's `y` `X`."""
    metrics = [name for name in dir(sklearn.metrics.cluster) if name.endswith(("_score", "_samples", "_matrix"))]
    names = [(sklearn.metrics.cluster, coterie.metrics, name) for name in metrics if name != "consensus_score"]
    names += [(sklearn.cluster, coterie.kmeans, name) for name in ("k_means", "kmeans_plusplus")]
    trees = ("cophenet", "cut_tree", "fcluster", "inconsistent", "leaves_list", "linkage", "optimal_leaf_ordering")
    names += [(scipy.cluster.hierarchy, coterie.hierarchy, name) for name in trees]
    assert len(names) > 20
    for theirs, ours, name in names:
        expected, parameters = (inspect.signature(getattr(home, name)).parameters for home in (theirs, ours))
        expected = {"X" if parameter == "y" else parameter: value for parameter, value in expected.items()}
        free = [parameter for parameter, value in expected.items() if value.kind is value.POSITIONAL_OR_KEYWORD]
        assert [*parameters][: len(free)] == free, name
        assert {parameter for parameter in expected if parameter != "kwds"} <= set(parameters), name


def test_every_callback_takes_one_argument_and_is_called_callback():
    names = {name for name, parameters in signatures() if "callback" in parameters}
    assert {"coterie.KMeans", "coterie.hierarchy.linkage", "coterie.selection.choose_k"} <= names
    assert "callback" in inspect.signature(import_module("coterie.jobs").run).parameters
    assert {name for name, parameters in signatures() if {"progress", "progress_callback"} & set(parameters)} == set()


def functions_of_clusters():
    """Public functions of rows and of their clusters, which are a model or labels."""
    for name, parameters in signatures():
        if "X" in parameters and {"model", "labels"} & set(parameters) and not name.startswith("coterie.metrics"):
            package, _, function = name.rpartition(".")
            if function[0].islower():
                yield name, getattr(import_module(package), function)


@pytest.mark.parametrize("name, function", [*functions_of_clusters()])
@pytest.mark.parametrize("clusters", ["a model", "labels", "a list of labels"])
def test_rows_in_the_place_of_the_clusters_are_an_error_that_shows_the_call(name, function, clusters):
    """Only by position; arguments with names may have any order."""
    model = coterie.KMeans(2, random_state=0).fit([[0.0, 1], [0, 2], [9, 1], [9, 2]])
    X = [[0.0, 1], [0, 2], [9, 1], [9, 2]] if clusters == "a list of labels" else np.eye(4)
    if clusters != "a model":
        model = model.labels_ if clusters == "labels" else model.labels_.tolist()
    objects = [word for word in inspect.signature(function).parameters if word in ("model", "labels", "X")]
    wrong = (X, model) if objects[0] != "X" or function is coterie.diagnose else (model, X)
    with pytest.raises((errors.ParameterError, TypeError), match=rf"write (plots\.)?{function.__name__}\(.*X"):
        function(*wrong)
