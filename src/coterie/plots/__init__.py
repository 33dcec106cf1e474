"""Figures: a result in, matplotlib Axes out. Nothing is shown or saved; that is the caller's."""

from __future__ import annotations

from coterie.plots.choosing import criteria

__all__ = ["criteria"]
