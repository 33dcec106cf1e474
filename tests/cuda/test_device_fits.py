"""Fits of rows on a device, with CPU tensors in place of a GPU."""

import re

import numpy as np
import pytest

from coterie import KMeans
from coterie.data import as_source
from coterie.errors import InputError, ParameterError

torch = pytest.importorskip("torch", reason="rows on a device need PyTorch: pip install 'coterie[gpu]'")

from coterie.data import device_costs, tensors  # noqa: E402
from coterie.engines.cuda import Cuda  # noqa: E402

rng = np.random.default_rng(0)
X = (rng.normal(size=(900, 4)) + 5 * rng.normal(size=(5, 4))[rng.integers(5, size=900)]).astype(np.float32)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """The CPU takes the place of the GPU, and rows are in three parts."""
    monkeypatch.setattr(tensors, "DEVICE", "cpu")
    monkeypatch.setattr(tensors, "device_problem", lambda: "")
    monkeypatch.setattr(tensors, "PART_ROWS", 300)


def both(**options):
    return [KMeans(5, random_state=0, device=device, algorithm="lloyd", **options) for device in ("cpu", "cuda")]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_from_the_same_centers_gives_the_same_labels(dtype):
    rows = X.astype(dtype)
    cpu, gpu = (model.fit(rows) for model in both(init=rows[:5]))
    np.testing.assert_array_equal(gpu.labels_, cpu.labels_)
    np.testing.assert_allclose(gpu.cluster_centers_, cpu.cluster_centers_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gpu.history_, cpu.history_, rtol=1e-9)
    assert gpu.n_iter_ == cpu.n_iter_
    assert gpu.labels_.dtype == np.int32
    assert gpu.cluster_centers_.dtype == dtype
    np.testing.assert_array_equal(gpu.predict(rows), cpu.predict(rows))
    np.testing.assert_allclose(gpu.transform(rows), cpu.transform(rows), rtol=1e-5)
    assert gpu.score(rows) == pytest.approx(cpu.score(rows), rel=1e-9)


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "forgy", "random_partition", "farthest"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_initialisation_runs_on_a_device(init, weighted):
    w = rng.integers(1, 4, size=len(X)).astype(float) if weighted else None
    model = KMeans(5, init=init, n_init=2, random_state=0, device="cuda").fit(X, sample_weight=w)
    assert len(np.unique(model.labels_)) == 5
    assert (np.diff(model.history_) <= 1e-9 * model.history_[0]).all()
    squares = ((X[:, None] - model.cluster_centers_.astype(np.float64)) ** 2).sum(2).min(1)
    assert model.inertia_ == pytest.approx(squares @ (np.ones(len(X)) if w is None else w), rel=1e-6)


def test_weights_count_rows():
    w = rng.integers(0, 3, size=len(X))
    repeated = np.repeat(X, w, axis=0)
    one = KMeans(5, init=X[:5], device="cuda").fit(X, sample_weight=w)
    other = KMeans(5, init=X[:5], device="cuda").fit(repeated)
    np.testing.assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-5)
    assert one.inertia_ == pytest.approx(other.inertia_)


def test_frozen_centers_do_not_move():
    cpu, gpu = (model.fit(X) for model in both(init=X[:3], frozen_centers=X[10:12]))
    np.testing.assert_array_equal(gpu.cluster_centers_[:2], X[10:12])
    np.testing.assert_array_equal(gpu.labels_, cpu.labels_)


def test_an_empty_cluster_is_moved_to_the_costliest_row():
    init = np.concatenate([X[:4], np.full((1, 4), 1e4, np.float32)])
    cpu, gpu = (model.fit(X) for model in both(init=init))
    np.testing.assert_array_equal(gpu.labels_, cpu.labels_)
    assert len(np.unique(gpu.labels_)) == 5


def test_column_weights_and_extreme_scales_are_supported():
    for options, rows in (({"metric_weights": [1, 2, 0, 4]}, X), ({}, X.astype(np.float64) * 1e-120)):
        cpu, gpu = (model.fit(rows) for model in both(init=rows[:5], **options))
        np.testing.assert_array_equal(gpu.labels_, cpu.labels_)
        np.testing.assert_allclose(gpu.cluster_centers_, cpu.cluster_centers_, rtol=1e-4)


def test_a_callback_can_read_the_centers():
    seen = []
    KMeans(5, device="cuda", random_state=0, callback=lambda p: seen.append(np.asarray(p.params).shape)).fit(X)
    assert set(seen) == {(5, 4)}


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"algorithm": "exact"},
            r"algorithm='exact' is not supported on a GPU: use algorithm='lloyd', or device='cpu'",
        ),
        ({"algorithm": "bounds"}, "algorithm='bounds' is not supported on a GPU"),
        ({"search": "fast"}, "search='fast' is not supported on a GPU: use search='none'"),
        ({"missing": "ignore"}, "missing='ignore' is not supported on a GPU"),
        ({"checkpoint": "fit.ckpt"}, "checkpoint='fit.ckpt' is not supported on a GPU"),
        ({"engine": "threads"}, "engine='threads' cannot compute on a GPU: leave engine='auto'"),
    ],
)
def test_options_that_need_main_memory_are_rejected_by_name(options, message):
    with pytest.raises(ParameterError, match=message):
        KMeans(2, device="cuda", **options).fit(X)


def test_traces_sparse_rows_and_missing_values_are_rejected():
    from scipy import sparse

    with pytest.raises(ParameterError, match="fit_trace is not supported on a GPU: use device='cpu'"):
        KMeans(2, device="cuda").fit_trace(X)
    with pytest.raises(InputError, match="sparse: device='cuda' needs dense rows"):
        KMeans(2, device="cuda").fit(sparse.csr_array(X))
    with pytest.raises(InputError, match=r"contains NaN: column 1 \(1\)"):
        KMeans(2, device="cuda").fit(np.where(np.arange(3600).reshape(900, 4) == 5, np.nan, X))


def test_rows_on_a_device_are_a_source():
    source = tensors.tensor_source(X, np.arange(900.0))
    assert (source.shape, source.dtype, source.engine, len(source.parts())) == ((900, 4), np.float32, "cuda", 3)
    np.testing.assert_array_equal(source.pick([5, 2]).X, X[[5, 2]])
    np.testing.assert_array_equal(source.pick([5, 2]).w, [5, 2])
    np.testing.assert_array_equal(source.subset([5, 2]).pick(slice(None)).X, X[[5, 2]])
    doubled = source.map_rows(lambda rows: 2 * rows, None)
    np.testing.assert_array_equal(np.concatenate([np.asarray(part().X) for part in doubled.parts()]), 2 * X)
    np.testing.assert_array_equal(source.join(source.allocate(3, np.int32)), np.full(900, 3))


def test_tensors_on_the_cpu_are_arrays_unless_a_device_is_chosen():
    assert as_source(torch.from_numpy(X), device="auto").engine == "threads"
    assert isinstance(KMeans(2, random_state=0).fit(torch.from_numpy(X)).labels_, np.ndarray)


def test_an_unknown_device_is_an_error():
    with pytest.raises(ParameterError, match="device must be 'auto', 'cpu' or 'cuda'; got 'gpu'"):
        KMeans(2, device="gpu").fit(X)


def test_auto_chooses_the_gpu_for_much_work_that_it_supports(monkeypatch, capsys):
    steps = []
    run = Cuda._run
    monkeypatch.setattr(Cuda, "_run", lambda self, step, *rest: (steps.append(step), run(self, step, *rest))[1])
    options = {"init": X[:5], "random_state": 0}
    expected = KMeans(5, **options).fit(X).labels_  # too little work
    assert not steps
    monkeypatch.setattr(device_costs, "CPU_RATE", 1e2)  # a slow CPU
    for unsupported in ({"search": "fast"}, {"engine": "serial"}, {"device": "cpu"}):
        KMeans(5, **{**options, **unsupported}).fit(X)
    assert not steps
    labels = KMeans(5, verbose=1, **options).fit(X).labels_
    assert steps
    assert re.search(
        r"device: cuda, because a fit takes about 5 s there, and \S+ s on the CPU", capsys.readouterr().out
    )
    np.testing.assert_array_equal(labels, expected)


def test_estimated_costs_grow_with_the_work_and_favour_the_gpu_for_much_of_it():
    def costs(n, d, k, **options):
        return device_costs.estimated_costs(n, d, k, 4 * n * d, **{"cores": 8, "has_torch": True, **options})

    assert costs(10_000, 16, 8).gpu > 10 * costs(10_000, 16, 8).cpu
    assert costs(10_000_000, 128, 1024).cpu > 3 * costs(10_000_000, 128, 1024).gpu
    for larger in ((2000, 8, 4), (1000, 16, 4), (1000, 8, 8)):
        assert costs(*larger).cpu > costs(1000, 8, 4).cpu
        assert costs(*larger).gpu >= costs(1000, 8, 4).gpu
    assert costs(1000, 8, 4, has_torch=False).gpu == pytest.approx(costs(1000, 8, 4).gpu + device_costs.START)
    assert costs(10**6, 8, 4, cores=1).cpu > costs(10**6, 8, 4).cpu


def test_auto_asks_for_no_gpu_if_the_cpu_is_faster(monkeypatch):
    monkeypatch.setattr(tensors, "device_problem", lambda: pytest.fail("PyTorch was imported"))
    assert tensors.costs_if_faster_on_gpu(X, 5) is None
    monkeypatch.setattr(tensors, "device_problem", lambda: "no GPU")
    monkeypatch.setattr(device_costs, "CPU_RATE", 1e2)
    assert tensors.costs_if_faster_on_gpu(X, 5) is None
