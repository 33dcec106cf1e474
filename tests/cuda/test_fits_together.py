"""Many small K-means fits at once: the same results as one fit after the other, on CPU tensors and on a GPU."""

import warnings

import numpy as np
import pytest

from coterie import KMeans
from coterie.selection import gap_statistic, stability, sweep

torch = pytest.importorskip("torch", reason="rows on a device need PyTorch: pip install 'coterie[gpu]'")

from coterie.data import tensors  # noqa: E402
from coterie.kernels.cuda import DeviceArray, batched  # noqa: E402
from coterie.kmeans import fits_together  # noqa: E402
from coterie.kmeans.fits_together import Options, fit_tables  # noqa: E402
from coterie.selection.kmeans_path import KMeansPath  # noqa: E402

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU, or no driver for it")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])])
def device(request, monkeypatch):
    """A GPU, or the CPU in its place."""
    monkeypatch.setattr(tensors, "DEVICE", request.param)
    monkeypatch.setattr(tensors, "device_problem", lambda: "")
    if request.param == "cpu":
        monkeypatch.setattr(tensors, "is_on_device", tensors.is_tensor)
    return torch.device(request.param)


def blobs(n, d, k, seed=0, shift=0.0, spread=4.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + spread * rng.normal(size=(k, d))[rng.integers(k, size=n)] + shift
    return X.astype(np.float32)


def fitted(X, together, **options):
    """A fit with restarts. A callback needs them one after the other."""
    model = KMeans(random_state=0, device="cuda", callback=None if together else lambda progress: None, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def count_batches(monkeypatch):
    calls = []
    fit_all = batched.fit_all
    monkeypatch.setattr(batched, "fit_all", lambda *rest: (calls.append(len(rest[2])), fit_all(*rest))[1])
    return calls


@pytest.mark.parametrize(
    "n, d, k, shift", [(700, 3, 4, 0.0), (999, 16, 8, 300.0), (300, 1, 3, 0.0), (1500, 33, 20, 0.0)]
)
def test_restarts_together_are_restarts_one_by_one(n, d, k, shift, device, monkeypatch):
    X, calls = blobs(n if device.type == "cuda" else n // 3, d, k, shift=shift), count_batches(monkeypatch)
    together, alone = (fitted(X, each, n_clusters=k, n_init=5) for each in (True, False))
    assert calls == [5]
    np.testing.assert_array_equal(together.labels_, alone.labels_)
    np.testing.assert_array_equal(together.cluster_centers_, alone.cluster_centers_)
    np.testing.assert_array_equal(together.history_, alone.history_)
    assert (together.inertia_, together.n_iter_) == (alone.inertia_, alone.n_iter_)
    assert together.converged_


@pytest.mark.parametrize("rows", [np.round(blobs(600, 2, 5, spread=1.0)), np.repeat(blobs(7, 3, 2), 50, axis=0)])
def test_ties_and_equal_rows_have_the_labels_of_single_fits(rows, device):
    together, alone = (fitted(rows, each, n_clusters=5, n_init=6, init="forgy") for each in (True, False))
    np.testing.assert_array_equal(together.labels_, alone.labels_)
    np.testing.assert_array_equal(together.history_, alone.history_)


def test_a_restart_with_an_empty_cluster_is_repaired_alone(device):
    X = blobs(400, 2, 3)

    def starts(rows, k, random_state):
        far = np.full((1, 2), 1e4, np.float32)
        return np.concatenate([np.asarray(rows[: k - 1]), far]).astype(np.float32)

    source = tensors.tensor_source(X)
    alone, fine = fits_together.fit_together(source, [starts(X, 3, 0), X[:3]], [0.0, 0.0], 30)
    assert alone is None
    assert fine.weight.sum() == 400
    together, one = (fitted(X, each, n_clusters=3, n_init=2, init=starts) for each in (True, False))
    np.testing.assert_array_equal(together.labels_, one.labels_)
    assert len(np.unique(together.labels_)) == 3


def test_iterations_are_limited(device):
    X = blobs(2000, 4, 12, spread=0.3)
    together, alone = (fitted(X, each, n_clusters=12, n_init=3, max_iter=4, tol=0) for each in (True, False))
    assert together.n_iter_ == alone.n_iter_ == 4
    assert not together.converged_
    np.testing.assert_array_equal(together.cluster_centers_, alone.cluster_centers_)


def test_a_sweep_uses_fits_together(device, monkeypatch):
    X, calls = blobs(600, 3, 5), count_batches(monkeypatch)
    model, ks = KMeans(random_state=0, device="cuda"), [1, 2, 3, 5, 6]
    together = sweep(model, X, ks)
    assert calls == [10]
    monkeypatch.setattr(KMeansPath, "_shared_fits", lambda *_: {})
    alone = sweep(model, X, ks)
    np.testing.assert_array_equal(together.objectives, alone.objectives)
    for a, b in zip(together.labels, alone.labels, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_problem_does_not_depend_on_the_others(device):
    tables = torch.from_numpy(np.stack([blobs(501, 3, 4, seed) for seed in range(3)])).to(device)
    which, ks, options = np.array([0, 1, 2, 0, 1]), np.array([4, 1, 6, 2, 3]), Options(3)
    weights = torch.from_numpy(np.random.default_rng(0).integers(0, 4, size=(2, 501)).astype(np.float32)).to(device)
    samples = np.array([0, 1, 0, 1, 0])
    for w in (None, weights):
        generators = [np.random.default_rng(seed) for seed in range(5)]
        together = fit_tables(tables, which, ks, generators, options, w, samples)
        for i in range(5):
            generators = [np.random.default_rng(i)]
            alone = fit_tables(
                tables[which[i]][None], np.array([0]), ks[i : i + 1], generators, options, w, samples[i : i + 1]
            )
            assert alone.inertia[0] == together.inertia[i]
            np.testing.assert_array_equal(alone.labels[0], together.labels[i])


def test_objectives_and_labels_are_those_of_the_definition(device):
    X = blobs(777, 5, 6)
    w = np.random.default_rng(1).integers(0, 5, size=(1, 777)).astype(np.float32)
    weights = batched.as_weights(w, device)
    tables = batched.as_tables(torch.from_numpy(X)[None].to(device), int(w.sum()))
    start = torch.from_numpy(X[None, :6].copy()).to(device)
    one = np.array([0]), np.array([6])
    fits = batched.fit_all(tables, *one, start, np.array([0.0]), 3, weights)
    centers = X[:6]
    for value in fits.histories[0]:
        squares = ((X[:, None].astype(float) - centers) ** 2).sum(2)
        labels = squares.argmin(1)
        assert value == pytest.approx(squares.min(1) @ w[0], rel=1e-9)
        last, shares = centers, np.where(labels[:, None] == np.arange(6), w[0][:, None], 0.0)
        centers = (shares.T @ X.astype(float) / shares.sum(0)[:, None]).astype(np.float32)
    np.testing.assert_array_equal(fits.labels[0].cpu().numpy(), labels)
    np.testing.assert_allclose(fits.centers[0], last, rtol=1e-6)
    np.testing.assert_allclose(fits.weight[0], shares.sum(0))


def test_weights_count_rows_in_seeding_and_fits(device):
    X, w = blobs(90, 2, 3), np.random.default_rng(0).integers(0, 3, size=90)
    weighted = batched.as_tables(torch.from_numpy(X)[None].to(device), 180)
    repeated = batched.as_tables(torch.from_numpy(np.repeat(X, w, axis=0))[None].to(device), 180)
    centers = [
        batched.seed(tables, np.array([0]), np.array([5]), [np.random.default_rng(3)], weights)
        for tables, weights in ((weighted, batched.as_weights(w[None], device)), (repeated, None))
    ]
    assert torch.equal(*centers)
    assert batched.as_weights(w[None] * 9, device) is None  # too large
    assert batched.as_weights(w[None] + 0.5, device) is None


def test_seeding_samples_in_proportion_to_squared_distances(device):
    X = torch.tensor([[0.0], [1.0], [2.0], [4.0]], device=device)[None]
    tables, rng = batched.as_tables(X, 4), np.random.default_rng(0)
    u = torch.from_numpy(rng.random((1, 4000))).to(device)
    closest = torch.full((1, 4), torch.inf, device=device)
    mass = batched._costs(tables, torch.zeros(1, dtype=torch.long, device=device), None, X[:, :1], closest, True)
    shares = np.bincount(batched._draw(mass, u)[0].cpu().numpy(), minlength=4) / 4000
    np.testing.assert_allclose(shares, np.array([0, 1, 4, 16]) / 21, atol=0.03)
    assert shares[0] == 0


def test_the_gap_statistic_of_a_tensor_finds_the_clusters(device, monkeypatch):
    X, calls = blobs(300, 2, 3, seed=4, spread=9.0), count_batches(monkeypatch)
    options = {"n_references": 6 if device.type == "cuda" else 2, "random_state": 0}
    cpu = gap_statistic(X, range(1, 6), **options)
    gap = gap_statistic(torch.from_numpy(X).to(device), range(1, 6), **options)
    assert calls == [(options["n_references"] + 1) * 5 * 4]
    assert gap.recommended == cpu.recommended == 3
    np.testing.assert_allclose(gap.log_w[:3], cpu.log_w[:3], rtol=1e-3)
    np.testing.assert_allclose(gap.expected, cpu.expected, rtol=0.02)


@pytest.mark.parametrize("measure", ["adjusted_rand", "prediction_strength"])
def test_stability_of_a_tensor_finds_the_clusters(measure, device, monkeypatch):
    X, calls = blobs(300, 2, 4, seed=1, spread=9.0), count_batches(monkeypatch)
    rows = torch.from_numpy(X).to(device)
    options = {"measure": measure, "n_resamples": 6 if device.type == "cuda" else 3, "random_state": 0}
    result = stability(KMeans(n_init=4), rows, [2, 3, 4, 5], **options)
    assert len(calls) == 1
    assert result.best == 4
    assert result.mean[2] > 0.99
    assert result.labels[2].shape == (300,)
    cpu = stability(KMeans(n_init=4), X, [4], **options)
    table = np.zeros((4, 4))
    np.add.at(table, (result.labels[2], cpu.labels[0]), 1)
    assert (np.sort(table.ravel())[:-4] == 0).all()  # the same clusters


def test_what_cannot_run_together_runs_alone(device, monkeypatch):
    X, calls = blobs(200, 3, 3), count_batches(monkeypatch)
    fitted(X.astype(np.float64), True, n_clusters=3, n_init=2)
    fitted(X, True, n_clusters=3, n_init=2, frozen_centers=X[:1])
    monkeypatch.setattr(fits_together, "MAX_ROWS", 100)
    fitted(X, True, n_clusters=3, n_init=2)
    gap_statistic(torch.from_numpy(X).to(device), [1, 2], n_references=2, random_state=0)
    assert not calls
    assert not batched.is_small(200, 128)


@pytest.mark.gpu
@NO_GPU
@pytest.mark.parametrize("n, d, k", [(33, 2, 8), (5001, 16, 8), (4000, 64, 30), (2000, 100, 16), (3000, 7, 100)])
def test_kernels_have_the_labels_and_centers_of_single_passes(n, d, k):
    from coterie.kernels import cuda

    X = torch.from_numpy(blobs(n, d, k, spread=1.0)).cuda()
    rows, starts = DeviceArray(X), torch.stack([X[i : i + k] for i in range(3)])
    runs = [
        batched.fit_all(batched.as_table(rows), np.zeros(3, int), np.full(3, k), starts, np.zeros(3), 6, None, True)
        for _ in range(2)
    ]
    for b, start in enumerate(starts):
        current, labels = DeviceArray(start), DeviceArray(torch.full((n,), -1, dtype=torch.int32, device="cuda"))
        history = []
        for _ in runs[0].histories[b]:
            last, sums = current, cuda.lloyd(rows, None, current, None, labels, None)
            history.append(sums.cost.sum())
            current, _ = cuda.move_centers(current, sums.sum_dx, sums.weight, sums.weight > 0)
        np.testing.assert_array_equal(runs[0].centers[b], np.asarray(last))
        assert torch.equal(runs[0].labels[b], labels.tensor)
        np.testing.assert_array_equal(runs[0].histories[b], history)
    np.testing.assert_array_equal(runs[0].centers, runs[1].centers)
