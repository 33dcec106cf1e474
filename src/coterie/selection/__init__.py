"""How many clusters: the curves of many fits, and where they bend."""

from __future__ import annotations

from coterie.selection.knee import Knee, kneedle, second_derivative

__all__ = ["Knee", "kneedle", "second_derivative"]
