"""The site asks for nothing from outside: no script, style, picture or font has an address of the web."""

import re
from pathlib import Path

from sphinx.errors import ExtensionError

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)\s*=\s*["']?(?:https?:)?//[^>]*>""", re.I
)
STYLED = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])(?:https?:)?//[^)"';]*""", re.I)


def check(app, failure):
    if failure is None and app.builder.format == "html":
        found = [*outside(app.outdir, "*.html", LOADED), *outside(app.outdir, "*.html", STYLED)]
        found += outside(app.outdir, "*.css", STYLED)
        if found:
            raise ExtensionError("the site loads from outside:\n" + "\n".join(sorted(set(found))[:20]))


def outside(folder, names, pattern):
    """What files of these names load from elsewhere."""
    for path in Path(folder).rglob(names):
        for match in pattern.finditer(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(folder)}: {match.group()[:150]}"


def setup(app):
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
