"""Names of columns in one option."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.errors import ParameterError
from coterie.preparation.name_lists import joined, parted, pasted

NAMES = st.text(min_size=1).map(str.strip).filter(lambda name: name and "\0" not in name)


@given(st.lists(NAMES, min_size=1))
def test_names_come_back_whatever_they_are(names):
    assert parted([joined(names)]) == tuple(names)
    assert parted(shlex.split(pasted(*names))) == tuple(names)


def test_a_line_break_outside_quotes_is_an_error_of_the_option():
    with pytest.raises(ParameterError, match="double quotes"):
        parted(["a\r\nb"])


def test_plain_names_are_plain():
    assert joined(["age", "my size"]) == "age,my size"
    assert parted(["a, b", "c", ",,"]) == ("a", "b", "c")
    assert parted(['a, "b, c"']) == ("a", "b, c")
