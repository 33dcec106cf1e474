"""How notebooks and terminals show results: HTML, and a short text instead of the dump of a dataclass."""

from importlib import import_module
from typing import Any


def html_of(result: Any) -> str | None:
    """HTML of a result or a fitted estimator; None if there is nothing to show. The renderer is imported only now."""
    html: str | None = import_module("coterie.report.notebook").as_html(result)
    return html


class ReprHTMLMixin:
    """A result that notebooks show as HTML, and everything else as the text of `print`."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str | None:
        return html_of(self)


class EstimatorHTMLMixin:
    """An estimator that notebooks show as scikit-learn's diagram, with the clusters below it after a fit."""

    def _html_repr(self) -> str:
        diagram: str = super()._html_repr()  # type: ignore[misc]
        return diagram + (html_of(self) or "")
