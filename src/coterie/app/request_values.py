"""Values of requests, checked: an error names the control of the page."""

from collections.abc import Mapping
from typing import Any

from coterie.algorithms import algorithm_of
from coterie.app.failures import FieldError
from coterie.app.run_views import colors_of
from coterie.app.state import Run

MAX_NAME = 80  # characters of the name of a cluster


def finds_k(algorithm: str) -> bool:
    """Whether an algorithm finds the number of clusters itself."""
    try:
        return algorithm_of(algorithm).finds_k
    except ValueError as error:
        raise FieldError(str(error), "algorithm") from error


def number_of_clusters(k: Any) -> Any:
    """K as a number, a pair or "auto"."""
    is_pair = isinstance(k, list) and len(k) == 2 and all(_is_whole(each) for each in k)
    if k == "auto" or is_pair or _is_whole(k):
        return k
    raise FieldError(f"K is a number (8), two numbers (2 and 12) or auto; got {k!r}.", "k")


def whole_number(value: Any, field: str) -> Any:
    """A whole number; a sample may be None."""
    if value is None and field == "sample":
        return None
    if not _is_whole(value):
        raise FieldError(f"{field} must be a whole number; got {value!r}.", field)
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def cluster_label(label: Any, k: int) -> int:
    """The label of one of `k` clusters."""
    text = str(label)
    if not text.isdecimal() or int(text) >= k:
        raise FieldError(f"there is no cluster {text}: labels are 0 to {k - 1}.", f"cluster:{text}")
    return int(text)


def cluster_names(names: Any, k: int) -> dict[str, str]:
    """New names by label, without line breaks and repeated spaces."""
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names.values()):
        raise FieldError("names of clusters must be texts.", "names")
    return {str(cluster_label(label, k)): " ".join(name.split())[:MAX_NAME] for label, name in names.items()}


def cluster_colors(colors: Any, k: int) -> dict[str, str]:
    """New colours by label; empty: the colour of the palette."""
    result = {}
    for label, color in colors.items() if isinstance(colors, Mapping) else ():
        digits = "" if color is None else str(color)[1:]
        if color is not None and not (str(color).startswith("#") and len(digits) == 6 and _is_hex(digits)):
            raise FieldError(f"a colour is written #rrggbb; got {color!r}.", f"cluster:{label}")
        result[str(cluster_label(label, k))] = color or ""
    return result


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789abcdefABCDEF" for letter in text)


def merged_groups(run: Run, chosen: list[int], k: int) -> tuple[list[int], dict[str, str], dict[str, str]]:
    """The new label of each label, and the names and colours that stay; merged clusters take those of the first."""
    groups: list[int] = []
    last = -1
    for label in range(k):
        if label in chosen[1:]:
            groups.append(groups[chosen[0]])
        else:
            last += 1
            groups.append(last)
    names = {
        str(groups[int(label)]): name for label, name in reversed(run.names.items()) if int(label) not in chosen[1:]
    }
    shown = [run.names.get(str(label)) for label in chosen]
    if any(shown):
        names[str(groups[chosen[0]])] = " + ".join(
            name or str(label) for name, label in zip(shown, chosen, strict=True)
        )
    colors = {str(groups[label]): color for label, color in enumerate(colors_of(run, k)) if label not in chosen[1:]}
    return groups, names, colors
