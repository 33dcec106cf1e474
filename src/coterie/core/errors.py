"""What can go wrong, by whose doing."""

from __future__ import annotations


class InputError(ValueError):
    """The data cannot be used as it is; the message says what was found and what to do."""


class ParameterError(ValueError):
    """An option has a value it cannot have; the message lists what it can be."""


class ModelFileError(InputError):
    """A model cannot be written to a file, or a file cannot be read; the message says what was found."""


class CheckpointError(InputError):
    """A fit cannot go on from a checkpoint: the file is damaged, or of another fit; the message says what differs."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the fit goes on without it."""


class DroppedOptionWarning(UserWarning):
    """An option that the answers of a model do not depend on was not written to its file."""


class FitInterruptedWarning(UserWarning):
    """The fit was stopped from the keyboard; the best result so far was kept."""


class RangeWarning(RuntimeWarning):
    """A result is too large or too small for floating-point numbers in the units of the data; others are exact."""


class ObjectiveRoseWarning(RuntimeWarning):
    """A step that cannot make the objective worse did, by more than rounding: a fault to be reported."""
