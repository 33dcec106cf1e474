"""Exceptions and warnings."""

from __future__ import annotations


class InputError(ValueError):
    """The data cannot be used; the message states the problem and a solution."""


class ParameterError(ValueError):
    """A parameter has an invalid value; the message lists the valid ones."""


class ModelFileError(InputError):
    """A model cannot be saved to a file, or loaded from one; the message states the reason."""


class CheckpointError(InputError):
    """A fit cannot be resumed from a checkpoint: the file is damaged, or belongs to another fit."""


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
