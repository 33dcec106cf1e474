"""`coterie fit --model` and `coterie predict`."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import coterie
from coterie.algorithms import ALGORITHMS
from coterie.cli import main

FIT = ["fit", "penguins.csv", "-k", "3", "--missing", "drop", "--exclude", "year", "--model", "m.safetensors"]
LINKAGES = ("ward", "average", "complete", "single", "weighted", "centroid", "median")
NEAREST = (*LINKAGES, "balanced")  # a new row goes to the nearest cluster: neither the tree nor the sizes bind it


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in NEAREST])
def test_rows_that_were_fitted_get_their_own_cluster_back(penguins, folder, name):
    options = [option for option in FIT if not (ALGORITHMS[name].finds_k and option in ("-k", "3"))]
    assert main([*options, "-a", name, "-o", "fitted.csv"]) == 0
    assert main(["predict", "m.safetensors", "penguins.csv", "--missing", "drop", "-o", "predicted.csv"]) == 0
    fitted, predicted = (pl.read_csv(folder / f"{name}.csv")["cluster"] for name in ("fitted", "predicted"))
    assert fitted.equals(predicted, null_equal=True)


def test_nothing_is_random_in_a_prediction(penguins, capsys):
    assert main(FIT) == 0
    capsys.readouterr()
    assert main(["predict", "m.safetensors", "penguins.csv", "--missing", "drop"]) == 0
    assert "seed" not in capsys.readouterr().out


@pytest.mark.parametrize("name", LINKAGES)
def test_a_tree_places_rows_as_it_does_in_python(penguins, folder, name):
    assert main([*FIT, "-a", name]) == 0
    assert main(["predict", "m.safetensors", "penguins.csv", "--missing", "drop", "-o", "out.csv"]) == 0
    out = pl.read_csv(folder / "out.csv", null_values="NA").drop_nulls("cluster")
    X = out.select("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g").to_numpy()
    model = make_pipeline(StandardScaler(), coterie.AgglomerativeClustering(3, linkage=name)).fit(X)
    np.testing.assert_array_equal(model.predict(X), out["cluster"].to_numpy())


@pytest.mark.parametrize("scale", ["standard", "robust", "minmax", "none"])
@pytest.mark.parametrize("more", [[], ["--one-hot", "sex,island"]])
def test_scaling_and_categories_travel_with_the_model(penguins, folder, capsys, scale, more):
    assert main([*FIT, "--scale", scale, *more, "-o", "fitted.csv"]) == 0
    frame = pl.read_csv(penguins)
    shuffled = frame.select(reversed(frame.columns)).sample(fraction=1.0, shuffle=True, seed=1)
    shuffled.write_parquet(folder / "other.parquet")
    assert main(["predict", "m.safetensors", "other.parquet", "--missing", "drop", "-o", "out.parquet"]) == 0
    keys = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex", "island", "species", "year"]
    expected = pl.read_csv(folder / "fitted.csv").sort(keys)["cluster"]
    assert pl.read_parquet(folder / "out.parquet").sort(keys)["cluster"].equals(expected, null_equal=True)
    capsys.readouterr()
    assert main(["info", "m.safetensors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scale"] == scale


FILLED = ["fit", "penguins.csv", "-k", "3", "--exclude", "year", "--model", "m.safetensors", "-o", "fitted.csv"]


@pytest.mark.parametrize("scale", ["standard", "robust", "minmax", "none"])
@pytest.mark.parametrize("how", ["mean", "median"])
def test_what_stood_in_for_missing_values_travels_with_the_model(penguins, folder, capsys, how, scale):
    assert main([*FILLED, "--missing", how, "--scale", scale, "--one-hot", "sex"]) == 0
    assert main(["predict", "m.safetensors", "penguins.csv", "-o", "out.csv"]) == 0
    assert "filled with the " + how in capsys.readouterr().out.splitlines()[-7]
    fitted, predicted = (pl.read_csv(folder / f"{name}.csv")["cluster"] for name in ("fitted", "out"))
    assert fitted.null_count() == 0
    assert fitted.equals(predicted)
    assert main(["info", "m.safetensors"]) == 0
    assert f"missing: filled with the {how} of the training data" in capsys.readouterr().out


def test_holes_are_filled_with_the_numbers_of_the_fit_not_with_those_of_the_new_table(folder):
    (folder / "fit.csv").write_text("x,y\n0,0\n1,0\n100,1\n101,1\n102,1\n,1\n", encoding="utf-8")  # median 100
    assert main(["fit", "fit.csv", "-k", "2", "-c", "x", "--missing", "median", "--model", "m.safetensors"]) == 0
    (folder / "new.csv").write_text("x\n0\n0\n1\n\n\n100\n", encoding="utf-8")
    assert main(["predict", "m.safetensors", "new.csv", "-o", "out.csv"]) == 0
    labels = pl.read_csv(folder / "out.csv")["cluster"].to_list()
    assert labels[3] == labels[4] == labels[5] != labels[0] == labels[1] == labels[2]


def test_the_pipeline_of_python_fills_and_scales_as_the_command_does(penguins, folder):
    assert main([*FILLED, "--missing", "mean"]) == 0
    pipeline = coterie.load(folder / "m.safetensors")
    assert [name for name, _ in pipeline.steps] == ["fill", "prepare", "cluster"]
    frame = pl.read_csv(folder / "fitted.csv", null_values="NA")
    found = pipeline.predict(frame.select(pipeline[0].feature_names_in_.tolist()).to_pandas())
    np.testing.assert_array_equal(found, frame["cluster"].to_numpy())


@pytest.mark.parametrize("missing, code", [("drop", 0), ("error", 3), ("ignore", 2)])
def test_a_model_that_fills_can_be_told_not_to(penguins, folder, capsys, missing, code):
    assert main([*FILLED, "--missing", "median"]) == 0
    assert main(["predict", "m.safetensors", "penguins.csv", "--missing", missing, "-o", "out.csv"]) == code
    if code == 0:
        assert pl.read_csv(folder / "out.csv")["cluster"].null_count() == 2


def test_a_model_that_ignores_holes_does_so_unasked(folder, capsys):
    (folder / "holes.csv").write_text("a,b\n1,1\n1.1,\n,1.2\n9,9\n9.1,\n,9.2\n", encoding="utf-8")
    how = ["-k", "2", "--missing", "ignore", "--model", "m.safetensors", "-o", "fitted.csv"]
    assert main(["fit", "holes.csv", *how]) == 0
    assert main(["predict", "m.safetensors", "holes.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv(folder / "out.csv")["cluster"].equals(pl.read_csv(folder / "fitted.csv")["cluster"])
    assert "4 values in 2 columns left as they are" in capsys.readouterr().out


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler(), SimpleImputer(strategy="median"), MinMaxScaler()],
        [SimpleImputer(), "passthrough", RobustScaler(), StandardScaler()],
        [SimpleImputer(strategy="most_frequent")],
        [SimpleImputer(), StandardScaler(with_mean=False), RobustScaler(with_centering=False)],
        [SimpleImputer(strategy="median"), SimpleImputer()],
    ],
)
def test_steps_of_a_pipeline_made_in_python_are_all_done_in_their_order(folder, steps):
    X = np.array([[1.0, 2.0], [1.5, np.nan], [8.0, 900.0], [np.nan, 800.0], [9.0, 10.0], [3.0, np.nan]])
    pipeline = make_pipeline(*steps, coterie.KMeans(3, random_state=0)).fit(X)
    coterie.save(pipeline, folder / "m.safetensors")
    new = np.vstack([X, [[np.nan, 5.0], [4.0, np.nan], [7.0, 300.0]]])
    np.save(folder / "x.npy", new)
    assert main(["predict", "m.safetensors", "x.npy", "-o", "labels.npy"]) == 0
    np.testing.assert_array_equal(np.load(folder / "labels.npy"), pipeline.predict(new))


@pytest.mark.parametrize("step", [MinMaxScaler(clip=True), SimpleImputer(missing_values=0)])
def test_steps_that_do_more_are_left_to_python(folder, capsys, step):
    X = np.array([[1.0, 2.0], [0.0, 3.0], [8.0, 9.0]])
    coterie.save(make_pipeline(step, coterie.KMeans(2, random_state=0)).fit(X), folder / "m.safetensors")
    np.save(folder / "x.npy", X)
    assert main(["predict", "m.safetensors", "x.npy"]) == 3
    assert f"has a {type(step).__name__} that does more than fill, shift or divide" in capsys.readouterr().err


def test_the_file_is_a_pipeline_that_python_can_use(penguins, folder):
    assert main([*FIT, "-o", "fitted.csv"]) == 0
    pipeline = coterie.load(folder / "m.safetensors")
    frame = pl.read_csv(folder / "fitted.csv").drop_nulls("cluster")
    found = pipeline.predict(frame.select(pipeline[0].feature_names_in_.tolist()).to_pandas())
    np.testing.assert_array_equal(found, frame["cluster"].to_numpy())


def test_a_model_saved_in_python_takes_columns_in_their_order(folder, capsys):
    X = np.array([[1.0, 2.0], [1.5, 2.5], [8.0, 9.0]])
    model = coterie.KMeans(2, random_state=0).fit(X)
    coterie.save(model, folder / "m.safetensors")
    np.save(folder / "x.npy", X)
    assert main(["predict", "m.safetensors", "x.npy", "-o", "labels.npy"]) == 0
    np.testing.assert_array_equal(np.load(folder / "labels.npy"), model.labels_)
    np.save(folder / "wide.npy", np.hstack([X, X]))
    capsys.readouterr()
    assert main(["predict", "m.safetensors", "wide.npy"]) == 3
    assert "wide.npy has 4 numeric columns; the model takes 2." in capsys.readouterr().err


def test_probabilities_of_all_clusters_add_up_to_one(penguins, folder):
    assert main([*FIT, "-a", "gmm"]) == 0
    command = ["predict", "m.safetensors", "penguins.csv", "--missing", "drop", "--proba", "-o", "out.parquet"]
    assert main(command) == 0
    out = pl.read_parquet(folder / "out.parquet").drop_nulls("cluster")
    shares = out.select(pl.col("^cluster_probability_.*$")).to_numpy()
    assert shares.sum(axis=1) == pytest.approx(np.ones(342))
    np.testing.assert_array_equal(shares.argmax(axis=1), out["cluster"].to_numpy())


def test_the_nearest_center_is_that_of_the_cluster(penguins, folder):
    assert main(FIT) == 0
    command = ["predict", "m.safetensors", "penguins.csv", "--missing", "drop", "--distance", "-o", "out.parquet"]
    assert main(command) == 0
    out = pl.read_parquet(folder / "out.parquet").drop_nulls("cluster")
    distances = out.select(pl.col("^cluster_distance_.*$")).to_numpy()
    np.testing.assert_array_equal(distances.argmin(axis=1), out["cluster"].to_numpy())


def test_a_model_is_described(penguins, capsys):
    assert main([*FIT, "-a", "mixture"]) == 0
    capsys.readouterr()
    assert main(["info", "m.safetensors"]) == 0
    out = capsys.readouterr().out
    assert "a fitted model" in out
    assert "Mixture(" in out
    assert "3 clusters" in out
    assert "expects 7 columns: bill_length_mm" in out


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["m.safetensor", "penguins.csv"], 3, "Did you mean m.safetensors?"),
        (["penguins.csv", "penguins.csv"], 3, "a model ends in .safetensors"),
        (["junk.safetensors", "penguins.csv"], 3, "cannot load"),
        (["m.safetensors", "other.csv"], 3, 'no column "bill_length_mm"'),
        (["m.safetensors", "penguins.csv"], 3, "Use --missing drop (keeps 342 rows), or a model that was fitted with"),
        (["m.safetensors", "penguins.csv", "--missing", "median"], 2, "Choose from"),
        (
            ["m.safetensors", "penguins.csv", "--missing", "drop", "--proba", "-o", "o.csv"],
            2,
            "--proba is for mixtures",
        ),
        (["m.safetensors", "penguins.csv", "--missing", "drop", "--distance"], 2, "name it with -o"),
        (["m.safetensors", "penguins.csv", "--missing", "ignore"], 2, "were fitted with it"),
        (["m.safetensors", "penguins.csv", "--missing", "drop", "-o", "penguins.csv"], 2, "already exists"),
    ],
)
def test_an_error_has_its_code_and_its_remedy(penguins, folder, capsys, arguments, code, message):
    assert main(FIT) == 0
    (folder / "junk.safetensors").write_bytes(b"nothing of the kind")
    (folder / "other.csv").write_text("x\n1\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["predict", *arguments]) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert not (folder / "o.csv").exists()


@pytest.mark.parametrize("path, message", [("m.pickle", "ends in .safetensors"), ("no/m.safetensors", "no folder")])
def test_a_model_that_cannot_be_written_is_rejected_before_the_fit(penguins, folder, capsys, path, message):
    assert main(["fit", "penguins.csv", "-k", "2", "--model", path, "-o", "out.csv"]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "out.csv").exists()


def test_a_model_is_not_replaced_unless_forced(penguins, folder, capsys):
    (folder / "m.safetensors").write_text("mine")
    assert main(FIT) == 2
    assert "already exists" in capsys.readouterr().err
    assert (folder / "m.safetensors").read_text() == "mine"
    assert main([*FIT, "--force"]) == 0
    assert coterie.load(folder / "m.safetensors")[-1].n_clusters == 3


def test_a_model_of_categories_only_is_saved_and_predicts(folder):
    """Latent classes: no column is a number, so that no quantiles are stored."""
    lines = [f"{'xy'[i % 2]},{'uvw'[(i // 20) % 3]}" for i in range(60)]
    (folder / "text.csv").write_text("\n".join(["c,d", *lines]), encoding="utf-8")
    assert main(["fit", "text.csv", "-a", "mixture", "-k", "2", "--model", "m.safetensors", "-o", "fitted.csv"]) == 0
    assert main(["predict", "m.safetensors", "text.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv(folder / "out.csv")["cluster"].equals(pl.read_csv(folder / "fitted.csv")["cluster"])
