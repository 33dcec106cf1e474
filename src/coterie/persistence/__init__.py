"""Models on disk: arrays as safetensors, all else as JSON, and nothing in either that could run."""

from coterie.persistence.model_file import load, save

__all__ = ["load", "save"]
