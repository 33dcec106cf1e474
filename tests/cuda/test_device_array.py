"""Arrays on a device, on CPU tensors, against NumPy."""

import numpy as np
import pytest

from coterie.core import ufuncs

torch = pytest.importorskip("torch", reason="arrays on a device need PyTorch: pip install 'coterie[gpu]'")

from coterie.kernels.cuda.device_array import DeviceArray  # noqa: E402
from coterie.kernels.cuda.numpy_functions import FUNCTIONS, UFUNCS  # noqa: E402

rng = np.random.default_rng(0)
A = rng.random((6, 4))
B = rng.random((6, 4))


def on_cpu(array):
    return DeviceArray(torch.from_numpy(array.copy()))


def arguments(name):
    if name in ("bitwise_and", "bitwise_or"):
        return A > 0.5, B > 0.5
    if name == "invert":
        return (A > 0.5,)
    return (A, B.T.copy()) if name == "matmul" else (A, B)


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_on_a_device_are_those_of_numpy_and_scipy(name):
    function = getattr(np, name, None) or getattr(ufuncs, name)
    values = arguments(name)[: function.nin]
    expected = function(*values)
    result = function(*map(on_cpu, values))
    assert isinstance(result, DeviceArray)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)
    if function.nin == 2:  # arrays in main memory, and numbers, are operands too
        np.testing.assert_allclose(np.asarray(function(on_cpu(values[0]), values[1])), expected, rtol=1e-12)
        if name not in ("matmul", "bitwise_and", "bitwise_or"):
            np.testing.assert_allclose(np.asarray(function(0.5, on_cpu(B))), function(0.5, B), rtol=1e-12)
            single = on_cpu(B.astype(np.float32))
            assert function(single, 0.5).dtype == function(B.astype(np.float32), np.float32(0.5)).dtype


@pytest.mark.parametrize("name", ["sum", "max", "min", "argmax", "argmin", "any", "all"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_are_those_of_numpy(name, axis):
    values = np.array([[2.0, 5.0, 5.0], [0.0, 0.0, 7.0]])  # ties: the first is chosen
    for result in (getattr(on_cpu(values), name)(axis=axis), getattr(np, name)(on_cpu(values), axis=axis)):
        np.testing.assert_array_equal(np.asarray(result), getattr(values, name)(axis=axis))


def test_other_functions_on_a_device_are_those_of_numpy():
    mask = A > 0.5
    assert all(function in FUNCTIONS for function in (np.where, np.concatenate, np.broadcast_to, np.count_nonzero))
    np.testing.assert_array_equal(np.asarray(np.where(on_cpu(mask), on_cpu(A), 0.0)), np.where(mask, A, 0.0))
    np.testing.assert_array_equal(np.asarray(np.concatenate([on_cpu(A), B], axis=1)), np.concatenate([A, B], axis=1))
    np.testing.assert_array_equal(np.asarray(np.broadcast_to(on_cpu(A[0]), (3, 4))), np.broadcast_to(A[0], (3, 4)))
    assert np.count_nonzero(on_cpu(mask)) == mask.sum()
    np.testing.assert_array_equal(np.asarray(np.count_nonzero(on_cpu(mask), axis=0)), mask.sum(axis=0))
    np.testing.assert_array_equal(np.median(on_cpu(A), axis=0), np.median(A, axis=0))  # in main memory
    np.testing.assert_allclose(np.asarray(np.einsum("ij,ij->j", on_cpu(A), B)), np.einsum("ij,ij->j", A, B))
    first = np.argmax(A, axis=1)[:, None]
    assert isinstance(np.take_along_axis(on_cpu(A), first, 1), DeviceArray)
    np.testing.assert_array_equal(np.asarray(np.take_along_axis(on_cpu(A), first, 1)), np.take_along_axis(A, first, 1))
    assert float(on_cpu(A).max(initial=9.0)) == 9.0
    assert float(on_cpu(np.zeros(0)).max(initial=3.0)) == 3.0


def test_slices_stay_on_the_device_and_selected_rows_leave_it():
    array = on_cpu(A)
    for index in (slice(1, 3), (slice(None), 2), (slice(None), [0, 2]), (slice(None), None), 3):
        assert isinstance(array[index], DeviceArray)
        np.testing.assert_array_equal(np.asarray(array[index]), A[index])
    for index in ([4, 1], np.array([4, 1]), A[:, 0] > 0.5):
        assert isinstance(array[index], np.ndarray)
        np.testing.assert_array_equal(array[index], A[index])
    array[1:3] = 7.0
    array[[5]] = B[[5]]
    assert (np.asarray(array)[1:3] == 7.0).all()
    np.testing.assert_array_equal(array[[5]], B[[5]])
    array /= 2
    assert (np.asarray(array)[1:3] == 3.5).all()
