"""Names of columns in one option."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from coterie.jobs.listing import joined, parted, pasted

NAMES = st.text(min_size=1).map(str.strip).filter(lambda name: name and not set("\r\n\0") & set(name))


@given(st.lists(NAMES, min_size=1))
def test_names_come_back_whatever_they_are(names):
    assert parted([joined(names)]) == tuple(names)
    assert parted(shlex.split(pasted(*names))) == tuple(names)


def test_plain_names_are_plain():
    assert joined(["age", "my size"]) == "age,my size"
    assert parted(["a, b", "c", ",,"]) == ("a", "b", "c")
    assert parted(['a, "b, c"']) == ("a", "b, c")
