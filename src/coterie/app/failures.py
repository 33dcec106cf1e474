"""Errors as sentences, with the control of the page that caused them."""

import re
from collections.abc import Iterable
from html import escape
from typing import Any

from coterie.core.formatting import escaped
from coterie.errors import ClusterError, InputError, NotConvergedError, ParameterError

EXPECTED = (InputError, ParameterError, ClusterError, NotConvergedError)
# The control that an error is about, by the options and words in its message; the first match counts.
FIELDS = (
    (r"^-?k\b|\bn_clusters\b|\bn_components\b|more clusters than|clusters than there are|\bks go up to\b", "k"),
    (r"--missing ignore is not|--missing \w+ is not|missing values", "missing"),
    (r"--scale", "scale"),
    (r"\bseed\b|random_state", "seed"),
    (r"\bsample must\b", "sample"),
    (r"\bbudget\b", "budget"),
    (r"--names|\bnames?\b.*clusters", "names"),
    (r"\balgorithm must|finds the number of clusters itself|would need|-a \w+ needs", "algorithm"),
)
NAME = r'("[^"]*"|[^\s,.;)]+)'
WORDS = (  # controls of the page, for options and commands in messages
    (r"(Use -k auto, or )?[Rr]un coterie choose-k,? to compare( numbers of clusters)?", "Compare numbers of clusters"),
    (r"coterie choose-k", "a comparison of K"),
    (r"--missing (\w+)", r"missing values: \1"),
    (r"--scale (\w+)", r"scaling: \1"),
    (rf"[Uu]se --one-hot {NAME}", r"use \1 as a category"),
    (rf"--one-hot {NAME}", r"\1 as a category"),
    (rf"--exclude {NAME}", r"leave out \1"),
    (rf"--include {NAME}", r"use \1"),
    (rf"--transform none:{NAME}", r"no transform of \1"),
    (r"(?<![\w-])-k (\w+)", r"K = \1"),
    (r"(?<![\w-])-k\b", "K"),
    (r"(?<![\w-])-a (\w[\w-]*)", r"the algorithm \1"),
)
OPTION_NAMES = {"covariance_type": "covariance"}


class FieldError(InputError):
    """An error with the control that caused it."""

    def __init__(self, message: str, field: str | None, status: int = 400) -> None:
        super().__init__(message)
        self.field, self.status = field, status


class NotAvailable(FieldError):
    """Something that a run does not have; the message says why."""

    def __init__(self, message: str, field: str | None = "run") -> None:
        super().__init__(message, field, 404)


def as_error(error: BaseException, options: Any = (), columns: Any = ()) -> dict[str, Any]:
    """The message and the control of an error; `options` and `columns` are names that it may be about."""
    if isinstance(error, FieldError):
        return {"message": _sentence(str(error)), "field": error.field}
    if isinstance(error, OSError) and error.filename is not None:
        return {"message": f'Cannot use "{escaped(error.filename)}": {error.strerror}.', "field": "file"}
    if isinstance(error, MemoryError):
        return {"message": "There is not enough memory. Use fewer columns, or a sample of the rows.", "field": None}
    if not isinstance(error, EXPECTED):
        text = f"{type(error).__name__}: {error}"
        return {"message": f"This is a bug in coterie, please report it: {text}", "field": None}
    message = str(error)
    return {"message": _sentence(in_page(message, columns)), "field": _field(message, options, columns)}


def in_page(text: str, names: Iterable[str] = ()) -> str:
    """The text with names of controls in place of options; quoted text and `names` of the table stay as they are."""
    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        quote = '"' if len(match[0]) > 1 and match[0][0] == match[0][-1] == '"' else ""
        hidden.append(match[0][len(quote) : len(match[0]) - len(quote)])
        return f"{quote}\ue000{len(hidden) - 1}\ue001{quote}"  # characters without a meaning, which no message has

    longest_first = sorted({each for name in names if "-" in name for each in (name, escape(name))}, key=len)[::-1]
    text = re.sub("|".join(['"[^"]*"', *map(re.escape, longest_first)]), hide, text)
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r"--([a-z][a-z-]*)", lambda match: f"“{match[1].replace('-', ' ')}”", text)
    return re.sub("\ue000(\\d+)\ue001", lambda match: hidden[int(match[1])], text)


def _field(message: str, options: Any, columns: Any) -> str | None:
    for option in options:
        parameter = next((key for key, name in OPTION_NAMES.items() if name == option), option)
        if re.search(rf"\b{re.escape(parameter)}\b|--{re.escape(option.replace('_', '-'))}\b", message):
            return f"option:{option}"
    for pattern, field in FIELDS:
        if re.search(pattern, message):
            return field
    return next((f"column:{name}" for name in columns if f'"{name}"' in message), None)


def _sentence(text: str) -> str:
    """The text with a capital letter, unless its first word is the name of an option, and a full stop."""
    text = escaped(text.strip())  # names of files may not be UTF-8
    first = re.match(r"[a-z]+(?![\w=.])", text)
    return (text[:1].upper() + text[1:] if first else text) + ("" if text.endswith((".", "?", "!")) else ".")
