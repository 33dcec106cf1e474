"""Rows on several devices: two of them are the CPU, or the same GPU."""

import threading
from functools import partial

import numpy as np
import pytest

from coterie import GaussianMixture, KMeans
from coterie.core.stats import tree_sum

torch = pytest.importorskip("torch", reason="rows on a device need PyTorch: pip install 'coterie[gpu]'")

from coterie.data import tensors  # noqa: E402
from coterie.engines.cuda import Cuda  # noqa: E402
from coterie.kmeans.device_lloyd import DeviceLloyd  # noqa: E402

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU, or no driver for it")
rng = np.random.default_rng(0)
X = (rng.normal(size=(900, 4)) + 5 * rng.normal(size=(5, 4))[rng.integers(5, size=900)]).astype(np.float32)
W = rng.integers(1, 4, size=900).astype(float)


@pytest.fixture(autouse=True, params=["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])])
def devices(request, monkeypatch):
    """Two devices, with at least two parts of the rows each."""
    device = torch.device("cuda", 0) if request.param == "cuda" else torch.device("cpu")
    monkeypatch.setattr(tensors, "DEVICE", request.param)
    monkeypatch.setattr(tensors, "device_problem", lambda: "")
    monkeypatch.setattr(tensors, "available_devices", lambda: (device, device))
    monkeypatch.setattr(tensors, "SPREAD_BYTES", 0)
    monkeypatch.setattr(tensors, "PART_ROWS", 300)
    return device, device


def on_one_device(monkeypatch, devices):
    """The same parts on one device."""
    monkeypatch.setattr(tensors, "available_devices", lambda: devices[:1])
    monkeypatch.setattr(tensors, "PART_ROWS", 225)


def test_parts_are_dealt_out_and_computed_in_one_thread_for_each_device(devices):
    source = tensors.tensor_source(X, W)
    assert source.devices == devices
    assert [part().X.shape[0] for part in source.parts()] == [225] * 4
    np.testing.assert_array_equal(np.concatenate([np.asarray(part().X) for part in source.parts()]), X)
    assert [part.device for part in source.parts()] == [*devices] * 2
    started = threading.Barrier(2, timeout=30)  # both devices work at the same time

    def step(chunk):
        if chunk.part < 2:
            started.wait()
        return chunk.part, threading.get_ident()

    results = Cuda().map(step, source)
    assert [part for part, _ in results] == [0, 1, 2, 3]
    threads = [thread for _, thread in results]
    assert threads[0] == threads[2] != threads[1] == threads[3]


@pytest.mark.parametrize("w", [None, W])
def test_sums_of_several_devices_are_added_in_the_order_of_the_parts(w, devices, monkeypatch):
    from coterie.kernels.cuda import DeviceArray, as_tensor

    source, centers = tensors.tensor_source(X, w), DeviceArray(as_tensor(X[:5].copy(), devices[0]))
    step = partial(DeviceLloyd(5).e_step, centers)
    stats, memos = Cuda().scan(step, source, None)
    expected = tree_sum([step(part())[0] for part in source.parts()])
    assert torch.equal(stats.sum_dx, expected.sum_dx)
    assert stats.sum_dx.device == devices[0]
    on_one_device(monkeypatch, devices)
    one = tensors.tensor_source(X, w)
    assert one.devices == devices[:1]
    single, _ = Cuda().scan(step, one, None)
    for a, b in zip(stats.leaves(), single.leaves(), strict=True):
        np.testing.assert_array_equal(np.asarray(torch.as_tensor(a).cpu()), np.asarray(torch.as_tensor(b).cpu()))
    assert len(memos) == 4


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "farthest"])
@pytest.mark.parametrize("w", [None, W])
def test_a_fit_on_two_devices_has_the_bits_of_one_device(init, w, devices, monkeypatch):
    options = {"init": init, "random_state": 0, "device": "cuda"}
    two = KMeans(5, **options).fit(X, sample_weight=w)
    labels = two.predict(X)
    on_one_device(monkeypatch, devices)
    one = KMeans(5, **options).fit(X, sample_weight=w)
    np.testing.assert_array_equal(two.cluster_centers_, one.cluster_centers_)
    np.testing.assert_array_equal(two.labels_, one.labels_)
    np.testing.assert_array_equal(labels, one.labels_)
    assert two.inertia_ == one.inertia_


def test_a_mixture_on_two_devices_has_the_bits_of_one_device(devices, monkeypatch):
    model = GaussianMixture(3, init_params=np.arange(900) % 3, device="cuda", tol=1e-2)
    two = model.fit(X).log_likelihood_
    on_one_device(monkeypatch, devices)
    assert model.fit(X).log_likelihood_ == two


def test_streamed_parts_go_to_all_devices(devices, monkeypatch):
    resident = KMeans(5, init=X[:5], device="cuda").fit(X)
    monkeypatch.setattr(tensors, "FREE_FRACTION", 0.0)
    monkeypatch.setattr(tensors, "STREAMED_PART", 1 << 11)
    source, is_cpu = tensors.tensor_source(X), devices[0].type == "cpu"
    assert source.is_resident == is_cpu  # nothing to stream to
    assert len(source.parts()) == (4 if is_cpu else 8)
    streamed = KMeans(5, init=X[:5], device="cuda").fit(X)
    np.testing.assert_array_equal(streamed.labels_, resident.labels_)


def test_few_rows_and_tensors_on_a_device_stay_on_one(devices, monkeypatch):
    monkeypatch.setattr(tensors, "SPREAD_BYTES", 1 << 28)
    assert tensors.tensor_source(X).devices == devices[:1]
    monkeypatch.setattr(tensors, "SPREAD_BYTES", 0)
    if devices[0].type == "cuda":
        assert tensors.tensor_source(torch.from_numpy(X).cuda()).devices == devices[:1]


def test_an_error_on_one_device_ends_the_pass(devices):
    def step(chunk):
        if chunk.part == 1:
            raise ZeroDivisionError("part 1")
        return chunk.part

    with pytest.raises(ZeroDivisionError, match="part 1"):
        Cuda().map(step, tensors.tensor_source(X))
