"""Explain clusters: a short rule for each, in the units of the table."""

from coterie.explanation.explain import explain
from coterie.explanation.rules import Condition, Explanation, Rule

__all__ = ["Condition", "Explanation", "Rule", "explain"]
