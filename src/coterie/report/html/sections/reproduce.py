"""How to reproduce the result."""

from coterie.report.html.report import Absent, Reproduce
from coterie.report.html.sections.section import absent, section
from coterie.web import Markup, tag


def reproduce(data: Reproduce) -> Markup:
    """Python code, a command line, the fingerprint of the data, and the versions of the packages."""
    versions = ", ".join(f"{name} {version}" for name, version in data.versions.items())
    if isinstance(data.python, Absent):
        code = absent(data.python)
    else:
        code = tag("pre", tag("code", data.python), tabindex=0, aria_label="Python code")
    return section(
        "reproduce",
        "Reproduce",
        tag("h3", "In Python"),
        code,
        tag("h3", "On the command line"),
        tag("pre", tag("code", data.command), tabindex=0, aria_label="Command line"),
        tag("dl", tag("dt", "data"), tag("dd", data.fingerprint), tag("dt", "versions"), tag("dd", versions)),
    )
