"""Mixtures fitted by EM."""

from __future__ import annotations

from coterie.mixture.prior import Prior

__all__ = ["Prior"]
