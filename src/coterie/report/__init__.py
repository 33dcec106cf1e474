"""Results of jobs as plain data, and as text, JSON and HTML."""

from coterie.report.json import as_dict
from coterie.report.text import as_text

__all__ = ["as_dict", "as_text"]
