"""Laws over the zoo with the engine for rows on a device; CPU tensors take the place of a GPU, unless there is one."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

import zoo
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial

torch = pytest.importorskip("torch", reason="rows on a device need PyTorch: pip install 'coterie[gpu]'")

from coterie.data import tensors  # noqa: E402
from coterie.engines.cuda import Cuda  # noqa: E402
from coterie.kernels.cuda import DeviceArray  # noqa: E402
from coterie.kmeans.fuzzy_c_means import Fuzzy  # noqa: E402
from coterie.kmeans.lloyd import Lloyd  # noqa: E402
from coterie.mixture.em import EM  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RUNS_ON_DEVICES = (Lloyd, Fuzzy, EM)


def is_supported(model, X):
    has_missing = not sparse.issparse(X) and np.isnan(X).any()
    return isinstance(model, RUNS_ON_DEVICES) and not sparse.issparse(X) and not has_missing


MODELS = [param for param in zoo.MODELS if is_supported(*param.values[:2])]


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setattr(tensors, "DEVICE", DEVICE)


def both(model, X, rows, monkeypatch, w=None):
    """A source in main memory and one on the device with the same parts, and parameters."""
    monkeypatch.setattr(tensors, "PART_ROWS", rows)
    sources = MemorySource(X, w, chunk_rows=rows), tensors.tensor_source(X, w)
    return *sources, zoo.initial_params(model, X, rows)


def assert_same(a, b, precision):
    for x, y in zip(zoo.leaves(a), zoo.leaves(b), strict=True):
        size = np.abs(x).max(initial=1.0)
        np.testing.assert_allclose(np.asarray(y), x, rtol=precision, atol=precision * size)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model, X, rows", MODELS)
def test_a_pass_on_a_device_gives_the_statistics_and_labels_of_the_cpu(model, X, rows, weighted, monkeypatch):
    w = np.random.default_rng(5).integers(0, 4, size=len(X)).astype(float) if weighted else None
    memory, device, params = both(model, X, rows, monkeypatch, w)
    precision = 1e-8 if X.dtype == np.float64 else 2e-4
    expected, _ = Serial().scan(partial(model.e_step, params), memory, None)
    stats, memos = Cuda().scan(partial(model.e_step, params), device, None)
    assert_same(expected, stats, precision)
    labels = device.join(Cuda().map(partial(model.assign, params), device, memos))
    expected_labels = memory.join(Serial().map(partial(model.assign, params), memory))
    assert np.mean(labels == expected_labels) >= (1.0 if X.dtype == np.float64 else 0.999)
    after = model.m_step(params, stats)
    again, _ = Cuda().scan(partial(model.e_step, after), device, memos)
    fresh, _ = Cuda().scan(partial(model.e_step, after), device, None)
    for x, y in zip(zoo.leaves(again)[:-1], zoo.leaves(fresh)[:-1], strict=True):  # the last may count moved rows
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("model, X, rows", [param for param in MODELS if isinstance(param.values[0], EM)])
def test_no_pass_of_em_copies_rows_to_main_memory(model, X, rows, monkeypatch):
    _, device, params = both(model, X, rows, monkeypatch)
    step = partial(model.e_step, params)
    _, memos = Cuda().scan(step, device, None)
    as_numpy = DeviceArray.__array__

    def only_small(array, dtype=None, copy=None):
        assert array.shape[0] < min(rows, len(X)), "rows were copied to main memory"
        return as_numpy(array, dtype, copy)

    monkeypatch.setattr(DeviceArray, "__array__", only_small)
    Cuda().scan(step, device, memos)
    for method in ("assign", "probabilities", "log_densities", "uncertainty", "entropy"):
        results = Cuda().map(partial(getattr(model, method), params), device)
        assert all(isinstance(result, DeviceArray) for result in results)
