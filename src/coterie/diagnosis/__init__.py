"""Checks of data and clusters for problems that are known to mislead clustering, with remedies."""

from coterie.diagnosis.findings import Check, Diagnosis, Finding
from coterie.diagnosis.run_checks import diagnose

__all__ = ["Check", "Diagnosis", "Finding", "diagnose"]
