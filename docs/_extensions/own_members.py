"""API pages: what the library defines, and the fields of results.

What scikit-learn's base classes add is documented there. Fields of dataclasses and named tuples are described by
comments beside them, which become an Attributes section unless the docstring has one.
"""

import inspect
import re
import textwrap
from dataclasses import is_dataclass

FIELD = re.compile(r"^    (\w+): ([^#=]+?)(?: = [^#]*)?(?:  # (.*))?$")


def is_foreign(app, what, name, member, skip, options):
    home = getattr(member, "__module__", None) or getattr(getattr(member, "fget", None), "__module__", None)
    return True if home and not home.startswith("coterie") else None


def describe_fields(app, what, name, obj, options, lines):
    if what == "class" and (is_dataclass(obj) or hasattr(obj, "_fields")) and "Attributes" not in lines:
        found = list(fields_of(obj))
        if found:
            lines += ["", "Attributes", "----------", *found, ""]


def fields_of(kind):
    """Lines of the section, in the order of the class."""
    for line in textwrap.dedent(inspect.getsource(kind)).splitlines():
        if line.startswith("    def ") or line.startswith("    @"):
            break
        match = FIELD.match(line)
        if match and not match[1].startswith("_"):
            yield f"{match[1]} : {match[2]}"
            yield f"    {escaped(match[3] or '')}"


def escaped(comment):
    """Text in which only backticks mean something."""
    return re.sub(r"([*|\\]|_(?=\W|$))", r"\\\1", comment)


def setup(app):
    app.connect("autodoc-skip-member", is_foreign)
    app.connect("autodoc-process-docstring", describe_fields, priority=400)  # before numpydoc reads the sections
    return {"parallel_read_safe": True}
