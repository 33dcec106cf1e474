"""The checks of descriptions see every number: if one is changed, some check says so."""

from __future__ import annotations

import copy
import re
from dataclasses import fields, replace

import pytest

from descriptions import checks, evidence
from descriptions.test_descriptions import CASES, CHECKS, describe  # noqa: F401  a fixture
from report.pages import Node

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?<=\d)")
# What the rows do not determine: times, sizes of files, options and versions; and fixed words with a digit.
FREE = re.compile(
    r"seed \d+|coterie [\d.]+|[\d.]+ m?s\b(?!\.d)|wrote \S+|[\d.]+ [KM]B|from 0\)|read as 0 and 1|is 1\)|below 0|"
    r"principal axis \d|1: far inside its cluster; 0: between|(?:5|25|75|95) %"
)
RUN = ("reproduce", "convergence")  # sections: how the fit went, and how it is repeated
CHANGED = ("customers, weighted", "dates, missing")
OF_TEXT = (checks.terminal, evidence.fit, evidence.rules_everywhere)
OF_PAGE = (
    evidence.fit,
    evidence.rules_everywhere,
    checks.page,
    evidence.silhouettes,
    evidence.typical_rows,
    evidence.tree,
    evidence.map_of_rows,
    checks.separation,
    checks.shares,
    checks.quantiles,
    checks.chart_of_means,
)
OF_SENTENCES = (checks.sentences, checks.missing_values)
OF_CLUSTERS = (
    checks.sizes,
    checks.rules,
    evidence.rules_everywhere,
    checks.separation,
    checks.missing_values,
    checks.differences,
    checks.means,
)
OF_PROFILES = (evidence.silhouettes, evidence.rules_everywhere, checks.profiles)


def changed(text: str):
    """The text with another last digit of each of its numbers."""
    free = [match.span() for match in FREE.finditer(text)]
    for match in NUMBER.finditer(text):
        if not any(start <= match.start() < stop for start, stop in free):
            digit = (int(text[match.end() - 1]) + 5) % 10
            yield f"{text[: match.end() - 1]}{digit}{text[match.end() :]}"


def is_wrong(said, which) -> bool:
    """Whether one of the checks says so, or cannot read the text."""
    try:
        return any(next(iter(check(said)), None) for check in which)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError, ValueError):
        return True


def altered(said, **changes):
    """The description with other contents; what was computed from the table stays."""
    other = replace(said, **changes)
    computed = vars(said).keys() - {field.name for field in fields(said)}
    vars(other).update({name: vars(said)[name] for name in computed})
    return other


def texts(node: Node):
    """Elements and the positions of texts in them, without pictures, legends and code."""
    for i, child in enumerate(node.children):
        if isinstance(child, str):
            yield node, i
        elif (
            child.name not in ("style", "script", "svg")
            and child.attributes.get("class") != "legend"
            and (child.attributes.get("id") not in RUN)
        ):
            yield from texts(child)


@pytest.mark.parametrize("name", CHANGED)
def test_no_number_is_left_out(describe, name):  # noqa: F811
    said = describe(CASES[name])
    assert not is_wrong(said, CHECKS)
    unseen = [text for text in changed(said.text) if not is_wrong(altered(said, text=text), OF_TEXT)]
    for node, i in texts(said.page):
        original = node.children[i]
        for text in changed(original):
            node.children[i] = text
            unseen += [] if is_wrong(said, OF_PAGE) else [f"{original!r} as {text!r}"]
        node.children[i] = original
    for key in ("notes", "warnings"):
        for i, sentence in enumerate(said.result[key]):
            for text in changed(sentence):
                other = [*said.result[key][:i], text, *said.result[key][i + 1 :]]
                unseen += [] if is_wrong(altered(said, result=said.result | {key: other}), OF_SENTENCES) else [text]
    for i, one in enumerate(said.result["clusters"]):
        for path in numbers(one):
            clusters = copy.deepcopy(said.result["clusters"])
            content = clusters[i]
            for key in path[:-1]:
                content = content[key]
            content[path[-1]] = 1.3 * content[path[-1]] + 1
            other = altered(said, result=said.result | {"clusters": clusters})
            unseen += [] if is_wrong(other, OF_CLUSTERS) else [str(path)]
    for column in said.profiles.select_dtypes("number").drop(columns="cluster"):
        profiles = said.profiles.assign(**{column: 1.3 * said.profiles[column] + 1})
        unseen += [] if is_wrong(altered(said, profiles=profiles), OF_PROFILES) else [column]
    assert not unseen, "\n".join(unseen)


def numbers(content, path=()):
    """Paths of all numbers; the conditions of a rule are those of its text."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in pairs:
        if isinstance(value, dict | list) and key != "conditions":
            yield from numbers(value, (*path, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, key)
