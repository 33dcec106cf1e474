"""Tables of mixed columns: which family a column gets, and frames in and out."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from coterie import Mixture
from coterie.errors import InputError, ParameterError
from coterie.families import Gamma, Gaussian, Poisson, Product
from coterie.families.frame_columns import LARGE_COUNT, MIN_DISPERSION, looks_like_counts, product_of


def table(n=600, seed=0):
    """A table with a column of every kind, and the group of each row."""
    rng = np.random.default_rng(seed)
    labels = np.r_[0, 1, 2, rng.integers(3, size=n - 3)]
    colors = np.array(["red", "green", "blue"])
    frame = pd.DataFrame(
        {
            "visits": rng.poisson(np.array([1, 12, 5])[labels]),
            "color": colors[np.where(rng.random(n) < 0.85, labels, rng.integers(3, size=n))],
            "member": rng.random(n) < np.array([0.05, 0.9, 0.5])[labels],
            "bought": (rng.random(n) < np.array([0.9, 0.1, 0.1])[labels]).astype(int),
            "income": rng.normal(np.array([1e4, 3e4, 2e4])[labels], 3e3),
            "change": rng.integers(-3, 4, size=n),
        }
    )
    return frame, labels


EITHER = pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


def made_by(library, frame):
    return frame if library is pd.DataFrame else pl.from_pandas(frame)


@EITHER
def test_a_column_gets_the_family_of_what_it_holds(library):
    frame, labels = table()
    model = Mixture.from_frame(made_by(library, frame), 3, random_state=0)
    assert {name: family.split("(")[0] for name, family in model.families_.items()} == {
        "visits": "Poisson",
        "color": "Categorical",
        "member": "Categorical",
        "bought": "Bernoulli",
        "income": "Gaussian",
        "change": "Categorical",
    }
    assert "Poisson(): visits; Categorical(): color, member" in repr(model)
    assert adjusted_rand_score(model.labels_, labels) > 0.95
    assert model.feature_names_in_.tolist() == list(frame.columns)


@EITHER
def test_answers_take_frames_with_the_same_columns(library):
    frame, _ = table()
    model = Mixture.from_frame(made_by(library, frame), 3, random_state=0)
    np.testing.assert_array_equal(model.predict(made_by(library, frame)), model.labels_)
    mixed = made_by(library, frame[[*frame.columns[::-1]]].assign(more=1))  # order and others do not matter
    np.testing.assert_array_equal(model.predict(mixed), model.labels_)
    assert model.score(made_by(library, frame)) == pytest.approx(model.log_likelihood_ / len(frame))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(made_by(library, frame)), model.labels_)
    assert clone(model).fit(made_by(library, frame)).log_likelihood_ == model.log_likelihood_


@EITHER
def test_samples_of_a_frame_are_a_frame(library):
    frame, _ = table()
    drawn, labels = Mixture.from_frame(made_by(library, frame), 3, random_state=0).sample(50)
    assert isinstance(drawn, library)
    assert list(drawn.columns) == list(frame.columns)
    assert set(drawn["color"]) <= {"red", "green", "blue"}
    assert len(labels) == 50


def test_pandas_and_polars_agree():
    frame, _ = table()
    one, other = (Mixture.from_frame(made_by(kind, frame), 3, random_state=0) for kind in (pd.DataFrame, pl.DataFrame))
    assert one.log_likelihood_ == other.log_likelihood_


def test_families_can_be_told():
    frame, _ = table()
    prior = Poisson(prior="default")
    told = {"change": None, "visits": prior, "income": "gamma", "bought": "categorical"}
    frame["income"] = frame["income"].abs()
    model = Mixture.from_frame(frame, 3, families=told, random_state=0)
    assert "change" not in model.families_
    assert model.families_["visits"] == "Poisson(prior='default')"
    assert model.families_["income"].startswith(type(Gamma()).__name__)
    assert model.families_["bought"] == model.families_["color"]
    with pytest.raises(ParameterError, match="names the column 'wealth'"):
        Mixture.from_frame(frame, 3, families={"wealth": "gamma"})
    with pytest.raises(ParameterError, match="excludes all columns"):
        Mixture.from_frame(frame, 3, families=dict.fromkeys(frame.columns))


def test_verbose_says_what_was_picked(capsys):
    Mixture.from_frame(table(60)[0], 1, verbose=1)
    assert capsys.readouterr().out.splitlines()[:2] == ["visits: Poisson()", "color: Categorical()"]


@EITHER
def test_what_is_missing_drops_out(library):
    frame, labels = table()
    rng = np.random.default_rng(1)
    for name in ("visits", "color", "income"):
        frame[name] = frame[name].astype(object if name == "color" else float)
        frame.loc[rng.random(len(frame)) < 0.2, name] = None if name == "color" else np.nan
    model = Mixture.from_frame(made_by(library, frame), 3, random_state=0)
    assert model.families_["visits"] == "Poisson()"  # whole numbers, though some are missing
    assert adjusted_rand_score(model.labels_, labels) > 0.85
    assert np.isfinite(model.score_samples(made_by(library, frame))).all()
    with pytest.raises(InputError, match="NaN"):
        Mixture.from_frame(made_by(library, frame), 3, missing="error")


def test_a_single_column_alone_has_its_own_density():
    frame, _ = table()
    model = Mixture.from_frame(frame, 3, random_state=0)
    alone = pd.DataFrame({name: [np.nan] for name in frame.columns}).assign(visits=4.0)
    rates = model.components_["poisson"].rate[:, 0]
    density = np.log(model.weights_ @ (rates**4 * np.exp(-rates) / 24))
    assert model.score_samples(alone)[0] == pytest.approx(density)


def test_wrong_frames_are_named():
    frame, _ = table()
    model = Mixture.from_frame(frame, 3, random_state=0)
    pink = frame[:3].copy()
    pink.loc[0, "color"] = "pink"
    with pytest.raises(InputError, match="column 'color' has the value 'pink', which is not one of its 3 categories"):
        model.predict(pink)
    with pytest.raises(InputError, match="X lacks the column 'income'"):
        model.predict(frame.drop(columns="income"))
    with pytest.raises(InputError, match="must be a pandas, Polars or Arrow table; got ndarray"):
        model.predict(frame.to_numpy())
    with pytest.raises(InputError, match=r"visits \(1, such as -1\)"):
        model.predict(frame.assign(visits=[-1] + [2] * (len(frame) - 1)))
    with pytest.raises(InputError, match="column 'visits' was numeric in the fit, but now contains 'many'"):
        model.predict(frame.assign(visits="many"))
    with pytest.raises(InputError, match=r"column 'day' has the type .*leave it out"):
        Mixture.from_frame(frame.assign(day=pd.Timestamp("2020-01-01")), 2)


def test_weights_and_known_rows_go_along():
    frame, labels = table(300)
    model = Mixture.from_frame(frame, 3, known_labels=labels, sample_weight=np.full(300, 2.0))
    visits = [frame["visits"][labels == j].mean() for j in range(3)]
    np.testing.assert_allclose(model.components_["poisson"].rate[:, 0], visits)


# Which whole numbers are counts


def rng():
    return np.random.default_rng(7)


WHOLE = {
    "counts": (rng().poisson(4.0, 500), "Poisson"),
    "counts of groups": (rng().poisson(np.repeat([1.0, 9.0, 25.0], 200)), "Poisson"),
    "rare counts": (rng().poisson(0.3, 500), "Poisson"),
    "few of many": (rng().binomial(20, 0.3, 500), "Poisson"),
    "zeros and ones": (rng().integers(2, size=500), "Bernoulli"),
    "grades": (rng().integers(3, 6, size=500), "Categorical"),
    "years": (rng().integers(2007, 2010, size=500), "Categorical"),
    "weights": (rng().normal(4200, 800, 500).round().astype(int), "Gaussian"),
    "large counts": (rng().poisson(200.0, 500), "Gaussian"),
    "changes": (rng().integers(-3, 4, size=500), "Categorical"),
    "many changes": (rng().integers(-50, 50, size=500), "Gaussian"),
    "numbers of few rows": (rng().integers(100, 110, size=40), "Gaussian"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_counts_if_they_vary_as_counts_do(name):
    values, family = WHOLE[name]
    found = Mixture(family=product_of(pd.DataFrame({"x": values}))).families_["x"]
    assert found.split("(")[0] == family


def test_a_mixture_of_counts_varies_by_at_least_its_mean_whatever_the_rates():
    rates = rng().gamma(2.0, 3.0, size=(50, 1))
    counts = rng().poisson(rates[rng().integers(50, size=(50, 2000)), 0])
    assert (counts.var(axis=1) > MIN_DISPERSION * counts.mean(axis=1)).all()
    assert all(looks_like_counts(column) for column in counts)


def test_large_counts_lose_nothing_by_being_gaussian():
    """From the bar on, the best Gaussian is as good a description of a Poisson as the Poisson itself."""
    counts = rng().poisson(LARGE_COUNT, (2000, 1)).astype(float)
    poisson = Poisson().fit(counts).log_prob(counts).mean()
    gaussian = Gaussian("diag").fit(counts).log_prob(counts).mean()
    assert gaussian > poisson - 0.01


@pytest.mark.parametrize("lowest", [3, 2007, -1])
@pytest.mark.parametrize("k", [2, "auto"])
def test_numbers_of_few_values_do_not_draw_clusters_to_themselves(lowest, k):
    """As Gaussians they would: a component on one of them has no end to its likelihood."""
    y = rng().integers(2, size=600)
    frame = pd.DataFrame({"x": rng().normal(5.0 * y), "z": np.flip(rng().normal(size=600)) + 5.0 * y})
    frame["code"] = np.random.default_rng(8).integers(lowest, lowest + 3, size=600)
    assert adjusted_rand_score(y, Mixture.from_frame(frame, k, random_state=0).labels_) > 0.95


def test_the_command_line_and_python_give_a_column_the_same_family(tmp_path):
    pytest.importorskip("cyclopts")
    from coterie.jobs import Job, run

    frame = pl.DataFrame({name: pl.Series(values[:500]) for name, (values, _) in WHOLE.items() if len(values) >= 500})
    frame.write_csv(tmp_path / "t.csv")
    (note,) = (
        note for note in run(Job(tmp_path / "t.csv", algorithm="mixture", k=1)).notes if note.startswith("families")
    )
    spoken = {family.split()[0]: family.split(" ", 1)[1].split(", ") for family in note[10:-1].split("; ")}
    families = Mixture.from_frame(frame, 1).families_
    assert {name: family.partition("(")[0] for name, family in families.items()} == {
        name: family for family, names in spoken.items() for name in names
    }


def test_text_drawn_by_a_family_of_numbers_is_an_error():
    frame = pd.DataFrame({"kind": ["x", "y", "z"] * 20, "size": np.random.default_rng(0).normal(size=60)})
    model = Mixture.from_frame(frame, 2, families={"kind": "poisson"}, random_state=0)
    with pytest.raises(InputError, match=r"column 'kind' has 3 categories, .*: use Categorical for this column"):
        model.sample(200)


@pytest.mark.parametrize("names", [[0, 1], pd.MultiIndex.from_product([["x"], ["a", "b"]])])
def test_names_of_columns_may_be_numbers_or_tuples(names):
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0], [9]], 30, axis=0)
    frame, named = pd.DataFrame(X, columns=names), pd.DataFrame(X, columns=["a", "b"])
    expected = Mixture.from_frame(named, 2, random_state=0).fit(named).labels_
    np.testing.assert_array_equal(Mixture.from_frame(frame, 2, random_state=0).fit(frame).labels_, expected)


def test_numbers_in_cells_of_the_type_object_are_numbers():
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=60)}).astype(object)
    ((family, _),) = Mixture.from_frame(frame, 2).family.families
    assert family.name == "gaussian"


@pytest.mark.parametrize("group", [("poisson", ["a"]), ("poisson", 0), ("poisson", slice(2)), "poisson", ("poisson",)])
def test_a_group_is_a_family_and_numbers_of_columns(group):
    with pytest.raises(ParameterError, match=r"groups must be pairs of a family and the numbers of its columns"):
        Mixture(2, Product([group])).fit(np.ones((9, 2)))
