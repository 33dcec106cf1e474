"""What can go wrong, by whose doing."""

from __future__ import annotations


class InputError(ValueError):
    """The data cannot be used as it is; the message says what was found and what to do."""


class ParameterError(ValueError):
    """An option has a value it cannot have; the message lists what it can be."""


class FitInterruptedWarning(UserWarning):
    """The fit was stopped from the keyboard; the best result so far was kept."""


class ObjectiveRoseWarning(RuntimeWarning):
    """A step that cannot make the objective worse did, by more than rounding: a fault to be reported."""
