"""Triton kernels and fits on an NVIDIA GPU; `make gpu-test` runs these tests."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans
from coterie.data import tensors
from coterie.errors import InputError, ParameterError

torch = pytest.importorskip("torch", reason="a GPU needs PyTorch: pip install 'coterie[gpu]'")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU, or no driver for it"),
]

SHAPES = [  # rows, columns, centers: every kernel, and numbers that are no multiple of a tile
    (3001, 128, 1000), (2001, 100, 333), (4097, 64, 129), (1500, 512, 300), (70, 33, 5), (9001, 16, 64),
    (5001, 7, 37), (999, 300, 70), (500, 1024, 200), (900, 200, 150), (100, 1, 3), (33, 2, 8), (1500, 16, 700),
]  # fmt: skip


def table(n, d, k, kind="blobs", seed=0):
    """Rows and initial centers on the GPU."""
    random = torch.Generator(device="cuda").manual_seed(seed)
    options = {"device": "cuda", "generator": random}
    X = torch.randn(k, d, **options)[torch.randint(0, k, (n,), **options)] + torch.randn(n, d, **options)
    if kind == "far":
        X += 300
    elif kind == "grid":
        X = torch.round(X)
    elif kind == "repeated":
        X = X[torch.randint(0, max(2, n // 50), (n,), **options)]
    return X.contiguous(), X[torch.randint(0, n, (k,), **options)].contiguous()


def labels_of(X):
    from coterie.kernels.cuda import DeviceArray

    return DeviceArray(torch.full((len(X),), -1, dtype=torch.int32, device="cuda"))


def passes(X, centers, n_passes=3):
    """Centers, labels and sums after each pass of K-means."""
    from coterie.kernels import cuda

    rows, labels, results = cuda.DeviceArray(X), labels_of(X), []
    centers = cuda.DeviceArray(centers)
    for _ in range(n_passes):
        sums = cuda.lloyd(rows, None, centers, None, labels, None)
        results.append((centers.tensor, labels.tensor.clone(), sums))
        centers, steps = cuda.move_centers(centers, sums.sum_dx, sums.weight, sums.weight > 0)
        squared = (centers.tensor.double() - results[-1][0].double()).square().sum(1)
        torch.testing.assert_close(steps, squared, rtol=1e-9, atol=1e-12)
    return results


@pytest.mark.parametrize("kind", ["blobs", "far", "grid", "repeated"])
@pytest.mark.parametrize("n, d, k", SHAPES)
def test_labels_are_exact_and_sums_have_the_same_bits_in_every_run(n, d, k, kind):
    from coterie.kernels.cuda import DeviceArray, _sums, exact

    X, centers = table(n, d, k, kind)
    before = torch.full((n,), -1, dtype=torch.int32, device="cuda")
    for (c, labels, sums), (_, _, again) in zip(passes(X, centers), passes(X, centers), strict=True):
        assert torch.equal(labels, exact.by_definition(X, c))
        expected = _sums(DeviceArray(X), None, c, labels, int((labels != before).sum()))
        assert sums.moved == expected.moved
        np.testing.assert_array_equal(sums.weight, expected.weight)
        size = float((X - X.mean(0)).abs().max())
        assert float((sums.sum_dx - expected.sum_dx).abs().max()) <= 1e-12 * n * size
        np.testing.assert_allclose(sums.cost.sum(), expected.cost.sum(), rtol=1e-9, atol=1e-20)
        assert torch.equal(sums.sum_dx, again.sum_dx)
        np.testing.assert_array_equal(sums.cost, again.cost)
        before = labels


@pytest.mark.parametrize("n, d, k", [(3001, 128, 1000), (900, 200, 150), (1500, 512, 300), (5001, 100, 2100)])
def test_labels_are_those_of_other_gpus(n, d, k, monkeypatch):
    from coterie.kernels.cuda import certified

    X, centers = table(n, d, k, "grid" if n == 900 else "far")
    hopper = passes(X, centers)
    monkeypatch.setattr(certified, "HOPPER", None)
    for (_, labels, sums), (_, expected, other) in zip(hopper, passes(X, centers), strict=True):
        assert torch.equal(labels, expected)
        assert torch.equal(sums.sum_dx, other.sum_dx)


@pytest.mark.parametrize("kind", ["float64", "float16", "bfloat16"])
def test_other_types_have_exact_labels_too(kind):
    from coterie.kernels.cuda import exact

    X, centers = table(3000, 40, 200, "far")
    X = X.to(getattr(torch, kind))
    for c, labels, _ in passes(X, centers.to(torch.float64 if kind == "float64" else torch.float32)):
        assert torch.equal(labels, exact.by_definition(X, c))


def test_sums_follow_labels_that_were_changed_or_replaced():
    from coterie.kernels import cuda

    X, centers = table(2000, 20, 30)
    rows, labels = cuda.DeviceArray(X), labels_of(X)
    first = cuda.lloyd(rows, None, centers, None, labels, None)
    cuda.lloyd(rows, None, centers + 1, None, labels_of(X), None)
    labels.tensor[:700] = 3
    for memo in (labels, labels_of(X), np.full(2000, -1, np.int32)):
        again = cuda.lloyd(rows, None, centers, None, memo, None)
        assert torch.equal(again.sum_dx, first.sum_dx)
        np.testing.assert_array_equal(again.weight, first.weight)


@pytest.mark.parametrize("distance", [1e3, 1e9, 1e30])
def test_a_center_far_from_all_rows_changes_no_label(distance):
    from coterie.kernels import cuda

    X, centers = table(3000, 20, 200)
    far = torch.cat([centers, torch.full((1, 20), distance, device="cuda")]).double()
    sums = cuda.lloyd(cuda.DeviceArray(X.double()), None, far, None, labels_of(X), None)
    expected = cuda.lloyd(cuda.DeviceArray(X), None, centers, None, labels_of(X), None)
    np.testing.assert_array_equal(sums.weight[:-1], expected.weight)


def test_clusters_of_equal_rows_have_no_cost():
    from coterie.kernels import cuda

    X = torch.arange(40.0, device="cuda").repeat(50)[:, None] * torch.ones(1, 20, device="cuda") + 1000
    sums = cuda.lloyd(cuda.DeviceArray(X), None, X[:40].contiguous(), None, labels_of(X), None)
    assert not sums.cost.any()


@pytest.mark.parametrize("shift", [0, 1000])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_fit_has_the_labels_of_the_cpu(kind, shift):
    X, centers = (part.to(getattr(torch, kind)) + shift for part in table(20_000, 24, 40))
    options = {"init": centers.cpu().numpy(), "algorithm": "lloyd", "max_iter": 20, "tol": 0}
    with pytest.warns(ConvergenceWarning):
        cpu = KMeans(40, device="cpu", **options).fit(X.cpu().numpy())
    with pytest.warns(ConvergenceWarning):
        gpu = KMeans(40, **options).fit(X)
    assert np.mean(gpu.labels_.cpu().numpy() == cpu.labels_) > 0.999  # centers differ by rounding
    np.testing.assert_allclose(gpu.cluster_centers_, cpu.cluster_centers_, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(gpu.history_, cpu.history_, rtol=1e-6)
    gpu.cluster_centers_ = cpu.cluster_centers_
    np.testing.assert_array_equal(gpu.predict(X).cpu().numpy(), cpu.labels_)


def test_tensors_in_and_tensors_out():
    X, _ = table(5000, 16, 10)
    model = KMeans(10, random_state=0).fit(X)
    assert model.labels_.device == X.device
    assert model.predict(X).dtype == torch.int32
    assert torch.equal(model.predict(X), model.labels_)
    assert model.transform(X).shape == (5000, 10)
    assert torch.equal(model.transform(X).argmin(1).int(), model.labels_)
    assert isinstance(KMeans(10, random_state=0, device="cuda").fit(X.cpu().numpy()).labels_, np.ndarray)


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "forgy", "random_partition", "farthest"])
def test_fits_have_the_same_bits_in_every_run(init):
    X, _ = table(8000, 16, 10)
    w = torch.rand(8000, device="cuda")
    for weights in (None, w):
        fits = [KMeans(10, init=init, random_state=0, n_init=2).fit(X, sample_weight=weights) for _ in range(2)]
        np.testing.assert_array_equal(fits[0].cluster_centers_, fits[1].cluster_centers_)
        assert fits[0].inertia_ == fits[1].inertia_


def test_rows_larger_than_the_memory_of_the_gpu_are_streamed(monkeypatch):
    X, centers = (part.cpu().numpy() for part in table(30_000, 24, 20))
    resident = KMeans(20, init=centers, device="cuda").fit(X)
    monkeypatch.setattr(tensors, "FREE_FRACTION", 0.0)
    monkeypatch.setattr(tensors, "STREAMED_PART", 1 << 18)
    assert len(tensors.tensor_source(X).parts()) > 5
    streamed = KMeans(20, init=centers, device="cuda").fit(X)
    np.testing.assert_array_equal(streamed.labels_, resident.labels_)
    np.testing.assert_allclose(streamed.cluster_centers_, resident.cluster_centers_, rtol=1e-6)
    read_only = X.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(streamed.predict(read_only), resident.labels_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mixtures_of_streamed_rows_are_those_of_resident_ones(dtype, monkeypatch):
    from coterie import GaussianMixture, Mixture

    X = table(20_000, 6, 3)[0].cpu().numpy().astype(dtype)
    counts = np.floor(np.exp(np.clip(X, -2, 2)))
    labels = np.arange(20_000) % 3
    for model, rows in (
        (GaussianMixture(3, init_params=labels), X),
        (Mixture(3, "poisson", init_params=labels), counts),
    ):
        model.set_params(device="cuda", max_iter=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            resident = model.fit(rows).log_likelihood_
            with monkeypatch.context() as patch:
                patch.setattr(tensors, "FREE_FRACTION", 0.0)
                patch.setattr(tensors, "STREAMED_PART", 1 << 17)
                assert len(tensors.tensor_source(rows).parts()) > 3
                assert model.fit(rows).log_likelihood_ == pytest.approx(resident, rel=1e-6)


def test_too_little_memory_is_one_sentence_and_frees_it(monkeypatch):
    X, _ = table(1000, 8, 4)

    def exhausted(*_):
        return torch.empty(1 << 50, device="cuda")

    monkeypatch.setattr("coterie.kernels.cuda.moments", exhausted)
    before = torch.cuda.memory_allocated()
    with pytest.raises(InputError, match="the memory of the GPU is too small for this step"):
        KMeans(4).fit(X)
    assert torch.cuda.memory_allocated() <= before


@pytest.mark.parametrize("n, d", [(3001, 5), (2000, 70), (1025, 300)])
def test_costs_of_seeding_are_those_of_pytorch(n, d):
    from coterie.kernels import cuda
    from coterie.kernels.cuda import sampling

    X, points = table(n, d, 7, "far")
    for w in (None, torch.rand(n, device="cuda", dtype=torch.float64)):
        closest, expected = (torch.full((n,), float("inf"), device="cuda") for _ in range(2))
        for first in range(3):
            some = points[first : first + 4]
            sums = cuda.potentials(cuda.DeviceArray(X), w, 3.0, some.cpu().numpy(), cuda.DeviceArray(closest))
            np.testing.assert_allclose(sums, sampling.potentials(X, w, 3.0, some, expected).cpu(), rtol=2e-5)
            torch.testing.assert_close(closest, expected, rtol=1e-5, atol=1e-6)


def squares_to(X, point):
    return ((X.astype(np.float64) - point) ** 2).sum(axis=1)


def centers_by_numpy(X, w, first, wanted, size, numbers):
    """Rows of the centers of greedy k-means++ after the row `first`, from the uniform numbers of all rounds."""
    closest, origin, candidates, centers = np.full(len(X), np.inf), X[first], np.zeros(0, int), []
    for u in numbers:
        closest = np.minimum(closest, squares_to(X, origin))
        cumulative = np.cumsum(closest * w)
        drawn = np.searchsorted(cumulative, u[0] * cumulative[-1], side="right")
        if len(candidates):
            sums = [(np.minimum(closest, squares_to(X, X[c])) * w).sum() for c in candidates]
            centers.append(int(candidates[np.argmin(sums)]))
            origin = X[centers[-1]]
            kept = drawn[u[1] * closest[drawn] < np.minimum(closest[drawn], squares_to(X[drawn], origin))]
            candidates = kept[:size] if len(kept) >= size else kept[:0]
        else:
            candidates = drawn[:size]
        if len(centers) == wanted:
            break
    return centers


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n, d, k", [(3001, 5, 20), (2000, 70, 12), (1025, 300, 9), (200_001, 2, 6)])
def test_rounds_of_kmeans_plusplus_are_those_of_numpy(n, d, k, weighted):
    from coterie.kernels import cuda

    X, rng, size = table(n, d, 7)[0], np.random.default_rng(0), 4
    w = rng.integers(0, 3, size=n).astype(np.float64) if weighted else None
    on_device = None if w is None else torch.from_numpy(w).cuda()
    rounds = cuda.plusplus_rounds(cuda.DeviceArray(X), on_device, k, size, 2.0, None)
    numbers, rows = rng.random((2 * k, 2, 14)), X.cpu().numpy()
    rounds.start(rows[3])
    rounds.run(numbers[:5])
    rounds.run(numbers[5:])
    expected = centers_by_numpy(rows, np.ones(n) if w is None else w, 3, k, size, numbers)
    assert rounds.progress() == (k, True)
    assert rounds.rows(k).tolist() == expected


@pytest.mark.parametrize("fixed", [0, 3])
def test_kmeans_plusplus_finds_all_distinct_rows_and_repeats_one_if_there_are_fewer(fixed):
    from coterie.engines.cuda import Cuda
    from coterie.seeding import plusplus

    distinct = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32) + 300
    source = tensors.tensor_source(torch.from_numpy(np.repeat(distinct, 30, axis=0)).cuda())
    chosen = distinct[:fixed] if fixed else None
    for k in (1, 40 - fixed, 50):
        centers = plusplus(source, Cuda(), np.random.default_rng(0), k, 1.0, chosen=chosen)
        assert centers.shape == (k, 5)
        found = np.unique(np.concatenate([centers, distinct[:fixed]]), axis=0)
        assert len(found) == min(k + fixed, 40)
        again = plusplus(source, Cuda(), np.random.default_rng(0), k, 1.0, chosen=chosen)
        np.testing.assert_array_equal(centers, again)


def test_rows_are_sampled_by_their_costs_as_they_are():
    """Changes by `data` do not change the version of a tensor, and new tensors can have the address of old ones."""
    from coterie.kernels import cuda

    X, points = table(5000, 6, 4)
    rows, u = cuda.DeviceArray(X), np.random.default_rng(0).random(50)
    closest = cuda.row_values(rows, np.inf, np.float32)
    for change in ("add_", "data", "new"):
        total = cuda.potentials(rows, None, 1.0, points[:2].cpu().numpy(), closest)[0]
        assert cuda.draw(closest, None, u)[0] == pytest.approx(total, rel=1e-5)
        if change == "add_":
            closest.tensor[1000:] = 0
        elif change == "data":
            closest.tensor.data[1000:] = 0
        else:
            address = closest.tensor.data_ptr()
            del closest.tensor
            closest.tensor = torch.zeros(5000, device="cuda")
            assert closest.tensor.data_ptr() == address
            closest.tensor[:1000] = 1
        total, drawn = cuda.draw(closest, None, u)
        assert total == pytest.approx(float(closest.tensor.double().sum()), rel=1e-6)
        assert drawn.max() < 1000
        closest.tensor.fill_(np.inf)


def test_a_fit_uses_rows_as_they_are():
    X, _ = table(20_000, 40, 30)
    model = KMeans(30, random_state=0, n_init=1, max_iter=5, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for change in ("mul_", "data"):
            model.fit(X)
            (X if change == "mul_" else X.data).mul_(torch.rand(40, device="cuda"))
            changed = model.fit(X).labels_.clone()
            assert torch.equal(changed, model.fit(X.clone()).labels_)


def test_the_statistics_of_a_pass_do_not_depend_on_the_memo():
    from coterie.core.protocols import Chunk
    from coterie.kernels.cuda import DeviceArray
    from coterie.kmeans.device_lloyd import DeviceLloyd
    from coterie.kmeans.lloyd import NO_BOUNDS, Bounds
    from zoo import LARGE, SMALL

    for X in (SMALL, LARGE):
        rows = Chunk(DeviceArray(torch.from_numpy(X).cuda()), None, 0)
        model, memo = DeviceLloyd(7), Bounds(None, labels_of(X), NO_BOUNDS)
        for shift in (0.0, 0.3, 0.1):
            centers = DeviceArray(torch.from_numpy(X[:7] + shift).cuda())
            stats, memo = model.e_step(centers, rows, memo)
            fresh, _ = model.e_step(centers, rows._replace(X=DeviceArray(rows.X.tensor)), None)
            assert torch.equal(stats.sum_dx, fresh.sum_dx)
            np.testing.assert_array_equal(stats.cost, fresh.cost)
            np.testing.assert_array_equal(np.asarray(memo.labels), np.asarray(model.assign(np.asarray(centers), rows)))


def gaussians(k, d, spread=2.0, shift=0.0, seed=0):
    """Components with full covariances."""
    from coterie.kernels.plain.gaussian import Gaussians

    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(k, d, d)) / np.sqrt(d) + np.eye(d)
    factor = np.linalg.inv(np.linalg.cholesky(roots @ roots.transpose(0, 2, 1))).transpose(0, 2, 1)
    offset = np.log(1 / k) - 0.5 * d * np.log(2 * np.pi) + np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    means = spread * rng.normal(size=(k, d)) + shift
    return Gaussians("full", offset, means, factor, means.mean(axis=0)), roots


def rows_of(g, roots, n, seed=1):
    rng = np.random.default_rng(seed)
    z = rng.integers(len(roots), size=n)
    noise = np.einsum("nij,nj->ni", roots[z], rng.normal(size=(n, roots.shape[1])))
    return torch.from_numpy((g.means[z] + noise).astype(np.float32)).cuda()


@pytest.mark.parametrize("spread, shift", [(2.0, 0.0), (2.0, 300.0), (30.0, 0.0)])
@pytest.mark.parametrize("n, d, k", [(20_001, 32, 17), (5000, 16, 16), (999, 5, 3), (3000, 100, 7), (3001, 20, 130)])
def test_sums_of_full_covariances_are_those_of_float64(n, d, k, spread, shift):
    from coterie.kernels import cuda

    g, roots = gaussians(k, d, spread, shift)
    X = rows_of(g, roots, n)
    fast, again = (cuda.em(cuda.DeviceArray(X), None, g) for _ in range(2))
    exact = cuda.em(cuda.DeviceArray(X.double()), None, g)
    assert all(np.array_equal(a, b) for a, b in zip(fast, again, strict=True))
    assert fast.log_likelihood == pytest.approx(exact.log_likelihood, rel=3e-6)
    weight = np.maximum(exact.weight, 1.0)
    np.testing.assert_allclose(fast.weight, exact.weight, rtol=3e-4, atol=1e-3)
    assert (np.abs(fast.sum_dx - exact.sum_dx) / weight[:, None]).max() < 1e-3
    assert (np.abs(fast.sum_dxx - exact.sum_dxx) / weight[:, None, None]).max() < 1e-2


@pytest.mark.parametrize("form", ["full", "tied", "diag", "spherical"])
def test_sums_of_gaussians_on_a_gpu_are_those_of_numpy(form):
    from coterie.kernels import cuda, plain

    g, roots = gaussians(5, 6)
    factor = {"full": g.factor, "tied": g.factor[0], "diag": np.abs(g.factor[:, 0]) + 0.1, "spherical": np.ones(5)}
    g = g._replace(form=form, factor=factor[form])
    X = rows_of(g, roots, 2000).double()
    w = torch.rand(2000, dtype=torch.float64, device="cuda")
    for weights in (None, w):
        sums = cuda.em(cuda.DeviceArray(X), weights, g)
        expected = plain.em(X.cpu().numpy(), None if weights is None else w.cpu().numpy(), g)
        for a, b in zip(sums, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-8)


def test_mixtures_give_tensors_and_the_same_bits_in_every_run():
    from coterie import BayesianGaussianMixture, FuzzyCMeans, GaussianMixture, MiniBatchKMeans, Mixture, SphericalKMeans

    X, _ = table(6000, 8, 4)
    counts = torch.poisson(torch.exp(X.clamp(-2, 2)))
    for model, rows in (
        (GaussianMixture(4, random_state=0), X),
        (GaussianMixture(4, covariance_type="VEV", random_state=0), X.double()),
        (BayesianGaussianMixture(5, random_state=0), X),
        (Mixture(3, "poisson", random_state=0), counts),
        (SphericalKMeans(4, random_state=0), X),
        (FuzzyCMeans(4, random_state=0), X),
        (MiniBatchKMeans(4, random_state=0), X),
    ):
        first = model.fit(rows).labels_
        results = model.predict(rows), model.score(rows)
        assert first.device == rows.device
        assert torch.equal(results[0], first) or isinstance(model, MiniBatchKMeans)
        assert torch.equal(model.fit(rows).labels_, first)
        assert model.score(rows) == results[1]
    assert model.transform(X).device == X.device
    assert GaussianMixture(2, random_state=0).fit(X).predict_proba(X).device == X.device


def test_metrics_of_tensors_are_those_of_arrays():
    from coterie import metrics
    from coterie.distances import pairwise

    X, _ = table(3000, 5, 4)
    labels = KMeans(4, random_state=0).fit(X).labels_
    array, codes = X.cpu().numpy(), labels.cpu().numpy()
    for score in (metrics.calinski_harabasz_score, metrics.davies_bouldin_score, metrics.inertia):
        assert score(X, labels) == pytest.approx(score(array, codes), rel=1e-6)
    for options in ({}, {"approximation": "simplified"}, {"average": "macro"}):
        expected = metrics.silhouette_score(array, codes, **options)
        assert metrics.silhouette_score(X, labels, **options) == pytest.approx(expected, rel=1e-5)
    w = torch.randint(0, 3, (3000,), device="cuda").double()
    expected = metrics.silhouette_score(array, codes, sample_weight=w.cpu().numpy())
    assert metrics.silhouette_score(X, labels, sample_weight=w) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ParameterError, match="metric='cosine' is not supported for tensors on a GPU"):
        metrics.silhouette_samples(X, labels, metric="cosine")
    with pytest.raises(ParameterError, match="approximation='medoid'"):
        metrics.silhouette_score(X, labels, approximation="medoid")
    with pytest.raises(ParameterError, match="got metric='dtw': pass X"):
        pairwise(X[:5], metric="dtw")
    values = metrics.silhouette_samples(X, labels)
    assert values.device == X.device
    np.testing.assert_allclose(values.cpu(), metrics.silhouette_samples(array, codes), rtol=1e-3, atol=1e-5)
    distances = pairwise(X[:50], X[50:90])
    assert distances.device == X.device
    np.testing.assert_allclose(distances.cpu(), pairwise(array[:50], array[50:90]), rtol=1e-5)
    assert not pairwise(X[:50]).diagonal().any()
