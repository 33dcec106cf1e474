"""Save and load models: arrays as safetensors, everything else as JSON. Files contain no executable code."""

from coterie.persistence.model_file import load, save

__all__ = ["load", "save"]
