"""The kernel of unions of Gaussian clusters against NumPy."""

import numpy as np
import pytest

from coterie.kernels.cpu import agglomeration as compiled
from coterie.kernels.plain import agglomeration as plain


@pytest.mark.parametrize("size", [1.0, 1e-15, 1e15], ids=["size 1", "small", "large"])
@pytest.mark.parametrize("m, d", [(1, 1), (5, 1), (16, 2), (17, 7), (40, 8), (33, 9), (3, 40)])
def test_the_compiled_kernel_gives_the_terms_of_numpy(m, d, size):
    rng = np.random.default_rng(m + d)
    weight, mean, root = 0.5 + rng.random(m + 3), size * rng.normal(size=(m + 3, d)), rng.normal(size=(m + 3, d, d))
    scatter = size**2 * (root @ root.mT) * rng.integers(0, 2, (m + 3, 1, 1))
    arguments = 2, rng.permutation(np.r_[0, 1, 3 : m + 2]), weight, mean, scatter, 0.3 * size**2
    before = [np.copy(array) for array in arguments]
    np.testing.assert_allclose(compiled.union_terms(*arguments), plain.union_terms(*arguments), rtol=1e-10, atol=1e-10)
    for array, copy in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(array, copy)
