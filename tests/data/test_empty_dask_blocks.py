"""Blocks without rows, which a filter leaves behind, change no bit of a fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

da = pytest.importorskip("dask.array")

from coterie import (  # noqa: E402
    BisectingKMeans,
    FuzzyCMeans,
    GaussianMixture,
    KMeans,
    KMedians,
    MiniBatchKMeans,
    Mixture,
    SphericalKMeans,
)
from coterie.data.dask import dask_source  # noqa: E402
from coterie.errors import InputError  # noqa: E402
from coterie.metrics import davies_bouldin_score  # noqa: E402

rng = np.random.default_rng(0)
ROWS = np.concatenate([rng.normal(size=(200, 3)), rng.normal(size=(200, 3)) + 6])[rng.permutation(400)]
WITHOUT = (100, 100, 100, 100)
WITH = (0, 100, 0, 0, 100, 100, 100, 0)

ESTIMATORS = [
    *(
        KMeans(3, init=init, n_init=1, tol=1e-2)
        for init in ("k-means++", "k-means||", "farthest", "random", "random_partition")
    ),
    KMeans(3, search="fast", search_budget=1),
    MiniBatchKMeans(3, batch_size=64),
    KMedians(3),
    FuzzyCMeans(3),
    SphericalKMeans(3),
    BisectingKMeans(3),
    GaussianMixture(2),
    Mixture(2, "student_t"),
]


def lazy(sizes):
    return da.from_array(ROWS, chunks=(100, 3)).rechunk({0: sizes})


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_fit_does_not_see_blocks_without_rows(estimator):
    w = np.arange(400) % 3 + 1.0
    plain, with_empty = (
        clone(estimator).set_params(random_state=0).fit(lazy(sizes), sample_weight=w) for sizes in (WITHOUT, WITH)
    )
    for name, value in vars(plain).items():
        if name.endswith("_") and isinstance(value, np.ndarray | float):
            np.testing.assert_array_equal(getattr(with_empty, name), value, err_msg=name)
    labels = with_empty.predict(lazy(WITH))
    assert labels.chunks == (WITH,)
    np.testing.assert_array_equal(labels, plain.predict(lazy(WITHOUT)))
    assert with_empty.score(lazy(WITH)) == plain.score(lazy(WITHOUT))


def test_labels_come_back_in_the_blocks_of_the_rows_also_without_rows():
    assert KMeans(3, random_state=0).fit(lazy(WITH)).labels_.chunks == (WITH,)


def test_a_filtered_frame_is_clustered_though_partitions_have_lost_all_rows():
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(ROWS, columns=list("abc")).assign(part=np.repeat(np.arange(4), 100))
    frame = frames.from_pandas(table, npartitions=4)
    frame = frame[(frame["part"] != 0) & (frame["part"] != 2)][["a", "b", "c"]]
    kept = da.from_array(np.concatenate([ROWS[100:200], ROWS[300:]]), chunks=(100, 3))
    ours, theirs = (KMeans(3, random_state=0).fit(X) for X in (frame, kept))
    np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)
    assert ours.predict(frame).chunks == ((0, 100, 0, 100),)


def test_some_rows_of_a_source_are_in_blocks_with_rows():
    rows = np.r_[0:50, 250:300]
    assert all(dask_source(lazy(WITHOUT)).subset(rows).X.chunks[0])


def test_an_index_does_not_see_blocks_without_rows():
    labels = np.arange(400) % 2
    assert davies_bouldin_score(lazy(WITH), labels) == davies_bouldin_score(lazy(WITHOUT), labels)


def test_an_array_without_rows_is_an_input_error():
    with pytest.raises(InputError, match="X has no rows"):
        KMeans(2).fit(da.empty((0, 3)))
