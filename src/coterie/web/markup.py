"""HTML and SVG elements with escaped text."""

import math
import re
from html import escape as _escape
from numbers import Integral, Real
from typing import Any

from coterie.errors import ParameterError

VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
RAW = frozenset({"script", "style", "iframe", "noembed", "noframes", "plaintext", "xmp"})  # text is not escaped
NAME = re.compile(r"[A-Za-z][A-Za-z0-9:-]*\Z")
NOT_HTML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Trusted HTML; all other text is escaped before it is added to markup."""

    __slots__ = ()


def escape(text: Any) -> Markup:
    """Escape text for HTML; characters that HTML does not allow become replacement characters."""
    return text if isinstance(text, Markup) else Markup(_escape(NOT_HTML.sub("\ufffd", str(text))))


def joined(*children: Any) -> Markup:
    """Concatenate children: markup is unchanged, lists are flattened, None is skipped, everything else is escaped."""
    texts = []
    for child in children:
        is_list = hasattr(child, "__iter__") and not isinstance(child, str)
        texts.append("" if child is None else joined(*child) if is_list else escape(child))
    return Markup("".join(texts))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """Return an element.

    Attributes are keyword arguments: `cls` is class, `for_` is for, and other underscores become hyphens
    (`aria_label`). True is an attribute without a value; None and False omit it. Inline styles and event handlers are
    rejected, because the Content-Security-Policy of the page blocks them: use a class.

    Examples
    --------
    >>> from coterie.web import tag
    >>> tag("td", "a < b", cls="name", data_tip=0.5)
    '<td class="name" data-tip="0.5">a &lt; b</td>'
    """
    if not NAME.match(name) or name.lower() in RAW:
        raise ParameterError(
            f"name must be an element whose text is escaped; got {name!r}: use coterie.web.page for scripts and styles"
        )
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    if name in VOID:
        if children:
            raise ParameterError(f"<{name}> cannot have content; got {len(children)} children")
        return Markup(opening)
    return Markup(f"{opening}{joined(*children)}</{name}>")


def _attribute(key: str, value: Any) -> str:
    name = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
    if not NAME.match(name) or name == "style" or name.lower().startswith("on"):
        raise ParameterError(
            f"attribute {name!r} is not allowed: use a class for styles, and web/src for event handlers"
        )
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(_attribute_text(value))}"'


def _attribute_text(value: Any) -> str:
    if isinstance(value, Real) and not isinstance(value, Integral):
        if not math.isfinite(value):
            raise ParameterError(f"attributes must be finite numbers; got {value}")
        return f"{float(value) + 0.0:.6g}"
    return str(value)
