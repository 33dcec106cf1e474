"""A prediction rule as a Python module with a function `predict`, which imports only `math`."""

from __future__ import annotations

import numpy as np

import coterie
from coterie.core.formatting import count
from coterie.exports.category_texts import lookups, missing_words
from coterie.exports.prediction_rule import DOMAINS, CenterTree, MostProbable, NearestCenter, PredictionRule
from coterie.preparation.category_meaning import BLANKS

HEAD = '''"""Clusters of {estimator} with {clusters}: predict(row) returns the cluster of one row.

Written by coterie {version}; labels are those of the model. This module needs nothing but Python.
"""

import math

'''

FEATURES = '''

def predict(row):
    """Return the cluster of a row, or None if it has none.

    `row` is a mapping with the keys COLUMNS, or a sequence of values in this order. None, NaN and "" are missing
    values. {missing} A row with an infinite value has no cluster. Text that is not a number is a ValueError.
    """
    values = [row[name] for name in COLUMNS] if hasattr(row, "keys") else list(row)
    if len(values) != len(COLUMNS):
        raise ValueError(f"a row has {{len(COLUMNS)}} values, not {{len(values)}}")
    x = []
    for value, (words, codes, transform, shift, spread, weight, fill) in zip(values, NUMBERS):
        value = value.strip(BLANKS).lower() if isinstance(value, str) else value
        value = words[value] if value in words else None if value is None or value == "" else float(value)
        if value is None or value != value or value in codes:
            value = fill
        elif transform:
            if value < DOMAINS[transform][0] or (value == DOMAINS[transform][0] and not DOMAINS[transform][1]):
                return None
            value = getattr(math, transform)(value)
        if value is None:
            if MISSING != "ignore":
                return None
            x.append(None)
            continue
        value = (value - shift) / spread * weight
        if not -LIMIT <= value <= LIMIT:
            return None
        x.append(value)
    for value, (exact, texts, numbers, sizes) in zip(values[len(NUMBERS) :], CATEGORIES):
        text = "" if value is None else str(value)
        if text.strip(BLANKS).lower() in MISSING_WORDS and MISSING == "none":
            return None
        category = category_of(text, exact, texts, numbers)
        x.extend(size if j == category else 0.0 for j, size in enumerate(sizes))
    if all(value is None for value in x):
        return None
    return cluster_of(x)


def category_of(text, exact, texts, numbers):
    """Position of the category that a text means: 1, 1.0, 1e0 and true are one category, but 01 is another."""
    if text in exact:
        return exact[text]
    text = text.strip(BLANKS)
    if text in texts:
        return texts[text]
    text = {{"true": "1", "false": "0"}}.get(text.lower(), text)
    mantissa, e, exponent = text.replace("E", "e").partition("e")
    if "." in mantissa and mantissa[-1] != ".":
        mantissa = mantissa.rstrip("0")
    elif "." in mantissa:
        return None
    return numbers.get(mantissa + e + exponent)
'''

NEAREST = '''

def cluster_of(x):
    """The first of the nearest centers."""
    nearest, cluster = math.inf, None
    for label, center in enumerate(CENTERS):
        total = {distance}(x, center)
        if total < nearest:
            nearest, cluster = total, label
    return cluster
'''

SQUARES = """

def squared_distance(x, center):
    total = 0.0
    for value, mean in zip(x, center):
        if value is not None:
            total += (value - mean) * (value - mean)
    return total
"""

ABSOLUTE = """

def manhattan_distance(x, center):
    total = 0.0
    for value, mean in zip(x, center):
        total += abs(value - mean)
    return total
"""

DIRECTIONS = '''

def cluster_of(x):
    """The first of the nearest centers of the row at unit length; a row of zeros has none."""
    largest = max(abs(value) for value in x)
    if largest == 0.0:
        return None
    squares = sum(value * value for value in x)
    if not 1e-280 < squares < 1e280:
        x = [value / largest for value in x]
        squares = sum(value * value for value in x)
    length = math.sqrt(squares)
    return nearest_center([value / length for value in x])
'''

TREE = '''

def cluster_of(x):
    """The leaf that is reached by going to the nearer of two children."""
    node = 0
    while CHILDREN[node] >= 0:
        first = CHILDREN[node]
        node = first + (squared_distance(x, CENTERS[first]) > squared_distance(x, CENTERS[first + 1]))
    return CLUSTERS[node]
'''

PROBABLE = '''

def cluster_of(x):
    """The first component with the largest log density."""
    largest, cluster = -math.inf, None
    for label, (offset, mean) in enumerate(zip(OFFSETS, MEANS)):
        score = offset - 0.5 * squared_length(x, mean, label)
        if score > largest:
            largest, cluster = score, label
    return cluster
'''

FULL = '''

def squared_length(x, mean, label):
    """Squared length of U'(x - mean), where column j of U is FACTORS[...][j]."""
    total = 0.0
    differences = [value - center for value, center in zip(x, mean)]
    for column in FACTORS[{index}]:
        y = 0.0
        for difference, factor in zip(differences, column):
            y += difference * factor
        total += y * y
    return total
'''

DIAGONAL = """

def squared_length(x, mean, label):
    total = 0.0
    for value, center, factor in zip(x, mean, FACTORS[label]):
        y = (value - center) * factor
        total += y * y
    return total
"""

OBSERVED_DIAGONAL = '''

def cluster_of(x):
    """The first component with the largest log density of the observed values."""
    largest, cluster = -math.inf, None
    for label, (score, mean) in enumerate(zip(OFFSETS, MEANS)):
        for value, center, factor, scale in zip(x, mean, FACTORS[label], LOG_SCALES[label]):
            if value is not None:
                y = (value - center) * factor
                score += scale - 0.5 * y * y
        if score > largest:
            largest, cluster = score, label
    return cluster
'''

OBSERVED_FULL = '''

def cluster_of(x):
    """The first component with the largest log density of the observed values."""
    observed = [j for j, value in enumerate(x) if value is not None]
    largest, cluster = -math.inf, None
    for label, (offset, mean) in enumerate(zip(OFFSETS, MEANS)):
        covariance = COVARIANCES[{index}]
        score = offset + log_density([x[j] - mean[j] for j in observed],
                                     [[covariance[i][j] for j in observed] for i in observed])
        if score > largest:
            largest, cluster = score, label
    return cluster


def log_density(difference, covariance):
    """Log density of a Gaussian up to a constant, by the Cholesky factor of its covariance."""
    score, lower, y = 0.0, [], []
    for i, row in enumerate(covariance):
        entries = []
        for j in range(i):
            total = row[j]
            for a, b in zip(entries, lower[j]):
                total -= a * b
            entries.append(total / lower[j][j])
        diagonal, value = row[i], difference[i]
        for entry, before in zip(entries, y):
            diagonal -= entry * entry
            value -= entry * before
        diagonal = math.sqrt(diagonal)
        lower.append(entries + [diagonal])
        y.append(value / diagonal)
        score -= math.log(diagonal) + 0.5 * y[i] * y[i]
    return score
'''

POLICIES = {
    "none": "A row with a missing value has no cluster.",
    "fill": "Missing values are filled as in the fit.",
    "ignore": "Missing values are ignored; a row without any value has no cluster.",
}


def as_python(rule: PredictionRule) -> str:
    """Source code of the module. Names and values of the table appear only as ASCII string literals."""
    numbers = (
        (each.words, each.codes, each.transform, each.shift, each.spread, each.weight, each.fill)
        for each in rule.numbers
    )
    categories = ((*lookups(group), tuple(each.size for each in group)) for group in rule.categories.values())
    constants, functions = _score(rule)
    lines = [
        _tuple("COLUMNS", map(ascii, rule.columns)),
        _tuple("NUMBERS", map(ascii, numbers), "words, codes, transform, shift, spread, weight, fill value"),
        _tuple("CATEGORIES", map(ascii, categories), "exact texts, texts, numbers, and their features"),
        f"BLANKS = {BLANKS!a}",
        f"MISSING_WORDS = {missing_words() if rule.indicators else ()!a}",
        f"DOMAINS = {DOMAINS!r}  # minimum of a transform, and whether it is accepted",
        f"MISSING = {rule.missing!r}",
        f"LIMIT = {rule.limit!r}",
        *constants,
    ]
    head = HEAD.format(
        estimator=rule.estimator, clusters=count(rule.n_clusters, "cluster"), version=coterie.__version__
    )
    return head + "\n".join(lines) + "\n" + FEATURES.format(missing=POLICIES[rule.missing]) + functions


def _score(rule: PredictionRule) -> tuple[list[str], str]:
    """Constants and functions of the score."""
    score = rule.score
    if isinstance(score, NearestCenter):
        centers = [_rows("CENTERS", score.centers)]
        if score.metric == "absolute":
            return centers, NEAREST.format(distance="manhattan_distance") + ABSOLUTE
        nearest = NEAREST.format(distance="squared_distance") + SQUARES
        if score.metric == "directions":
            return centers, DIRECTIONS + nearest.replace("def cluster_of", "def nearest_center")
        return centers, nearest
    if isinstance(score, CenterTree):
        constants = [f"CHILDREN = {score.children!r}", f"CLUSTERS = {score.clusters!r}"]
        return [_rows("CENTERS", score.centers), *constants], TREE + SQUARES
    return _gaussians(score, rule.missing == "ignore")


def _gaussians(score: MostProbable, ignores_missing: bool) -> tuple[list[str], str]:
    means = _rows("MEANS", score.means)
    index = "label" if score.form == "full" else "0"
    if not ignores_missing:
        offsets = f"OFFSETS = {_numbers(score.offset)}"
        if not score.has_matrices:
            return [offsets, means, _rows("FACTORS", score.column_factors)], PROBABLE + DIAGONAL
        matrices = score.factor if score.form == "full" else score.factor[None]
        columns = [[column[: j + 1] for j, column in enumerate(matrix.T)] for matrix in matrices]
        return [offsets, means, _matrices("FACTORS", columns)], PROBABLE + FULL.format(index=index)
    offsets = f"OFFSETS = {_numbers(score.offset - score.log_scales.sum(axis=1))}"
    if not score.has_matrices:
        scales = _rows("LOG_SCALES", score.log_scales)
        return [offsets, means, _rows("FACTORS", score.column_factors), scales], OBSERVED_DIAGONAL
    inverse = np.linalg.inv(score.factor if score.form == "full" else score.factor[None])
    covariances = _matrices("COVARIANCES", [list(matrix.T @ matrix) for matrix in inverse])
    return [offsets, means, covariances], OBSERVED_FULL.format(index=index)


def _numbers(values: np.ndarray) -> str:
    """A tuple of numbers; infinity has no literal."""
    return "(" + "".join(f"{value!r}, " for value in values.tolist()).replace("inf", "math.inf").rstrip(" ") + ")"


def _rows(name: str, rows: np.ndarray) -> str:
    return _tuple(name, (_numbers(row) for row in rows))


def _matrices(name: str, matrices: list[list[np.ndarray]]) -> str:
    return _tuple(name, (f"({''.join(f'{_numbers(row)}, ' for row in matrix)})" for matrix in matrices))


def _tuple(name: str, items: object, comment: str = "") -> str:
    """An assignment of a tuple, one item a line."""
    lines = "".join(f"    {item},\n" for item in items)  # type: ignore[attr-defined]
    return f"{name} = ({f'  # {comment}' if comment else ''}\n{lines})"
