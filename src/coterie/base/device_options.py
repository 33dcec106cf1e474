"""Options that a GPU does not support."""

from __future__ import annotations

from typing import Any

from coterie.errors import ParameterError


def check_options_on_device(estimator: Any) -> None:
    """Reject options and methods that need the rows in main memory, with what to do instead."""
    if vars(estimator).get("_recorder") is not None:
        raise ParameterError("fit_trace is not supported on a GPU: use device='cpu'")
    for name, remedy in {**_general(estimator), **estimator._not_on_device}.items():
        raise ParameterError(
            f"{name}={getattr(estimator, name)!r} is not supported on a GPU: use {remedy}, or device='cpu'"
        )


def _general(estimator: Any) -> dict[str, str]:
    """Options that no estimator supports on a GPU, with remedies."""
    defaults = {"missing": "error", "checkpoint": None}
    return {name: f"{name}={value!r}" for name, value in defaults.items() if getattr(estimator, name, value) != value}
