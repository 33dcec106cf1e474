"""A page in one file: its style, its scripts and its data are in it, and it asks for nothing."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from coterie.core.errors import ParameterError
from coterie.web.markup import Markup, escape, joined, tag

SCRIPTS = ("report", "player")
IN_JSON = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
}  # JSON that ends no element, the same to a parser


def page(
    title: str, *body: Any, scripts: Sequence[str] = (), data: Mapping[str, Any] | None = None, css: str = ""
) -> str:
    """A whole HTML page.

    The policy in its head lets the browser run the scripts and apply the style given here, known by their SHA-256, and
    show pictures that are in the page: nothing is loaded, and a script that came in with somebody's text does not run.

    Parameters
    ----------
    title : str
    *body : markup, text or lists of these
        What `main` holds.
    scripts : names of 'report', 'player', default=()
        None for a page that has no script at all.
    data : dict of id to what JSON can hold, optional
        What the scripts read: elements ``<script type="application/json" id=...>``.
    css : str, default=""
        Rules after those of the common stylesheet.

    Examples
    --------
    >>> from coterie.web import page, tag
    >>> html = page("Clusters", tag("h1", "Clusters of <a>"))
    >>> html.startswith("<!doctype html>"), "Clusters of &lt;a&gt;" in html, "<script" in html
    (True, True, False)
    """
    style, codes = stylesheet() + css, [script(name) for name in scripts]
    head = joined(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, codes)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        _raw("style", style),
    )
    blocks = [_block(key, value) for key, value in (data or {}).items()]
    content = joined(tag("main", *body), *blocks, *(_raw("script", code) for code in codes))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{content}</body></html>\n'


@cache
def stylesheet() -> str:
    """The style all pages share."""
    return files("coterie.web").joinpath("style.css").read_text(encoding="utf-8")


@cache
def script(name: str) -> str:
    """A script made from `web/` of the repository, as shipped."""
    if name not in SCRIPTS:
        raise ParameterError(f"scripts must be of {', '.join(map(repr, SCRIPTS))}; got {name!r}")
    return files("coterie.web").joinpath("bundle", f"{name}.js").read_text(encoding="ascii")


def as_json(value: Any) -> str:
    """JSON that can stand in a page: ASCII, without <, > and &; numbers are finite."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"data must be what JSON can hold, with finite numbers: {error}") from error
    return text.translate(IN_JSON)


def _block(key: str, value: Any) -> Markup:
    return Markup(f'<script type="application/json" id="{escape(key)}">{as_json(value)}</script>\n')


def _raw(name: str, text: str) -> Markup:
    """Script or style: what is in there is code, and must not end its element."""
    if f"</{name}" in text.lower() or "<!--" in text:
        raise ParameterError(f"text of <{name}> must not hold </{name} or <!--")
    return Markup(f"<{name}>{text}</{name}>\n")


def _policy(style: str, codes: Sequence[str]) -> str:
    allowed = " ".join(map(_digest, codes)) or "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data:"


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
