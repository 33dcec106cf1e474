"""Choices of the page for columns and preparation, as the options of a job."""

from collections.abc import Mapping
from typing import Any, get_args

from coterie.algorithms import Algorithm
from coterie.app.failures import FieldError
from coterie.app.state import AUTO, CATEGORY, NUMBER, ROLES, State
from coterie.preparation import Dates, DecimalMark, Missing, Scale
from coterie.preparation.column_names import IDENTIFIER, ROW_NUMBERS
from coterie.preparation.transforms import NO_TRANSFORM, TRANSFORMS

SETTINGS: dict[str, tuple[str, ...]] = {
    "scale": get_args(Scale), "missing": get_args(Missing), "dates": get_args(Dates), "decimal": get_args(DecimalMark),
}  # fmt: skip
DEFAULTS = {"scale": AUTO, "missing": "error", "dates": "age", "decimal": AUTO}
CHOICES = {"role": ROLES, "as": (NUMBER, CATEGORY), "transform": (AUTO, NO_TRANSFORM, *TRANSFORMS)}


def changed_columns(state: State, changes: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The choices for columns after some changes; `columns` are the kinds of the columns of the table.

    There is one identifier and one weight at most, so that a new one replaces the one before.
    """
    result = {name: dict(choice) for name, choice in state.columns.items()}
    for name, change in changes.items():
        if name not in columns:
            raise FieldError(f'no column "{name}".', f"column:{name}")
        role = change.get("role")
        if role in ("id", "weight"):
            for other in result.values():
                if other.get("role") == role:
                    del other["role"]
        result.setdefault(name, {}).update(change)
    return {name: choice for name, choice in result.items() if choice}


def preparation_options(state: State, kinds: Mapping[str, str], skipped: Mapping[str, str | None]) -> dict[str, Any]:
    """The fields of `PreparationOptions` for the choices; `skipped` are the reasons to skip columns by default."""
    options: dict[str, Any] = {**DEFAULTS, **state.preparation}
    exclude, include, one_hot, transform = [], [], [], []
    for name, choice in state.columns.items():
        role = choice.get("role")
        if role in ("id", "weight"):
            options[role] = name
        elif role == "ignored":
            exclude.append(name)
        elif choice.get("as", default_use(kinds[name])) == CATEGORY:
            one_hot += [name] if role == "feature" or skipped[name] is None else []
        elif role == "feature":
            include.append(name)
        chosen = choice.get("transform", AUTO)
        is_number = choice.get("as", default_use(kinds[name])) == NUMBER
        if chosen != AUTO and is_number and (role == "feature" or (role is None and skipped[name] is None)):
            transform.append(f"{chosen}:{name}")
    return options | {"exclude": exclude, "include": include, "one_hot": one_hot, "transform": transform}


def options_for(options: Mapping[str, Any], method: Algorithm) -> dict[str, Any]:
    """The options for an algorithm: a mixture takes categories as they are, and series have no transforms."""
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    if method.mixed:
        plain |= {"include": (*plain["include"], *plain["one_hot"]), "one_hot": (), "transform": ()}
    if method.series:
        plain |= {"transform": ()}
    if (method.mixed or method.series) and plain["missing"] in ("mean", "median"):
        plain["missing"] = "ignore" if method.handles_missing else "drop"
    return plain


def default_use(kind: str) -> str:
    """How a column is used if the user does not say: as a number, if it holds or can be read as numbers."""
    last = kind.rpartition("→ ")[2]
    return NUMBER if last in ("numeric", "empty") else CATEGORY


def role_of(name: str, state: State, is_used: bool, reason: str | None) -> str:
    """The role of a column, from the choice of the user and what the preparation does."""
    chosen = state.columns.get(name, {}).get("role")
    if chosen in ("id", "weight", "ignored"):
        return chosen
    if is_used:
        return "feature"
    has_id = any(each.get("role") == "id" for each in state.columns.values())
    return "id" if reason in (IDENTIFIER, ROW_NUMBERS) and not has_id else "ignored"
