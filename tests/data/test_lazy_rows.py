"""Every public estimator and function of rows, with rows that are not in memory: it works, or says what to pass.

The table in docs/inputs.md says which; it is compared with what happens.
"""

import re
from functools import partial
from inspect import signature
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars as pl
import pytest

from coterie import choose_k, diagnose, explain, metrics, selection
from coterie.data import scan_files
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import linkage
from coterie.kmeans import k_means, kmeans_plusplus
from public_estimators import CLASSES, seeded

PAGE = Path(__file__).parents[2] / "docs" / "inputs.md"
NAMES = ["height", "weight", "age", "pulse"]
INPUTS = ("path", "scan_files", "iterator", "Dask array", "Dask DataFrame")
LABELS = np.arange(60) % 3
ACCEPTED, REJECTED = "yes", "in memory"


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(5)
    return (6 * rng.normal(size=(3, 4)))[LABELS] + rng.normal(size=(60, 4)) + 20


@pytest.fixture(scope="module")
def rows(X, tmp_path_factory):
    """Functions that return the rows in each form."""
    folder = tmp_path_factory.mktemp("rows")
    frame = pandas.DataFrame(X, columns=NAMES)
    pl.DataFrame(X[:20], schema=NAMES).write_parquet(folder / "a.parquet")
    pl.DataFrame(X[20:], schema=NAMES).write_parquet(folder / "b.parquet")
    return {
        "path": lambda: folder,
        "scan_files": lambda: scan_files(folder, cache="none"),
        "iterator": lambda: (frame.iloc[start : start + 25] for start in (0, 25, 50)),
        "Dask array": lambda: da.from_array(X, chunks=(40, -1)),
        "Dask DataFrame": lambda: dd.from_pandas(frame, npartitions=2),
    }


def fitted(kind, X):
    options = {"search": "none"} if "search" in signature(kind).parameters else {}
    return np.asarray(seeded(kind, **options).fit(X).labels_)


def of_labels(function, X, **options):
    return function(X, LABELS, **options)


KMEANS = next(kind for kind in CLASSES if kind.__name__ == "KMeans")
CALLS = {kind.__name__: partial(fitted, kind) for kind in CLASSES if hasattr(kind, "fit_predict")} | {
    "inertia": partial(of_labels, metrics.inertia),
    "bcss": partial(of_labels, metrics.bcss),
    "tss": lambda X: metrics.tss(X),
    "calinski_harabasz_score": partial(of_labels, metrics.calinski_harabasz_score),
    "davies_bouldin_score": partial(of_labels, metrics.davies_bouldin_score),
    "dunn_score": partial(of_labels, metrics.dunn_score),
    "silhouette_score": partial(of_labels, metrics.silhouette_score),
    "silhouette_score(approximation='simplified')": partial(
        of_labels, metrics.silhouette_score, approximation="simplified"
    ),
    "silhouette_samples": partial(of_labels, metrics.silhouette_samples),
    "k_means": lambda X: np.asarray(k_means(X, 3, random_state=0)[1]),
    "kmeans_plusplus": lambda X: kmeans_plusplus(X, 3, random_state=0)[0],
    "pairwise": pairwise,
    "linkage": linkage,
    "sweep": lambda X: selection.sweep(KMEANS(random_state=0), X, [2, 3]).objectives,
    "choose_k": lambda X: choose_k(X, range(2, 5), budget="quick", random_state=0).recommended,
    "gap_statistic": lambda X: str(selection.gap_statistic(X, [1, 2, 3], n_references=3, random_state=0)),
    "mixture_table": lambda X: str(selection.mixture_table(X, [2], structures=["EII"], random_state=0)),
    "stability": lambda X: str(selection.stability(KMEANS(random_state=0), X, [2, 3], n_resamples=3, random_state=0)),
    "tendency": lambda X: str(selection.tendency(X, (2, 3), n_references=3, random_state=0)),
    "x_means": lambda X: str(selection.x_means(X, random_state=0)),
    "g_means": lambda X: str(selection.g_means(X, random_state=0)),
    "diagnose": lambda X: str(diagnose(X, random_state=0)),
    "explain": lambda X: str(explain(LABELS, X)),
}


def outcome(call, X):
    """The result, or None if the rows are rejected with a remedy."""
    try:
        return call(X)
    except (InputError, ParameterError) as error:
        message = str(error)
    assert re.search(r"X is (a Dask|read from files).*(compute\(\)|cache='memory')", message), message
    return None


def documented():
    """The table of the page: for each method, whether it accepts each kind of input."""
    lines = PAGE.read_text().split("## Lazy rows")[1].split("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return {name: row for first, *row in cells for name in re.findall(r"`([^`]+)`", first)}


def test_the_table_has_every_method():
    assert sorted(documented()) == sorted(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_lazy_rows_give_the_same_result_or_a_remedy(rows, X, name):
    expected = CALLS[name](pl.DataFrame(X, schema=NAMES))
    assert len(documented()[name]) == len(INPUTS)
    for kind, cell in zip(INPUTS, documented()[name], strict=True):
        result = outcome(CALLS[name], rows[kind]())
        assert cell == (REJECTED if result is None else ACCEPTED), kind
        if result is not None and not kind.startswith("Dask"):  # whose random draws depend on its blocks
            np.testing.assert_array_equal(result, expected, err_msg=kind)


@pytest.mark.parametrize("kind", INPUTS)
def test_methods_of_a_fitted_model_take_lazy_rows(rows, X, kind):
    model = KMEANS(3, init=X[:3], n_init=1).fit(rows[kind]())
    expected_model = KMEANS(3, init=X[:3], n_init=1).fit(X)
    for method in ("predict", "transform", "score"):
        expected = getattr(expected_model, method)(X)
        np.testing.assert_allclose(np.asarray(getattr(model, method)(rows[kind]())), expected, rtol=1e-12)


def test_labels_may_be_lazy_as_well(rows, X):
    lazy = da.from_array(LABELS, chunks=40)
    for kind in ("Dask array", "Dask DataFrame", "scan_files"):
        expected = metrics.davies_bouldin_score(X, LABELS)
        np.testing.assert_allclose(metrics.davies_bouldin_score(rows[kind](), lazy), expected, rtol=1e-12)


def test_a_function_as_init_that_needs_an_array_gets_an_error_with_a_remedy(rows):
    for init in (lambda X, k, random_state: X[:k], lambda X, k, random_state: np.asarray(X)[:k]):
        with pytest.raises(InputError, match="read from files in every pass"):
            KMEANS(3, init=init, n_init=1).fit(rows["scan_files"]())
