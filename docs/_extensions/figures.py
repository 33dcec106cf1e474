"""Figures that code draws: those of gallery examples, and those of the examples of a page.

pyplot does not know the figures of coterie, so sphinx-gallery cannot find them itself.
"""

import doctest
from pathlib import Path

from docutils.parsers.rst.directives.images import Figure as FigureDirective
from matplotlib.figure import Figure
from sphinx.util import logging
from sphinx_gallery.scrapers import figure_rst

logger = logging.getLogger(__name__)
DPI = 110


def show(block, block_vars, gallery_conf):
    """Save the figures that are new since the last block of a gallery example, and return their rst."""
    seen = block_vars["example_globals"].setdefault("__figures__", [])
    paths = []
    for value in list(block_vars["example_globals"].values()):
        figure = figure_of(value)
        if figure and not any(figure is other for other in seen):
            seen.append(figure)
            paths.append(next(block_vars["image_path_iterator"]))
            figure.savefig(paths[-1], dpi=DPI, bbox_inches="tight")
    return figure_rst(paths, gallery_conf["src_dir"])


def figure_of(value):
    figure = value if isinstance(value, Figure) else getattr(value, "figure", None)
    return figure if isinstance(figure, Figure) else None


class Picture(FigureDirective):
    """A figure drawn by the examples of its page: ``{picture} ax``, where ``ax`` is a variable of the examples.

    The examples of the whole page run first, so the picture may stand above the code that draws it. A variable with
    the result of ``fit_trace`` becomes an animated GIF.
    """

    def run(self):
        env, variable = self.state.document.settings.env, self.arguments[0]
        if "page variables" not in env.temp_data:
            env.temp_data["page variables"] = run_examples(Path(env.doc2path(env.docname)))
        value = env.temp_data["page variables"].get(variable)
        if value is None:
            raise self.error(f"no variable {variable!r} in the examples of this page")
        figure = figure_of(value)
        name = f"{env.docname.replace('/', '-')}-{variable}.{'png' if figure else 'gif'}"
        path = Path(env.srcdir, "auto", "pictures", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if figure:
            figure.savefig(path, dpi=DPI, bbox_inches="tight")
        else:
            value.save(path, overwrite=True)
        self.arguments[0] = f"/auto/pictures/{name}"
        return super().run()


def run_examples(page: Path) -> dict:
    """Variables after the examples of a page; an example whose output differs is a warning."""
    variables, messages = {"__name__": "__main__"}, []
    test = doctest.DocTestParser().get_doctest(page.read_text("utf-8"), variables, page.name, str(page), 0)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    if runner.run(test, out=messages.append, clear_globs=False).failed:
        logger.warning("%s", "".join(messages), location=str(page))
    return test.globs


def setup(app):
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}
