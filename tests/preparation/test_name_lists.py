"""Names of columns in one option."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import ParameterError
from coterie.preparation.name_lists import join_names, shell_names, split_names

NAMES = st.text(min_size=1).map(str.strip).filter(lambda name: name and "\0" not in name)


@given(st.lists(NAMES, min_size=1))
def test_names_come_back_whatever_they_are(names):
    assert split_names([join_names(names)]) == tuple(names)
    assert split_names(shlex.split(shell_names(*names))) == tuple(names)


def test_a_line_break_outside_quotes_is_an_error_of_the_option():
    with pytest.raises(ParameterError, match="double quotes"):
        split_names(["a\r\nb"])


def test_plain_names_are_plain():
    assert join_names(["age", "my size"]) == "age,my size"
    assert split_names(["a, b", "c", ",,"]) == ("a", "b", "c")
    assert split_names(['a, "b, c"']) == ("a", "b, c")
