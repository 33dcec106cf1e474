"""The stylesheet of charts and sections."""

from functools import cache
from importlib.resources import files

from coterie.report.html.charts.matrix import cell_colours_css


@cache
def stylesheet() -> str:
    """The styles of charts and sections, in addition to the styles of all pages."""
    return files("coterie.report.html").joinpath("report.css").read_text(encoding="utf-8") + cell_colours_css()
