"""Traces of a fit: its parameters and objective after every half step, as `fit_trace` returns them."""

from coterie.traces.recording import Recording
from coterie.traces.trace import Step, Trace
from coterie.traces.trace_mixin import Traced

__all__ = ["Recording", "Step", "Trace", "Traced"]
