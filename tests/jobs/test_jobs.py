"""Jobs from a table to a result: clusters, scaling, options and warnings."""

import numpy as np
import polars as pl
import pytest

from coterie.errors import InputError, ParameterError
from coterie.jobs import Job, run
from jobs.tables import same_partition, write_lines

# What is found


def test_groups_far_apart_are_found(blobs):
    path, y = blobs
    result = run(Job(path, k=2))
    assert same_partition(result.labels, y)
    assert [cluster.rows for cluster in result.clusters] == [20, 20]
    assert result.converged


def test_the_summary_is_what_the_labels_say(penguins):
    result = run(Job(penguins, k=3, missing="drop", exclude=("year",)))
    frame = pl.read_csv(penguins).with_columns(label=pl.Series(result.labels)).filter(pl.col("label") >= 0)
    assert result.rows_used == frame.height == 342
    for cluster in result.clusters:
        rows = frame.filter(pl.col("label") == cluster.label)
        assert cluster.rows == rows.height
        assert cluster.share == pytest.approx(rows.height / 342)
        for name, mean in cluster.means.items():
            assert mean == pytest.approx(rows[name].mean())
        for trait in cluster.stands_out_by:
            distance = rows[trait.column].mean() - frame[trait.column].mean()
            assert trait.deviation == pytest.approx(distance / frame[trait.column].std(ddof=0))


def test_what_stands_out_most_comes_first_and_what_does_not_stay_out(penguins):
    result = run(Job(penguins, k=3, missing="drop"))
    for cluster in result.clusters:
        sizes = [abs(trait.deviation) for trait in cluster.stands_out_by]
        assert sizes == sorted(sizes, reverse=True)
        assert all(size >= 0.5 for size in sizes)


def test_the_same_seed_gives_the_same_result(penguins):
    first, again = (run(Job(penguins, k=5, missing="drop", seed=11, options={"n_init": 1})) for _ in range(2))
    np.testing.assert_array_equal(first.labels, again.labels)
    assert first.scores["inertia"] == again.scores["inertia"]


def test_the_inertia_is_the_sum_of_the_squared_distances_written(penguins, tmp_path):
    out = tmp_path / "out.parquet"
    result = run(Job(penguins, k=4, missing="drop", output=out))
    assert (pl.read_parquet(out)["cluster_distance"] ** 2).sum() == pytest.approx(result.scores["inertia"])


def test_every_stage_is_announced(blobs, tmp_path):
    steps = []
    run(Job(blobs[0], k=2, output=tmp_path / "out.csv"), steps.append)
    assert list(dict.fromkeys(step.step for step in steps)) == [
        "reading blobs.csv",
        "fitting K-means",
        "silhouettes",
        "writing out.csv",
    ]


# Scale


@pytest.mark.parametrize("scale", ["standard", "robust", "minmax"])
def test_scaling_makes_the_unit_of_a_column_irrelevant(blobs, tmp_path, scale):
    path, _ = blobs
    other = tmp_path / "millimetres.parquet"
    pl.read_csv(path).with_columns(pl.col("width") * 1000 - 7).write_parquet(other)
    first, second = (run(Job(p, k=5, scale=scale, options={"n_init": 1})) for p in (path, other))
    assert same_partition(first.labels, second.labels)
    assert first.scores["inertia"] == pytest.approx(second.scores["inertia"])


def test_without_scaling_the_larger_unit_decides(tmp_path):
    path = write_lines(tmp_path, "big,small", "0,0", "1000,1", "0,2", "1000,3")
    assert same_partition(run(Job(path, k=2, scale="none")).labels, [0, 1, 0, 1])


def test_a_table_is_standardised_and_an_array_is_not_and_both_say_so(blobs, tmp_path):
    array = tmp_path / "x.npy"
    np.save(array, np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32))
    assert run(Job(blobs[0], k=2)).scale == "standard"
    assert run(Job(array, k=2)).scale == "none"


def test_robust_scaling_of_a_column_that_is_mostly_one_value_warns(tmp_path):
    path = write_lines(tmp_path, "x,y", *(f"0,{i}" for i in range(9)), "5,9")
    result = run(Job(path, k=2, scale="robust"))
    assert any('"x"' in warning for warning in result.warnings)
    assert np.isfinite(result.scores["inertia"])


# Doubts and options


def test_a_tiny_cluster_is_warned_about_but_not_among_many_small_ones(tmp_path):
    path = write_lines(tmp_path, "x", *["1"] * 300, *["2"] * 300, "1000")
    assert any("very few rows in cluster" in warning for warning in run(Job(path, k=2)).warnings)
    even = write_lines(tmp_path, "x", *(str(2 * i) for i in range(250)))
    assert run(Job(even, k=125, options={"n_init": 1})).warnings == ()


def test_too_few_distinct_rows_are_warned_about_once(tmp_path, recwarn):
    result = run(Job(write_lines(tmp_path, "x", "1", "1", "2", "2"), k=3))
    assert any("only 2 of 3 clusters have rows" in warning for warning in result.warnings)
    assert len(recwarn) == 0


@pytest.mark.parametrize(
    "bad",
    [
        {"k": 0},
        {"options": {"n_init": 0}},
        {"seed": -1},
        {"seed": 2**32},
        {"scale": "log"},
        {"missing": "zero"},
        {"algorithm": "x"},
    ],
)
def test_an_option_that_is_never_right_is_named(blobs, bad):
    with pytest.raises(ParameterError, match=str(next(iter(bad.get("options", bad))))):
        run(Job(blobs[0], **bad))


def test_more_clusters_than_rows_are_rejected(blobs):
    with pytest.raises(InputError, match=r"-k 41 asks for more clusters than there are rows \(40\)"):
        run(Job(blobs[0], k=41))
