"""An invalid `n_jobs` is rejected, also where the rows are too few for threads."""

from inspect import signature

import numpy as np
import pytest

from coterie.errors import ParameterError
from public_estimators import CLASSES, seeded

X = np.random.default_rng(0).normal(size=(20, 3))
WITH_THREADS = [kind for kind in CLASSES if "n_jobs" in signature(kind).parameters]


@pytest.mark.parametrize("kind", WITH_THREADS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n_jobs", ["two", 0, object()], ids=["text", "zero", "object"])
def test_an_invalid_number_of_threads_is_rejected_for_few_rows(kind, n_jobs):
    with pytest.raises(ParameterError, match="n_jobs must be"):
        seeded(kind, n_jobs=n_jobs).fit(X)
