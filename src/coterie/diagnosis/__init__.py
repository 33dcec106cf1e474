"""What data and fits suffer from, measured, with what to do about it."""

from __future__ import annotations

from coterie.diagnosis.checkup import diagnose
from coterie.diagnosis.diagnosis import Diagnosis
from coterie.diagnosis.findings import Check, Finding

__all__ = ["Check", "Diagnosis", "Finding", "diagnose"]
