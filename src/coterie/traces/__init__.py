"""Traces of a fit: its parameters and objective after every half step, as `fit_trace` returns them."""

from coterie.traces.trace import Step, Trace
from coterie.traces.trace_mixin import Traced

__all__ = ["Step", "Trace", "Traced"]
