"""Results of jobs as plain data, and as text, JSON and HTML."""

from typing import TYPE_CHECKING

from coterie.core.lazy import attach

if TYPE_CHECKING:
    from coterie.report.json import as_dict
    from coterie.report.text import as_text

__all__ = ["as_dict", "as_text"]
__getattr__ = attach(__name__, {"as_dict": "coterie.report.json", "as_text": "coterie.report.text"})
