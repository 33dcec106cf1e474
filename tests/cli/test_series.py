"""Long tables of series: `--series id,time,value`."""

import json

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.cli import main
from coterie.jobs import Job, PredictJob, predict, run

CRITERIA = {"test for clusters", "silhouette", "elbow", "prediction strength"}
LONG = ["--series", "sensor,day,level"]


def shapes(n, longest=24, seed=0):
    """Series of two shapes and different lengths, and their shape."""
    rng = np.random.default_rng(seed)
    lengths, shape = rng.integers(longest - 8, longest + 1, n), np.arange(n) % 2
    waves = [
        np.sin(np.linspace(0, 6 + 8 * s, m)) + 3 * s * np.linspace(0, 1, m) for m, s in zip(lengths, shape, strict=True)
    ]
    return [wave + rng.normal(0, 0.1, len(wave)) for wave in waves], shape


def long_table(series, seed=1, **columns):
    """One row for each value, in random order; times are dates."""
    start = pl.date(2024, 1, 1)
    frames = [
        pl.DataFrame({"sensor": [f"{i:03}"] * len(values), "level": values}).with_columns(
            day=(start + pl.duration(days=pl.int_range(pl.len()))).dt.to_string("%d.%m.%Y")
        )
        for i, values in enumerate(series)
    ]
    return pl.concat(frames).sample(fraction=1.0, shuffle=True, seed=seed).with_columns(**columns)


@pytest.fixture
def table(folder):
    series, shape = shapes(40)
    long_table(series).write_csv(folder / "long.csv")
    return series, shape


def agree(labels, shape):
    return coterie.metrics.adjusted_rand_score(labels, shape) == 1.0


def test_a_long_table_is_clustered_with_one_row_for_each_series(table, folder, capsys):
    _, shape = table
    assert main(["fit", "long.csv", *LONG, "-k", "2", "-o", "out.csv", "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["method"] == "kmeans-dtw"
    assert "40 series of 16 to 24 values (level by day)." in captured.err
    out = pl.read_csv(folder / "out.csv", schema_overrides={"sensor": pl.String}).sort("sensor")
    assert out["sensor"].to_list() == [f"{i:03}" for i in range(40)]
    assert agree(out["cluster"], shape)


def test_the_values_are_those_of_the_series_in_order_of_time(table):
    series, _ = table
    direct = coterie.TimeSeriesKMeans(2, random_state=0).fit(series)
    result = run(Job("long.csv", k=2, series=("sensor", "day", "level")))
    order = pl.read_csv("long.csv", schema_overrides={"sensor": pl.String})["sensor"].unique(maintain_order=True)
    by_sensor = dict(zip(order.to_list(), result.labels, strict=True))
    assert agree([by_sensor[f"{i:03}"] for i in range(40)], direct.labels_)
    assert result.scores["inertia"] == pytest.approx(direct.inertia_, rel=0.3)


def test_the_number_of_clusters_of_series_is_chosen(table, capsys):
    for algorithm in ("kmeans-dtw", "kmedoids-dtw"):
        assert main(["fit", "long.csv", *LONG, "-a", algorithm, "--budget", "quick", "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["k"] == 2
        assert {vote["criterion"] for vote in result["choice"]["votes"]} == CRITERIA
    assert main(["choose-k", "long.csv", *LONG, "--budget", "quick", "-k", "2:4"]) == 0
    assert "K = 2" in capsys.readouterr().out


@pytest.mark.parametrize("algorithm", ["kmeans-dtw", "kmedoids-dtw"])
@pytest.mark.parametrize("longest", [12, 24, 40])
def test_predict_takes_series_of_other_lengths_and_times(table, folder, algorithm, longest):
    run(Job("long.csv", k=2, series="sensor,day,level", algorithm=algorithm, model=folder / "m.safetensors"))
    series, shape = shapes(10, longest, seed=5)
    long_table(series).write_csv(folder / "new.csv")
    result = predict(
        PredictJob(
            folder / "m.safetensors", folder / "new.csv", series=("sensor", "day", "level"), output=folder / "o.csv"
        )
    )
    out = pl.read_csv(folder / "o.csv", schema_overrides={"sensor": pl.String}).sort("sensor")
    assert result.rows == 10
    assert agree(out["cluster"], shape)
    model = coterie.load(folder / "m.safetensors")[-1]
    assert out["cluster"].to_list() == model.predict(series).tolist()


def test_series_of_one_length_have_their_times_as_columns(folder):
    series, _ = shapes(10)
    long_table([values[:5] for values in series]).write_csv(folder / "long.csv")
    result = run(Job("long.csv", k=2, series=("sensor", "day", "level")))
    assert result.columns[:2] == ("01.01.2024", "02.01.2024")
    assert result.n_columns == 6


def test_a_report_of_series_from_a_long_table_is_written(table, folder):
    assert main(["fit", "long.csv", *LONG, "-k", "2", "--report", "r.html", "-q"]) == 0
    page = (folder / "r.html").read_text()
    assert "--series sensor,day,level" in page
    assert "--id" not in page


BAD = [
    ("duplicate", 3, 'sensor "000" has more than one value at day "01.01.2024", and 39 more of such pairs'),
    ("missing value", 3, 'column "level" is empty, in 1 row. Fill these values; or leave out their time points'),
    ("missing name", 3, 'column "sensor" is empty, but every value of a series needs a name and a time.'),
    ("text time", 3, 'column "day" of long.csv holds text, such as'),
    ("text value", 3, 'column "level" of long.csv holds text: values of series must be numbers.'),
    ("--series sensor,day", 2, "--series takes three columns, of names, times and values: id,time,value; got"),
    ("--series sensor,day,levle", 3, 'no column "levle". Did you mean "level"?'),
    ("--series sensor,day,day", 2, "--series takes three columns"),
    ("-a ward", 2, "--series is for -a kmeans-dtw or kmedoids-dtw; ward needs a table with one row for each series."),
    ("--exclude day", 2, "--exclude is not for --series, which names its columns: leave it out."),
    ("--id day", 2, "--id day and --series sensor,day,level name different columns: leave out --id."),
    ("-a kmeans-dtw --metric euclidean", 3, "needs series of equal length"),
]


@pytest.mark.parametrize(("change", "code", "message"), BAD, ids=[change for change, _, _ in BAD])
def test_bad_series_give_one_clear_error(table, folder, capsys, change, code, message):
    series, _ = table
    frame = long_table(series).sort("sensor", pl.col("day").str.to_date("%d.%m.%Y"))
    first = pl.int_range(pl.len()) == 0
    changed = {
        "duplicate": lambda: pl.concat([frame, frame.filter(pl.col("day") == "01.01.2024")]),
        "missing value": lambda: frame.with_columns(pl.when(first).then(None).otherwise("level").alias("level")),
        "missing name": lambda: frame.with_columns(pl.when(first).then(None).otherwise("sensor").alias("sensor")),
        "text time": lambda: frame.with_columns(day=pl.lit("monday ") + pl.col("day")),
        "text value": lambda: frame.with_columns(level=pl.lit("about ") + pl.col("level").cast(pl.String)),
    }
    if change in changed:
        changed[change]().write_csv(folder / "long.csv")
    arguments = change.split() if change.startswith("-") else []
    options = arguments if "--series" in arguments else [*LONG, *arguments]
    assert main(["fit", "long.csv", "-k", "2", *options]) == code
    assert message in capsys.readouterr().err


def test_missing_values_and_gaps_are_told(table, folder, capsys):
    series, shape = table
    frame = long_table(series)
    gap = (pl.col("day") == "05.01.2024") & (pl.col("sensor") == "003")
    empty = (pl.col("day") == "07.01.2024") & (pl.col("sensor") == "004")
    frame.filter(~gap).with_columns(pl.when(~empty).then("level").alias("level")).write_csv(folder / "long.csv")
    assert main(["fit", "long.csv", *LONG, "-k", "2", "--missing", "drop", "-o", "out.csv"]) == 0
    err = capsys.readouterr().err
    assert "1 row without a value were left out" in err or "1 row without a value was left out" in err
    assert "2 of 40 series lack time points that most others have: their values are joined." in err
    out = pl.read_csv(folder / "out.csv", schema_overrides={"sensor": pl.String}).sort("sensor")
    assert agree(out["cluster"], shape)


def test_series_are_not_for_other_models_and_for_compare(table, folder, capsys):
    rng = np.random.default_rng(0)
    pl.DataFrame(rng.normal(size=(30, 2)), schema=["a", "b"]).write_csv(folder / "rows.csv")
    assert main(["fit", "rows.csv", "-k", "2", "--model", "m.safetensors", "-q"]) == 0
    assert main(["predict", "m.safetensors", "long.csv", *LONG]) == 2
    assert "--series is for models of series; m.safetensors is a KMeans" in capsys.readouterr().err
    assert main(["compare", "long.csv", *LONG]) == 2
    assert "--series is not for compare" in capsys.readouterr().err
