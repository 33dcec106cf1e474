"""How to have the same again."""

from __future__ import annotations

from coterie.report.html.report import Absent, Reproduce
from coterie.report.html.sections.section import absent, section
from coterie.web import Markup, tag


def reproduce(how: Reproduce) -> Markup:
    """Code, a command, and what data and versions they go with."""
    versions = ", ".join(f"{name} {version}" for name, version in how.versions.items())
    if isinstance(how.python, Absent):
        code = absent(how.python)
    else:
        code = tag("pre", tag("code", how.python), tabindex=0, aria_label="Python code")
    return section(
        "reproduce",
        "Reproduce",
        tag("h3", "In Python"),
        code,
        tag("h3", "On the command line"),
        tag("pre", tag("code", how.command), tabindex=0, aria_label="Command line"),
        tag("dl", tag("dt", "data"), tag("dd", how.fingerprint), tag("dt", "versions"), tag("dd", versions)),
    )
