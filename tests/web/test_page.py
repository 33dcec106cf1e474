"""A page is self-contained, and its policy allows only its own scripts and style."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import ParameterError
from coterie.web import embedded, page, tag
from coterie.web.page import SCRIPTS, as_json, script

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def policy(html):
    content = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1])
    return dict(rule.strip().split(" ", 1) for rule in content.split(";"))


def hashes(html, name):
    found = re.findall(rf"<{name}>(.*?)</{name}>", html, re.DOTALL)
    return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in found)


def test_the_policy_names_the_hashes_of_what_the_page_holds_and_nothing_else():
    html = page("t", "text", scripts=("report", "player"), data={"d": [1]}, css=".é { color: red }")
    assert policy(html) == {
        "default-src": "'none'", "script-src": hashes(html, "script"), "style-src": hashes(html, "style"),
        "img-src": "data:",
    }  # fmt: skip
    assert policy(html)["script-src"].count("sha256-") == 2


def test_a_page_without_scripts_allows_none():
    html = page("t", "text")
    assert policy(html)["script-src"] == "'none'"
    assert "<script" not in html


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_as_shipped_end_no_element_and_are_ascii(name):
    code = script(name)
    assert code.isascii()
    assert not re.search(r"</script|<!--|https?://(?!www\.w3\.org/)", code, re.IGNORECASE)


def test_a_page_loads_nothing():
    html = page("t", "text", scripts=SCRIPTS)
    assert not re.search(r"\b(src|href)=\"(?!data:)", html)
    assert "@import" not in html
    assert "url(" not in html


@given(JSON)
def test_data_are_unchanged_and_end_no_element(value):
    text = as_json(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert not set("<>&") & set(text)


def test_data_are_finite():
    with pytest.raises(ParameterError, match="finite"):
        page("t", data={"d": [float("nan")]})
    with pytest.raises(ParameterError, match="JSON"):
        as_json({1, 2})


def test_title_and_ids_are_escaped():
    html = page("</title><b>", data={'"><b>': 1})
    assert "<b>" not in html


def test_style_that_would_end_its_element_is_an_error():
    with pytest.raises(ParameterError, match="must not contain"):
        page("t", css="</STYLE ><script>")


def test_unknown_scripts_are_errors():
    with pytest.raises(ParameterError, match="'report', 'player', 'app'; got 'map'"):
        page("t", scripts=("map",))


def test_a_frame_contains_the_page_and_has_no_origin():
    html = page("t", tag("p", 'a "quoted" & <b>'))
    frame = embedded(html, 300)
    assert 'sandbox="allow-scripts" ' in frame
    assert unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == html
