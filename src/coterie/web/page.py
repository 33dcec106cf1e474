"""Self-contained HTML pages: style, scripts and data are part of the file."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from coterie.errors import ParameterError
from coterie.web.markup import Markup, escape, joined, tag

SCRIPTS = ("report", "player", "app")
# These escapes are equivalent in JSON, and prevent text from ending the script element.
IN_JSON = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def page(
    title: str, *body: Any, scripts: Sequence[str] = (), data: Mapping[str, Any] | None = None, css: str = "",
    connects: bool = False,
) -> str:  # fmt: skip
    """Return a complete HTML page.

    The Content-Security-Policy allows only the scripts and the style of the page, identified by their SHA-256, and
    images that are part of the page. The page loads nothing, and a script that is injected by some text does not run.
    If it `connects`, its scripts may request data from its own server.

    `body` is the content of the `main` element, `scripts` are names ('report', 'player'), `data` is JSON data for the
    scripts by the id of their elements, and `css` are rules that are added to the common stylesheet.

    Examples
    --------
    >>> from coterie.web import page, tag
    >>> html = page("Clusters", tag("h1", "Clusters of <a>"))
    >>> html.startswith("<!doctype html>"), "Clusters of &lt;a&gt;" in html, "<script" in html
    (True, True, False)
    """
    style, codes = stylesheet() + css, [script(name) for name in scripts]
    allowed = " ".join(map(_digest, codes)) or "'none'"
    policy = f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data:"
    policy += "; connect-src 'self'" if connects else ""
    head = joined(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        _raw("style", style),
    )
    blocks = [
        Markup(f'<script type="application/json" id="{escape(key)}">{as_json(value)}</script>\n')
        for key, value in (data or {}).items()
    ]
    content = joined(tag("main", *body), *blocks, *(_raw("script", code) for code in codes))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{content}</body></html>\n'


def embedded(page: str, height: int = 660) -> Markup:
    """Return an iframe for notebooks that contains a page; its scripts are sandboxed."""
    attributes = f'sandbox="allow-scripts" width="100%" height="{int(height)}" frameborder="0"'
    return Markup(f'<iframe {attributes} srcdoc="{escape(str(page))}"></iframe>')


@cache
def stylesheet() -> str:
    """Return the common stylesheet of all pages."""
    return files("coterie.web").joinpath("style.css").read_text(encoding="utf-8")


@cache
def script(name: str) -> str:
    """Return a script that was built from `web/` of the repository."""
    if name not in SCRIPTS:
        raise ParameterError(f"scripts must be among {', '.join(map(repr, SCRIPTS))}; got {name!r}")
    return files("coterie.web").joinpath("bundle", f"{name}.js").read_text(encoding="ascii")


def as_json(value: Any) -> str:
    """Return JSON for use in a page: ASCII without <, > and &, with finite numbers."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"data must be JSON data with finite numbers: {error}") from error
    return text.translate(IN_JSON)


def _raw(name: str, text: str) -> Markup:
    """Return a script or style element, whose text is not escaped and must not end the element."""
    if f"</{name}" in text.lower() or "<!--" in text:
        raise ParameterError(f"text of <{name}> must not contain </{name} or <!--")
    return Markup(f"<{name}>{text}</{name}>\n")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
