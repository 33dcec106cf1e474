"""Kernels for rows on a device, on CPU tensors, against the NumPy kernels that define the results."""

from functools import partial

import numpy as np
import pytest

from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.kernels import plain
from coterie.metrics import silhouette_samples
from coterie.metrics.labels import Labels
from coterie.metrics.moments import cluster_moments
from coterie.metrics.silhouette import _simplified

torch = pytest.importorskip("torch", reason="the kernels for devices need PyTorch: pip install 'coterie[gpu]'")

from coterie import kernels  # noqa: E402
from coterie.data import tensors  # noqa: E402
from coterie.engines.cuda import Cuda  # noqa: E402
from coterie.kernels import cuda  # noqa: E402
from coterie.kernels.cuda import exact, labelled  # noqa: E402
from coterie.kernels.cuda.cluster_sums import by_cluster  # noqa: E402

rng = np.random.default_rng(0)


def rows_of(kind, n=700, d=5, dtype=np.float32):
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(4, d))[rng.integers(4, size=n)]
    if kind == "far":
        X += 300
    elif kind == "grid":
        X = np.round(X)
    elif kind == "repeated":
        X = X[rng.integers(12, size=n)]
    return X.astype(dtype)


def on_cpu(array):
    return cuda.DeviceArray(torch.from_numpy(np.ascontiguousarray(array)))


def test_the_table_selects_the_kernels_of_devices():
    assert kernels.for_centers(on_cpu(np.zeros((3, 2))), 2) is cuda


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["blobs", "far", "grid", "repeated"])
def test_labels_and_sums_are_those_of_numpy(kind, dtype):
    X = rows_of(kind, dtype=dtype)
    centers = np.concatenate([X[:7], X[:1]])  # the last is a duplicate: the first of both gets its rows
    w = rng.random(len(X))
    for weights in (None, w):
        expected_labels = rng.integers(-1, 7, size=len(X)).astype(np.int32)
        labels = on_cpu(expected_labels.copy())
        expected = plain.lloyd(X, weights, centers, centers, expected_labels, np.zeros(0, np.float32))
        sums = cuda.lloyd(on_cpu(X), weights, centers, centers, labels, None)
        np.testing.assert_array_equal(np.asarray(labels), expected_labels)
        assert sums.moved == expected.moved
        np.testing.assert_allclose(sums.weight, expected.weight, rtol=1e-12)
        np.testing.assert_allclose(sums.sum_dx, expected.sum_dx, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(sums.cost, expected.cost, rtol=1e-12, atol=1e-12)


def test_of_equally_near_centers_the_first_is_chosen():
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    centers = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    for find in (exact.nearest, exact.by_definition):
        assert find(torch.tensor(X), torch.tensor(centers)).tolist() == [0, 0]
    assert exact.first_minimum(torch.tensor([[2.0, 1.0, 1.0]])).tolist() == [1]


def test_labels_do_not_depend_on_the_size_of_blocks(monkeypatch):
    X, centers = torch.from_numpy(rows_of("grid")), torch.from_numpy(rows_of("grid", n=9))
    whole = exact.nearest(X, centers)
    monkeypatch.setattr(exact, "BLOCK", 100)
    assert torch.equal(exact.nearest(X, centers), whole)
    assert torch.equal(exact.by_definition(X, centers), whole)


def test_sums_by_cluster_have_several_levels(monkeypatch):
    monkeypatch.setattr("coterie.kernels.cuda.cluster_sums.SEGMENT", 4)
    monkeypatch.setattr("coterie.kernels.cuda.cluster_sums.SLAB", 24)
    values = torch.from_numpy(rng.normal(size=(500, 2)))
    labels = torch.from_numpy(rng.integers(3, size=500).astype(np.int32))
    labels[labels == 1] = 0  # a cluster without rows
    sums = by_cluster(values.__getitem__, labels, 4)
    expected = np.stack([values[labels == j].sum(0).numpy() for j in range(4)])
    np.testing.assert_allclose(sums.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_moments_distances_and_squares_are_those_of_numpy():
    X, w, pivot = rows_of("far"), rng.random(700), rng.normal(size=5) + 300
    centers, labels = X[:6], rng.integers(6, size=700).astype(np.int32)
    for weights in (None, w):
        for a, b in zip(cuda.moments(on_cpu(X), weights, pivot), plain.moments(X, weights, pivot), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(np.asarray(cuda.distances(on_cpu(X), centers)), plain.distances(X, centers), rtol=1e-6)
    squares = cuda.assigned_squares(on_cpu(X), centers, labels)
    np.testing.assert_allclose(squares, plain.assigned_squares(X, centers, labels), rtol=1e-12)
    np.testing.assert_array_equal(cuda.take(on_cpu(X), [3, 1]), X[[3, 1]])


def test_potentials_and_samples_are_those_of_numpy():
    X, w, points = rows_of("blobs", n=9000), rng.random(9000), rows_of("blobs", n=4)
    for weights in (None, w):
        expected_closest = np.full(len(X), np.inf, np.float32)
        closest = on_cpu(expected_closest.copy())
        expected = plain.potentials(X, np.ones(len(X)) if weights is None else w, 2.0, points, expected_closest)
        np.testing.assert_allclose(cuda.potentials(on_cpu(X), weights, 2.0, points, closest), expected, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(closest), expected_closest, rtol=1e-6)
        u = np.concatenate([[1e-12, 1 - 1e-12], rng.random(200)])
        total, rows = cuda.draw(closest, weights, u)
        expected_total, expected_rows = plain.draw(np.asarray(closest), weights, u)
        assert total == pytest.approx(expected_total, rel=1e-12)
        np.testing.assert_array_equal(rows, expected_rows)


def test_no_row_is_sampled_without_mass():
    closest = on_cpu(np.zeros(5000, np.float32))
    total, rows = cuda.draw(closest, None, np.array([0.2, 0.9]))
    assert (total, rows.tolist()) == (0.0, [-1, -1])
    closest[np.array([4500])] = 2.0
    assert cuda.draw(closest, None, np.array([1e-9, 0.5, 1 - 1e-12]))[1].tolist() == [4500] * 3


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_rows_keep_their_values(kind):
    X = torch.from_numpy(rows_of("blobs")).to(getattr(torch, kind))
    rows, centers = cuda.DeviceArray(X), X[:5].float().numpy()
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(cuda.nearest(rows, centers)), plain.nearest(X.float().numpy(), centers))


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_and_silhouettes_of_clusters_are_those_of_numpy(weighted, monkeypatch):
    monkeypatch.setattr(tensors, "DEVICE", "cpu")
    monkeypatch.setattr("coterie.kernels.cuda.labelled.BLOCK", 100**2)
    X, codes = rows_of("far", n=300, dtype=np.float64), rng.integers(4, size=300)
    w = rng.integers(0, 3, size=300).astype(float) if weighted else None
    if weighted:
        w[codes == 2] = 0.0  # a cluster without weight
    labels = Labels(codes, np.arange(4))
    memory, device = MemorySource(X, w, y=codes), tensors.tensor_source(X, w, codes)
    expected, moments = cluster_moments(memory, Serial(), labels), cluster_moments(device, Cuda(), labels)
    for a, b in zip((*moments[2:], *moments.means), (*expected[2:], *expected.means), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    weight = np.bincount(codes, w, 4).astype(float)
    for squared in (False, True):
        sums = (
            partial(_simplified, moments, weight, squared)(chunk)
            for chunk in (device.parts()[0](), memory.pick(slice(None)))
        )
        np.testing.assert_allclose(*sums, rtol=1e-9, atol=1e-9)
    values = np.asarray(labelled.silhouettes(on_cpu(X), w, codes, 4))
    np.testing.assert_allclose(values, silhouette_samples(X, codes, sample_weight=w), rtol=1e-9, atol=1e-12)


def test_no_rows_have_no_sums():
    sums = cuda.lloyd(on_cpu(np.zeros((0, 2))), None, np.zeros((3, 2)), None, on_cpu(np.zeros(0, np.int32)), None)
    assert sums.moved == 0
    assert not sums.weight.any()
    assert sums.sum_dx.shape == (3, 2)
