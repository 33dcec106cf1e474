"""Mixtures fitted by EM."""

from __future__ import annotations

from coterie.families.normal_prior import Prior

__all__ = ["Prior"]
