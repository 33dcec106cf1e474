"""Types of values that come from outside, and their check: requests and stored workspaces are declared with them.

A value that does not have its type is an error with its name, the value, what is expected, and the control of the page.
That is the name of the field, or `control` of the types around it, in which ``{}`` stands for the name.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, TypeAlias

from coterie.app.failures import FieldError

MAX_DIGITS = 300  # longer numbers are infinite
SHOWN = Repr()
SHOWN.maxstring = SHOWN.maxother = SHOWN.maxlong = 60


@dataclass(frozen=True)
class Value:
    """A value that accepts no other type: null, or true and false."""

    type: type
    expected: str

    def accepts(self, value: Any) -> bool:
        return isinstance(value, self.type)


@dataclass(frozen=True)
class Number:
    """A finite number within limits."""

    least: float = -math.inf
    most: float = math.inf
    whole: bool = True

    @property
    def expected(self) -> str:
        noun = "a whole number" if self.whole else "a finite number"
        limits = f" from {self.least} to {self.most}" if self.most < math.inf else f" of at least {self.least}"
        return noun if self.least == -math.inf else noun + limits

    def accepts(self, value: Any) -> bool:
        is_number = isinstance(value, int if self.whole else (int, float)) and not isinstance(value, bool)
        return is_number and self.least <= value <= self.most and -math.inf < value < math.inf


@dataclass(frozen=True)
class Text:
    """Text of at most `most` characters, which is one of some words or has a pattern that `about` describes."""

    most: int = 1000
    among: tuple[str, ...] = ()
    pattern: str = ""
    about: str = ""
    is_unicode: bool = True  # names of files may have other bytes

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.among)}" if self.among else self.about or f"text of at most {self.most} letters"

    def accepts(self, value: Any) -> bool:
        if not isinstance(value, str) or len(value) > self.most or (self.is_unicode and not is_unicode(value)):
            return False
        return value in self.among if self.among else not self.pattern or bool(re.fullmatch(self.pattern, value))


@dataclass(frozen=True)
class Many:
    """A list of values, which must differ if `is_set`."""

    of: "Type"
    least: int = 0
    most: int = 100_000
    is_set: bool = False
    control: str | None = None

    @property
    def expected(self) -> str:
        sizes = f"{self.least} to {self.most}" if self.least < self.most else self.most
        return f"a list of {sizes}{' different' if self.is_set else ''} values"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, list) and self.least <= len(value) <= self.most


@dataclass(frozen=True)
class Entries:
    """An object whose names are texts of a type."""

    names: Text
    of: "Type"
    control: str | None = None
    expected = "an object"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, dict)


@dataclass(frozen=True)
class Fields:
    """An object with these names, of which `required` must be there, or exactly one if `is_choice`."""

    of: "Mapping[str, Type]"
    required: tuple[str, ...] = ()
    is_choice: bool = False
    control: str | None = None
    ignores_others: bool = False  # leaves other names out, which a newer version may have written

    @property
    def expected(self) -> str:
        required = f"; {', '.join(self.required)} required" if self.required else ""
        return f"an object with {'one of ' if self.is_choice else ''}{', '.join(self.of) or 'no names'}{required}"

    def accepts(self, value: Any) -> bool:
        is_object = isinstance(value, dict) and all(name in value for name in self.required)
        return is_object and not (self.is_choice and len(value) != 1)


@dataclass(frozen=True)
class Either:
    """A value of the first of these types that accepts it."""

    of: "tuple[Type, ...]"

    @property
    def expected(self) -> str:
        return " or ".join(each.expected for each in self.of)

    def accepts(self, value: Any) -> bool:
        return any(each.accepts(value) for each in self.of)


Type: TypeAlias = Value | Number | Text | Many | Entries | Fields | Either
NOTHING, FLAG = Value(type(None), "null"), Value(bool, "true or false")


def checked(type_: Type, value: Any, name: str = "the request", control: str | None = None) -> Any:
    """The value, without names that are ignored; an error about its control if it does not have the type."""
    control, prefix = control or getattr(type_, "control", None), "" if name == "the request" else f"{name}."
    if not type_.accepts(value):
        raise invalid(name, value, type_.expected, control)

    def inner(type_: Type, item: Any, key: str) -> Any:
        own = control.replace("{}", key, 1) if control else getattr(type_, "control", None) or key
        return checked(type_, item, prefix + key, own)

    match type_:
        case Either():
            return checked(next(each for each in type_.of if each.accepts(value)), value, name, control)
        case Many():
            items = [checked(type_.of, item, f"{prefix}{i}", control) for i, item in enumerate(value)]
            if type_.is_set and len(set(items)) < len(items):
                raise invalid(name, value, type_.expected, control)
            return items
        case Entries():
            for key in value:
                if not type_.names.accepts(key):
                    raise invalid(f"a name in {name}", key, type_.names.expected, control)
            return {key: inner(type_.of, item, key) for key, item in value.items()}
        case Fields():
            for key in value:
                if key not in type_.of and not type_.ignores_others:
                    own = (control or "{}").replace("{}", key, 1) if is_unicode(key) else None
                    raise invalid(
                        f"a name in {name}", key, f"one of {', '.join(type_.of)}" if type_.of else "left out", own
                    )
            return {key: inner(type_.of[key], item, key) for key, item in value.items() if key in type_.of}
    return value


def invalid(name: str, value: Any, expected: str, control: str | None) -> FieldError:
    """The error for a value that does not have its type."""
    return FieldError(
        f"{name} must be {expected}; got {SHOWN.repr(value)}.", None if control and "{}" in control else control
    )


def parsed(data: bytes) -> Any:
    """The value of a JSON text, in which numbers that are too long are infinite."""
    try:
        return json.loads(data, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise FieldError(f"the request is {problem}: send a JSON object.", None) from None


def from_address(type_: Type, texts: list[str]) -> Any:
    """The value that parts of an address mean, such as a number; the text itself if it is none."""
    if isinstance(type_, Many):
        parts = [part for text in texts for part in (text.split(",") if isinstance(type_.of, Number) else [text])]
        return [from_address(type_.of, [part]) for part in parts if part]
    is_number = isinstance(type_, Number) and re.fullmatch("-?[0-9]+", texts[-1])
    return _whole(texts[-1]) if is_number else texts[-1]


def is_unicode(text: str) -> bool:
    """Whether the text has no half of a pair of surrogates."""
    return text.isascii() or not re.search("[\ud800-\udfff]", text)


def _whole(text: str) -> float:
    return int(text) if len(text) <= MAX_DIGITS else math.inf
