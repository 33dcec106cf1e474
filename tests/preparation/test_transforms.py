"""Transforms of skewed columns: chosen where they clearly help, stored, and shown in the units of the table."""

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris, load_wine

import coterie
from coterie.datasets import DEMOS, load_demo
from coterie.errors import InputError, ParameterError
from coterie.jobs import Job, PredictJob, predict, run
from coterie.preparation.transforms import choose_transform, parse_transforms, skewness

RNG = np.random.default_rng(0)
N = 300
SPEND = np.exp(RNG.normal(5, 1.6, N))
VISITS = RNG.poisson(20, N)


def chosen(values):
    return choose_transform(np.asarray(values, dtype=np.float64), np.nanmin(values))


def test_only_positive_strongly_skewed_columns_over_orders_of_magnitude_are_transformed():
    normal, uniform = RNG.normal(size=2000), RNG.uniform(size=2000)
    for values, expected in [
        (np.exp(normal * 1.5), "log"), (np.exp(3 + 1.5 * normal).round(), "log1p"), (np.exp(0.3 * normal), None),
        (normal, None), (uniform, None), (-np.exp(normal * 1.5), None), (np.exp(normal * 1.5) - 1, None),
        (-np.log(uniform), None), (RNG.poisson(2, 2000), None), (np.repeat([1.0, 5000.0], [1900, 100]), None),
        (np.exp(normal[:20] * 1.5), None), (np.where(uniform < 0.4, 0, np.exp(6 + 0.8 * normal)), None),
        (np.exp(normal * 1.5) * (uniform > 0.1), None),
    ]:  # fmt: skip
        assert chosen(values) == expected


def test_tables_without_clear_skew_keep_their_scale():
    for X in (load_iris().data, load_wine().data):
        assert [chosen(x) for x in X.T] == [None] * X.shape[1]
    for name in DEMOS:
        frame = load_demo(name)
        for column in frame.columns:
            values = np.asarray(frame[column])
            if values.dtype.kind in "if":
                assert chosen(values) is None, (name, column)


def test_skewness_is_the_third_moment_and_counts_weights_as_rows():
    values, weight = np.array([1.0, 2.0, 10.0]), np.array([2.0, 1.0, 1.0])
    assert skewness(values, weight) == pytest.approx(skewness(np.array([1.0, 1.0, 2.0, 10.0])))
    assert skewness(np.array([1.0, 2.0, 3.0])) == pytest.approx(0.0)
    assert skewness(np.ones(3)) == 0.0


@pytest.fixture(scope="module")
def spending(tmp_path_factory):
    path = tmp_path_factory.mktemp("transforms") / "spending.csv"
    pl.DataFrame({"spend": SPEND, "visits": VISITS}).write_csv(path)
    return path


def test_a_skewed_column_is_transformed_with_a_note_and_shown_in_its_units(spending, tmp_path):
    model, page = tmp_path / "m.safetensors", tmp_path / "r.html"
    result = run(Job(spending, k=2, columns=("spend", "visits"), model=model, report=page))
    assert any(note.startswith("log of spend: skewed") for note in result.notes)
    for cluster in result.clusters:
        rows = result.labels == cluster.label
        assert cluster.means["spend"] == pytest.approx(SPEND[rows].mean())
        assert cluster.means["visits"] == pytest.approx(VISITS[rows].mean())
    assert predict(PredictJob(model, spending)).labels.tolist() == result.labels.tolist()
    pipeline = coterie.load(model)
    assert pipeline[0].transforms == {"spend": "log"}
    frame = pl.read_csv(spending)
    assert pipeline.predict(frame).tolist() == result.labels.tolist()
    assert pipeline.predict(frame.to_numpy()).tolist() == result.labels.tolist()
    assert "log(spend)" in page.read_text(encoding="utf-8")


def test_a_transform_is_the_same_as_that_of_the_column(spending, tmp_path):
    path = tmp_path / "logs.csv"
    pl.DataFrame({"spend": np.log(SPEND), "visits": np.sqrt(VISITS)}).write_csv(path)
    by_hand = run(Job(spending, k=2, transform=("log:spend", "sqrt:visits")))
    assert by_hand.scores["inertia"] == pytest.approx(run(Job(path, k=2)).scores["inertia"])
    plain = run(Job(spending, k=2, transform=("none:spend",)))
    assert plain.scores == run(Job(spending, k=2, scale="standard")).scores
    assert not any("skewed" in note for note in plain.notes)


def test_filled_values_are_transformed_like_the_others(spending, tmp_path):
    path, model = tmp_path / "holes.csv", tmp_path / "m.safetensors"
    cells = [None if i < 5 else value for i, value in enumerate(SPEND.tolist())]
    pl.DataFrame({"spend": cells, "visits": VISITS}).write_csv(path)
    fitted = run(Job(path, k=2, missing="median", model=model))
    median = float(np.median(SPEND[5:]))
    pl.DataFrame({"spend": [median if cell is None else cell for cell in cells], "visits": VISITS}).write_csv(
        tmp_path / "filled.csv"
    )
    assert fitted.scores["inertia"] == pytest.approx(run(Job(tmp_path / "filled.csv", k=2)).scores["inertia"])
    assert predict(PredictJob(model, path)).labels.tolist() == fitted.labels.tolist()


def test_a_value_that_cannot_be_transformed_is_named(spending, tmp_path):
    model, new = tmp_path / "m.safetensors", tmp_path / "new.csv"
    run(Job(spending, k=2, model=model))
    new.write_text("spend,visits\n5,1\n-3,2\n")
    with pytest.raises(InputError, match=r'new.csv, line 3: column "spend" has the value -3, which has no logarithm'):
        predict(PredictJob(model, new))


def test_bad_transforms_are_rejected(spending):
    assert parse_transforms(["log:a", "none:b c"]) == {"a": "log", "b c": "none"}
    for text in ("log", "cube:a", "log:"):
        with pytest.raises(ParameterError, match="pairs such as log:amount"):
            parse_transforms([text])
    with pytest.raises(InputError, match=r'no column "spent"\. Did you mean "spend"'):
        run(Job(spending, k=2, transform=("log:spent",)))
    with pytest.raises(ParameterError, match="for rows of numbers"):
        run(Job(spending, k=2, algorithm="mixture", transform=("log:spend",)))


def test_elements_of_vectors_and_directions_are_not_scaled(tmp_path):
    X = RNG.normal(size=(60, 16)) * np.linspace(1, 2, 16)
    path = tmp_path / "vectors.parquet"
    pl.DataFrame(X, schema=[f"e{j}" for j in range(16)]).write_parquet(path)
    vectors = run(Job(path, k=2))
    assert vectors.scale == "none"
    assert any("look like elements of one vector" in note for note in vectors.notes)
    assert run(Job(path, k=2, scale="standard")).scale == "standard"
    named = tmp_path / "named.parquet"
    pl.DataFrame(X[:, :3], schema=["a", "b", "c"]).write_parquet(named)
    assert run(Job(named, k=2)).scale == "standard"
    assert run(Job(named, k=2, algorithm="spherical")).scale == "none"
    units = tmp_path / "units.parquet"
    pl.DataFrame(X * np.array([1000.0, *[1.0] * 15]), schema=[f"e{j}" for j in range(16)]).write_parquet(units)
    assert run(Job(units, k=2)).scale == "standard"
