"""The figures of a gallery example: whatever matplotlib Figure, or Axes of one, its blocks leave in a variable.

pyplot does not know of coterie's figures, so they are not found where sphinx-gallery looks for them.
"""

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def show(block, block_vars, gallery_conf):
    """Figures that are new since the last block, saved, as rst."""
    seen = block_vars["example_globals"].setdefault("__figures__", [])
    paths = []
    for figure in figures_in(block_vars["example_globals"]):
        if not any(figure is other for other in seen):
            seen.append(figure)
            paths.append(next(block_vars["image_path_iterator"]))
            figure.savefig(paths[-1], dpi=110, bbox_inches="tight")
    return figure_rst(paths, gallery_conf["src_dir"])


def figures_in(variables):
    for value in list(variables.values()):
        figure = value if isinstance(value, Figure) else getattr(value, "figure", None)
        if isinstance(figure, Figure):
            yield figure
