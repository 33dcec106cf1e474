"""What differs between a page as a file and as a page of the site.

Lists of names show no references. Pages end their examples with an empty line, for doctest's sake, which is not shown.
And the gallery, among files a folder of examples, is a page.
"""

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.ext.autosummary import autosummary_table


def gallery_is_a_page(app, docname, source):
    source[0] = source[0].replace("](gallery)", "](auto/gallery/index.rst)")


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
    return {"parallel_read_safe": True}
