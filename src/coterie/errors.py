"""Exceptions and warnings of coterie. All errors of arguments and data are also `ValueError`s.

`ConvergenceWarning` and `NotFittedError` are those of scikit-learn, and `ClusterWarning` is that of SciPy, so that code
written for these libraries catches them.
"""

from importlib import import_module
from typing import Any

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "ClusterError",
    "DroppedOptionWarning",
    "FitInterruptedWarning",
    "InputError",
    "ModelFileError",
    "NotConvergedError",
    "ObjectiveRoseWarning",
    "ParameterError",
    "RangeWarning",
    "ScaleError",
    "UnlikeRowsWarning",
]
_OTHER_LIBRARIES = {
    "ClusterWarning": "scipy.cluster.hierarchy",
    "ConvergenceWarning": "sklearn.exceptions",
    "NotFittedError": "sklearn.exceptions",
}


def __getattr__(name: str) -> Any:
    if name in _OTHER_LIBRARIES:
        return getattr(import_module(_OTHER_LIBRARIES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class InputError(ValueError):
    """The data cannot be used; the message states the problem and a solution."""


class ParameterError(ValueError):
    """A parameter has an invalid value; the message lists the valid ones."""


class ScaleError(InputError):
    """Squares of the rows, or sums of their weights, would leave the range of floating-point numbers.

    Attributes
    ----------
    rows, weights : int
        Powers of two by which the rows and the weights must be divided; 0 if they are in range.
    """

    def __init__(self, rows: int = 0, weights: int = 0) -> None:
        exponents = {name: size for name, size in (("X", rows), ("sample_weight", weights)) if size}
        sizes = " and ".join(f"{name} has values up to about 2^{size}" for name, size in exponents.items())
        super().__init__(
            f"{sizes}: sums of squares would leave the range of floating-point numbers; "
            f"divide {' and '.join(exponents)} by a power of two first"
        )
        self.rows, self.weights = rows, weights


class ModelFileError(InputError):
    """A model cannot be saved to a file, or loaded from one; the message states the reason."""


class CheckpointError(InputError):
    """A fit cannot be resumed from a checkpoint: the file is damaged, or belongs to another fit."""


class ClusterError(RuntimeError):
    """A cluster cannot complete a computation; the message names the worker, and says how to continue."""


class NotConvergedError(RuntimeError):
    """A fit has not converged, and the job is strict."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the fit continues without it."""


class DroppedOptionWarning(UserWarning):
    """An option was not saved with a model; predictions do not depend on it."""


class FitInterruptedWarning(UserWarning):
    """The fit was interrupted with Ctrl-C; the best result so far was returned."""


class RangeWarning(RuntimeWarning):
    """A result overflows or underflows in the units of the data; all other results are exact."""


class ObjectiveRoseWarning(RuntimeWarning):
    """The objective became worse in a step where that is impossible, by more than rounding: please report this bug."""


class UnlikeRowsWarning(UserWarning):
    """Rows are unlike those to which a model was fitted, for example in other units."""
