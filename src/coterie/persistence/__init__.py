"""Save and load models: arrays as safetensors, everything else as JSON. Files contain no executable code."""

from coterie.core.lazy import attach

__all__ = ["load", "save"]

__getattr__ = attach(__name__, dict.fromkeys(__all__, "coterie.persistence.model_file"))
