"""HTML and SVG, put together so that text stays text."""

from __future__ import annotations

import math
import re
from html import escape as _escape
from numbers import Integral, Real
from typing import Any

from coterie.core.errors import ParameterError

VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
RAW = frozenset(
    {"script", "style", "iframe", "noembed", "noframes", "plaintext", "xmp"}
)  # text in there is not escaped
NAME = re.compile(r"[A-Za-z][A-Za-z0-9:-]*\Z")
NOT_HTML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """HTML that is trusted: all other text is escaped where it meets one."""

    __slots__ = ()


def escape(text: Any) -> Markup:
    """Any text as HTML that shows it; what HTML cannot hold is shown as a replacement character.

    Examples
    --------
    >>> from coterie.web import escape
    >>> escape("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return text if isinstance(text, Markup) else Markup(_escape(NOT_HTML.sub("\ufffd", str(text))))


def joined(*children: Any) -> Markup:
    """Children one after the other: markup as it is, lists flattened, None left out, all else escaped."""
    return Markup("".join(_rendered(child) for child in children))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element.

    Attributes are keywords: `cls` is class, `for_` is for, other underscores are hyphens (`aria_label`). True is an
    attribute without a value; None and False leave it out. Inline styles and handlers are refused, for the policy of
    the page would not let them work: give a class.

    Examples
    --------
    >>> from coterie.web import tag
    >>> tag("td", "a < b", cls="name", data_tip=0.5)
    '<td class="name" data-tip="0.5">a &lt; b</td>'
    """
    if not NAME.match(name) or name.lower() in RAW:
        raise ParameterError(f"name must be that of an element whose text is HTML; got {name!r}: see coterie.web.page")
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    if name in VOID:
        if children:
            raise ParameterError(f"<{name}> has no content; got {len(children)} children")
        return Markup(opening)
    return Markup(f"{opening}{joined(*children)}</{name}>")


def _rendered(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, str):
        return escape(child)
    if hasattr(child, "__iter__"):
        return joined(*child)
    return escape(child)


def _attribute(key: str, value: Any) -> str:
    name = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
    if not NAME.match(name) or name == "style" or name.lower().startswith("on"):
        raise ParameterError(f"attribute {name!r} is not allowed: styles are classes, handlers are in web/src")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(_attribute_text(value))}"'


def _attribute_text(value: Any) -> str:
    if isinstance(value, Real) and not isinstance(value, Integral):
        if not math.isfinite(value):
            raise ParameterError(f"attributes are finite numbers; got {value}")
        return f"{float(value) + 0.0:.6g}"
    return str(value)
