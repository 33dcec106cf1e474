"""Text from files and options as a terminal can show it: control characters become visible escapes."""

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

# C0 and C1 control characters and DEL; marks and overrides that change the direction of text; separators of lines and
# paragraphs; halves of characters, which stand for bytes of file names that are not text.
CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)

ADVICE = "\n  "


def printable(text: str) -> str:
    r"""The text on one line, every control character as an escape such as ``\x1b`` or ``\n``."""
    return CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def printable_lines(text: str) -> str:
    """The same line by line, for a text whose line breaks are ours."""
    return "\n".join(map(printable, text.split("\n")))


def printable_message(text: str) -> str:
    """The text of an error; the only line breaks that stay are those before the indented lines of its advice."""
    return ADVICE.join(map(printable, text.split(ADVICE)))


def printable_result(value: Any) -> Any:
    """A copy of a result in which every text is `printable`; what is not text stays as it is."""
    if isinstance(value, str):
        return printable(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: printable_result(getattr(value, field.name)) for field in fields(value)})
    if isinstance(value, dict):
        return {printable_result(key): printable_result(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(printable_result, value))
    return value
