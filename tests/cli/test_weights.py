"""`--weight`: a row of weight two is the row twice, in all that a command says and writes."""

import json

import numpy as np
import polars as pl
import pytest

from coterie.cli import main
from coterie.datasets import make_blobs
from coterie.preparation.scaling import extremes, fit_scale, means, quantiles


@pytest.fixture
def twice(folder):
    """Rows with weights of 0 to 3, and the same rows as often as they weigh."""
    X, y = make_blobs(90, 3, centers=3, cluster_std=0.8, random_state=4)
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < 0.05] = np.nan
    weight = np.where(y == 0, 3, rng.integers(0, 3, 90))
    frame = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(
        colour=pl.Series(rng.choice(["red", "blue"], 90)), w=pl.Series(weight)
    )
    frame = frame.fill_nan(None)
    frame.write_csv("weighted.csv")
    frame[np.repeat(np.arange(90), weight)].write_csv("repeated.csv")
    return weight


def said(capsys, *arguments: str) -> dict:
    assert main([*arguments, "--json", "-q"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("missing", ["mean", "median", "ignore"])
@pytest.mark.parametrize("scale", ["standard", "minmax", "none"])
def test_scales_shares_and_means_are_those_of_repeated_rows(twice, capsys, missing, scale):
    how = ["-k", "3", "--missing", missing, "--scale", scale, "-c", "a,b,c", "--n-init", "5"]
    weighted = said(capsys, "fit", "weighted.csv", *how, "--weight", "w")
    repeated = said(capsys, "fit", "repeated.csv", *how, "--exclude", "w")
    assert weighted["weight"] == "w"
    assert weighted["scores"]["inertia"] == pytest.approx(repeated["scores"]["inertia"])
    for one, other in zip(_sorted(weighted), _sorted(repeated), strict=True):
        assert one["share"] == pytest.approx(other["share"])
        assert one["means"] == pytest.approx(other["means"])
        assert one["stands_out_by"] == pytest.approx(other["stands_out_by"])
        if missing != "ignore":
            assert one["silhouette"] == pytest.approx(other["silhouette"])


def _sorted(result: dict) -> list[dict]:
    return sorted(result["clusters"], key=lambda cluster: cluster["means"]["a"])


def test_a_comparison_is_weighted(twice, capsys):
    how = ["-k", "3", "--missing", "mean", "-c", "a,b,c", "-a", "kmeans"]
    weighted, repeated = (
        said(capsys, "compare", name, *how, *more)["runs"][0]
        for name, more in (("weighted.csv", ["--weight", "w"]), ("repeated.csv", ["--exclude", "w"]))
    )
    for score in ("inertia", "silhouette", "davies_bouldin"):
        assert weighted[score] == pytest.approx(repeated[score])


def test_the_table_says_that_shares_are_of_weight(twice, capsys):
    assert main(["fit", "weighted.csv", "-k", "3", "--missing", "mean", "--weight", "w"]) == 0
    assert "share of weight" in capsys.readouterr().out


def test_a_page_is_about_weighted_rows(twice, folder, capsys):
    how = ["fit", "weighted.csv", "-k", "3", "--missing", "mean", "--one-hot", "colour", "--weight", "w"]
    result = said(capsys, *how, "--report", "r.html", "--static")
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert all(f"{cluster['share']:.1%}" in page for cluster in result["clusters"])


def test_a_page_judges_rows_as_often_as_they_weigh(twice, capsys):
    pages = []
    for name, more in (("weighted.csv", ["--weight", "w"]), ("repeated.csv", ["--exclude", "w"])):
        how = ["-k", "3", "--missing", "mean", "-c", "a,b,c", *more]
        result = said(capsys, "fit", name, *how, "--report", "r.html", "--force")
        pages.append([cluster["silhouette"] for cluster in _sorted(result)])  # those that the page draws
    assert pages[0] == pytest.approx(pages[1])


def test_a_cluster_of_rows_without_weight_has_no_silhouette(folder, capsys):
    rows = {"a": [0.0, 0.1, 5.0, 5.1, 90.0], "w": [1, 1, 1, 1, 0], "c": ["x", "x", "y", "y", "z"]}
    pl.DataFrame(rows).write_csv("x.csv")
    said(capsys, "report", "x.csv", "--labels", "c", "--weight", "w", "-o", "r.html")
    assert "have weight 0" in (folder / "r.html").read_text(encoding="utf-8")


def test_weights_that_are_all_zero_are_rejected(folder, capsys):
    pl.DataFrame({"a": [1.0, 2.0, 3.0], "w": [0, 0, 0]}).write_csv("x.csv")
    assert main(["fit", "x.csv", "-k", "2", "--weight", "w"]) == 3
    assert 'column "w" is 0 in every row' in capsys.readouterr().err


def test_a_column_that_varies_in_rows_of_no_weight_only_is_constant(folder, capsys):
    pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [5.0, 5.0, 5.0, 9.0], "w": [1, 1, 1, 0]}).write_csv("x.csv")
    result = said(capsys, "fit", "x.csv", "-k", "2", "--weight", "w")
    assert result["columns"] == ["a"]


@pytest.mark.parametrize("d", [1, 3])
def test_statistics_of_weighted_columns_are_those_of_repeated_rows(d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, d))
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(0, 4, 200).astype(np.float64)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    np.testing.assert_allclose(means(X, np.dtype(float), weight), np.nanmean(repeated, axis=0))
    np.testing.assert_allclose(fit_scale(X, "standard", weight)[1], np.nanstd(repeated, axis=0))
    np.testing.assert_array_equal(extremes(X, weight), [np.nanmin(repeated, axis=0), np.nanmax(repeated, axis=0)])
    at = [0.05, 0.25, 0.5, 0.75, 1.0]
    known = [x[~np.isnan(x)] for x in repeated.T]
    expected = np.transpose([np.quantile(x, at, method="averaged_inverted_cdf") for x in known])
    np.testing.assert_allclose(quantiles(X, at, weight), expected)


@pytest.mark.parametrize("scale", ["standard", "robust", "minmax"])
def test_weights_of_one_are_no_weights(scale):
    X = np.random.default_rng(0).normal(size=(101, 3))  # of which each quartile is a row
    plain, weighted = fit_scale(X, scale), fit_scale(X, scale, np.ones(101))
    np.testing.assert_allclose(weighted[0], plain[0])
    np.testing.assert_allclose(weighted[1], plain[1])
