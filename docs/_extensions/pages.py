"""What differs between a page as a file and as a page of the site.

Public names in backticks become links to their API pages. Lists of names show no references. Pages end their examples
with an empty line, for doctest's sake, which is not shown. The gallery, among files a folder of examples, is a page.
"""

import re
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.ext.autosummary import autosummary_table

NAME = re.compile(r"(?:coterie\.)?([A-Za-z_]\w*)((?:\.\w+)*)(?:\(.*\))?", re.DOTALL)
IMPORT = re.compile(r"^(?:>>>|\.\.\.) +from (coterie[\w.]*) import ([\w, ]+)", re.MULTILINE)
# Functions whose names are single words that nothing else is called.
DISTINCT = {"bcss", "cophenet", "cut", "dba", "diagnose", "dtw", "fcluster", "kneedle", "pairwise", "sweep", "tss"}
GALLERY = re.compile(r"\]\(((?:\.\./)*)gallery\)")


def gallery_is_a_page(app, docname, source):
    source[0] = GALLERY.sub(r"](\1auto/gallery/index.rst)", source[0])


@cache
def api_names(folder):
    """Full names of the API pages."""
    names = set()
    for page in Path(folder).glob("*.rst"):
        module = ""
        for line in page.read_text("utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.removeprefix(".. currentmodule:: ")
            elif re.fullmatch(r"   \w+", line):
                names.add(f"{module}.{line.strip()}")
    return names


def link_names(app, doctree):
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".md":
        return
    names = api_names(Path(app.srcdir, "api"))
    imports = {
        name.strip(): f"{module}.{name.strip()}"
        for module, line in IMPORT.findall(path.read_text("utf-8"))
        for name in line.split(",")
    }
    for literal in list(doctree.findall(nodes.literal)):
        match = NAME.fullmatch(literal.astext())
        target = match and full_name(match[1], match[2], names, imports)
        if target and not is_linked(literal):
            link = pending_xref("", refdomain="py", reftype="obj", reftarget=target, refdoc=app.env.docname)
            link["refexplicit"], link["refwarn"] = True, False
            literal.replace_self(link)
            link += literal


def full_name(name, attributes, names, imports):
    """Name of the API page for `name.attributes` as it is written on a page, or None."""
    qualified = f"coterie.{name}{attributes}"
    if attributes and qualified in names:
        return qualified
    if imports.get(name) in names:
        return imports[name] + attributes
    # another single lower-case word that the page does not import may be an option or an attribute of the same name
    matches = [full for full in names if full.endswith(f".{name}")]
    is_distinct = name[0].isupper() or "_" in name.strip("_") or name in DISTINCT
    return matches[0] + attributes if len(matches) == 1 and is_distinct else None


def is_linked(node):
    while node.parent is not None:
        node = node.parent
        if isinstance(node, (nodes.reference, nodes.title, pending_xref)):
            return True
    return False


def without_last_empty_line(app, doctree):
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource = text
        block[:] = [nodes.Text(text)]


def without_references(app, doctree):
    for table in doctree.findall(autosummary_table):
        for reference in list(table.findall(pending_xref)):
            if reference["refdomain"] == "citation":
                take_out(reference)


def take_out(reference):
    """And the space before it."""
    parent, place = reference.parent, reference.parent.index(reference)
    parent.remove(reference)
    if place and isinstance(parent[place - 1], nodes.Text):
        parent[place - 1] = nodes.Text(parent[place - 1].astext().rstrip())


def setup(app):
    app.connect("source-read", gallery_is_a_page)
    app.connect("doctree-read", without_references)
    app.connect("doctree-read", without_last_empty_line)
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True}
