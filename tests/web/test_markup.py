"""Any text is escaped in markup."""

from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import ParameterError
from coterie.web import Markup, tag
from coterie.web.markup import NOT_HTML, escape, joined

TEXTS = st.text(max_size=40) | st.sampled_from(
    ["</td>", "<script>alert(1)</script>", "&lt;", '"><img src=x onerror=1>', "]]>"]
)


class Seen(HTMLParser):
    """The text and attributes that a parser reads from HTML."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = [], {}, ""
        self.feed(html)
        self.close()

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        self.attributes |= dict(attributes)

    def handle_data(self, text):
        self.text += text


def shown(text):
    return NOT_HTML.sub("\ufffd", text)


@given(TEXTS, TEXTS)
def test_a_parser_reads_back_what_was_written(text, value):
    seen = Seen(tag("td", text, title=value))
    assert (seen.tags, seen.text, seen.attributes) == (["td"], shown(text), {"title": shown(value)})


@given(TEXTS)
def test_markup_of_any_text_can_be_encoded(text):
    tag("p", text).encode("utf-8")


def test_a_lone_surrogate_and_a_nul_are_replaced():
    assert escape("a\ud800b\x00c") == "a\ufffdb\ufffdc"


def test_markup_is_trusted_and_escaped_once():
    inner = tag("b", "a & b")
    assert isinstance(inner, Markup)
    assert tag("p", inner, " & ", [None, "c", (1, 2.5)]) == "<p><b>a &amp; b</b> &amp; c12.5</p>"
    assert escape(escape("<")) == "&lt;"
    assert joined() == ""


def test_attributes_are_keywords():
    made = tag("input", cls="a b", for_="x", aria_label="n", viewBox="0 0 1 1", checked=True, hidden=False, value=None)
    assert made == '<input class="a b" for="x" aria-label="n" viewBox="0 0 1 1" checked>'
    assert tag("g", x=np.float64(1 / 3), y=np.int64(7), z=-0.0) == '<g x="0.333333" y="7" z="0"></g>'


@pytest.mark.parametrize(
    "attributes", [{"style": "color: red"}, {"onclick": "x()"}, {"OnLoad": "x"}, {"a b": 1}, {"a>": 1}]
)
def test_inline_styles_and_handlers_are_errors(attributes):
    with pytest.raises(ParameterError, match="not allowed"):
        tag("p", **attributes)


@pytest.mark.parametrize("name", ["script", "STYLE", "iframe", "p onclick=x", "", "p>"])
def test_elements_with_raw_text_are_errors(name):
    with pytest.raises(ParameterError, match="name must be"):
        tag(name, "text")


def test_attributes_that_are_not_finite_are_errors():
    with pytest.raises(ParameterError, match="finite"):
        tag("rect", x=float("nan"))


def test_void_elements_have_no_content():
    assert tag("br") == "<br>"
    with pytest.raises(ParameterError, match="cannot have content"):
        tag("br", "text")
