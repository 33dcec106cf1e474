"""Traces of a fit: its parameters and objective after every half step, as `fit_trace` returns them."""

from coterie.traces.recording import Recording, Traced
from coterie.traces.trace import Step, Trace

__all__ = ["Recording", "Step", "Trace", "Traced"]
