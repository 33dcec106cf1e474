"""The way of a fit, half step by half step: what `fit_trace` returns."""

from __future__ import annotations

from coterie.traces.estimator import Traced
from coterie.traces.trace import Step, Trace

__all__ = ["Step", "Trace", "Traced"]
