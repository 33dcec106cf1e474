"""A prediction rule as one SELECT statement.

The cluster is a scalar subquery in three layers: features `f` of the row `t`, scores `s` of the features, and a CASE
that selects the first best score. Every column of the table is referred to as ``t."name"``, so that no name can be
taken for text or for a column of another layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

import coterie
from coterie.core.formatting import count
from coterie.errors import ParameterError
from coterie.exports.prediction_rule import (
    CenterTree,
    Indicator,
    MostProbable,
    NearestCenter,
    Number,
    PredictionRule,
)

MAX_COLUMNS = 900  # SQLite and DuckDB limit the depth of an expression to 1000
MAX_SCORES = 1900  # SQLite limits the columns of a subquery to 2000
EXACT_DIGITS = 15  # decimal numbers up to this length are exact in SQLite
EXACT_POWER = 22  # powers of ten up to this one are float64 numbers
LARGEST_INTEGER = 2**53
BOOLEANS = {"true": 1, "false": 0}  # in SQLite, which has no type for them


@dataclass(frozen=True)
class Dialect:
    """Differences of a database from the others."""

    name: str
    text: str  # type of text
    fence: str  # end of a subquery, so that the optimiser does not repeat its expressions wherever they are used
    has_nan: bool = True  # whether NaN is a value
    ignores_case: bool = True  # of quoted names of columns


DUCKDB = Dialect("duckdb", "VARCHAR", "")
POSTGRESQL = Dialect("postgresql", "TEXT", " OFFSET 0", ignores_case=False)
SQLITE = Dialect("sqlite", "TEXT", " LIMIT 1 OFFSET 0", has_nan=False)
BY_NAME = {dialect.name: dialect for dialect in (DUCKDB, POSTGRESQL, SQLITE)}

POLICIES = {
    "none": "a value is missing",
    "fill": "",
    "ignore": "all values are missing",
}


def as_sql(rule: PredictionRule, table: str, dialect: str) -> str:
    """A SELECT statement that adds the column `cluster` to all columns of the table."""
    return _Writer(rule, BY_NAME[dialect]).statement(table)


class _Writer:
    """Writes the layers of the statement."""

    def __init__(self, rule: PredictionRule, dialect: Dialect):
        self.rule, self.dialect = rule, dialect
        _check_size(rule)
        _check_names(rule, dialect)

    def statement(self, table: str) -> str:
        source = ".".join(map(identifier, table.split(".")))
        scores = self._scores()
        cluster = f"CASE WHEN s.ok THEN {self._cluster()} END"
        return (
            f"{self._comment()}SELECT\n  t.*,\n  (\n    SELECT {cluster}\n    FROM (\n      SELECT\n"
            f"{_list(scores, 8)}\n      FROM (\n{self._features_query()}\n      ) AS f{self.dialect.fence}\n"
            f"    ) AS s\n  ) AS cluster\nFROM {source} AS t\n"
        )

    def _comment(self) -> str:
        reasons = [POLICIES[self.rule.missing], "a value is infinite"]
        if isinstance(self.rule.score, NearestCenter) and self.rule.score.metric == "directions":
            reasons.append("all values are 0")
        return (
            f"-- Clusters of {self.rule.estimator} with {count(self.rule.n_clusters, 'cluster')}, for "
            f"{self.dialect.name}. Written by coterie {coterie.__version__}.\n"
            f"-- cluster is NULL where {' or '.join(filter(None, reasons))}.\n"
        )

    # features

    def _features_query(self) -> str:
        numbers = [f"{self._number(number)} AS f{j}" for j, number in enumerate(self.rule.numbers)]
        indicators = [
            f"{self._indicator(each)} AS f{j}" for j, each in enumerate(self.rule.indicators, len(self.rule.numbers))
        ]
        query = f"        SELECT\n{_list([*numbers, *indicators], 10)}"
        if not isinstance(self.rule.score, MostProbable) or self.rule.score.form not in ("full", "tied"):
            return f"{query}{self.dialect.fence}"
        values = [f"f.f{j} AS f{j}" for j in range(self.rule.n_features)]
        rotated = [f"{value} AS y{j}_{i}" for j, i, value in self._rotated()]
        return (
            f"        SELECT\n{_list([*values, *rotated], 10)}\n        FROM (\n{query}{self.dialect.fence}\n"
            f"        ) AS f{self.dialect.fence}"
        )

    def _number(self, number: Number) -> str:
        value = self._value(number)
        if number.shift or number.spread != 1.0:
            value = f"({self._minus(value, number.shift)}) / {self.literal(number.spread)}"
        return value if number.weight == 1.0 else f"{value} * {self.literal(number.weight)}"

    def _value(self, number: Number) -> str:
        """The value of a numeric column as a double; missing values are filled, or NULL."""
        column = f"t.{identifier(number.column)}"
        fill = "NULL" if number.fill is None else self.literal(number.fill)
        value = f"CAST({column} AS DOUBLE PRECISION)"
        if self.dialect.has_nan:
            value = f"NULLIF({value}, CAST('NaN' AS DOUBLE PRECISION))"
            return value if number.fill is None else f"COALESCE({value}, {fill})"
        # In SQLite any column can contain text, and a cast of text that is not a number is 0.
        is_number = f"typeof({column}) IN ('integer', 'real') OR {column} = {value}"
        return f"CASE WHEN {column} IS NULL OR {column} = '' THEN {fill} WHEN {is_number} THEN {value} ELSE 9e999 END"

    def _indicator(self, each: Indicator) -> str:
        column = f"t.{identifier(each.column)}"
        value, zero = string(each.value), self.literal(0.0)
        if self.dialect is SQLITE:
            value += " COLLATE BINARY"  # not the collation of the column
        condition = f"CAST({column} AS {self.dialect.text}) = {value}"
        if self.dialect is SQLITE and each.value in BOOLEANS:
            condition += f" OR {column} = {BOOLEANS[each.value]}"
        is_value = f"WHEN {condition} THEN {self.literal(each.size)} ELSE {zero}"
        if self.rule.missing == "none":
            return f"CASE WHEN {column} IS NULL THEN NULL {is_value} END"
        return f"CASE {is_value} END"

    # scores

    def _scores(self) -> list[str]:
        """Scores of the clusters, and whether the row has a cluster."""
        score = self.rule.score
        if isinstance(score, NearestCenter):
            scores = [(j, self._distance(score.metric, center)) for j, center in enumerate(score.centers)]
        elif isinstance(score, CenterTree):
            scores = [(j, self._distance("squares", score.centers[j])) for j in range(1, len(score.centers))]
        else:
            scores = [(j, self._log_density(score, j)) for j in self._candidates()]
        return [*(f"{value} AS s{j}" for j, value in scores), f"{self._is_valid()} AS ok"]

    def _distance(self, metric: str, center: np.ndarray) -> str:
        terms = []
        for j, mean in enumerate(center.tolist()):
            difference = self._minus(f"f.f{j}", mean)
            if metric == "absolute":
                terms.append(f"ABS({difference})")
            elif metric == "directions":  # the smallest angle has the largest inner product, for centers of length 1
                terms.append(f"f.f{j} * ({self.literal(mean)})")
            else:
                terms.append(self._if_observed(j, f"({difference}) * ({difference})"))
        return " + ".join(terms)

    def _log_density(self, score: MostProbable, label: int) -> str:
        if score.form in ("full", "tied"):
            squares = [f"f.y{label}_{i} * f.y{label}_{i}" for i in range(self.rule.n_features)]
            return f"{self.literal(score.offset[label])} - {self.literal(0.5)} * ({' + '.join(squares)})"
        terms, ignores = [], self.rule.missing == "ignore"
        for j, (mean, factor) in enumerate(zip(score.means[label], score.column_factors[label], strict=True)):
            y = f"({self._minus(f'f.f{j}', mean)}) * {self.literal(factor)}"
            square = f"({y}) * ({y})"
            if ignores:
                scale = self.literal(score.log_scales[label, j])
                square = self._if_observed(j, f"{scale} - {self.literal(0.5)} * {square}")
            terms.append(square)
        if ignores:
            offset = score.offset[label] - score.log_scales[label].sum()
            return f"{self.literal(offset)} + {' + '.join(terms)}"
        return f"{self.literal(score.offset[label])} - {self.literal(0.5)} * ({' + '.join(terms)})"

    def _rotated(self) -> Iterable[tuple[int, int, str]]:
        """Component, position and value of U'(x - mean), for matrices U."""
        score = self.rule.score
        assert isinstance(score, MostProbable)
        for j in self._candidates():
            factor = score.factor[j] if score.form == "full" else score.factor
            for i in range(self.rule.n_features):
                terms = (
                    f"({self._minus(f'f.f{a}', score.means[j, a])}) * ({self.literal(factor[a, i])})"
                    for a in range(i + 1)
                )
                yield j, i, " + ".join(terms)

    def _if_observed(self, j: int, term: str) -> str:
        if self.rule.missing != "ignore" or j >= len(self.rule.numbers):
            return term
        return f"CASE WHEN f.f{j} IS NULL THEN {self.literal(0.0)} ELSE {term} END"

    def _is_valid(self) -> str:
        """Whether all features are in range, and some of them are observed."""
        limit, n = repr(self.rule.limit), len(self.rule.numbers)
        is_ignored = self.rule.missing == "ignore"
        conditions = [
            f"({f'f.f{j} IS NULL OR ' if is_ignored else ''}f.f{j} BETWEEN -{limit} AND {limit})" for j in range(n)
        ]
        if self.rule.missing == "none":
            firsts = {each.column: j for j, each in reversed([*enumerate(self.rule.indicators, n)])}
            conditions += [f"f.f{j} IS NOT NULL" for j in sorted(firsts.values())]
        if is_ignored and not self.rule.indicators:
            conditions.append(_any(f"f.f{j} IS NOT NULL" for j in range(n)))
        if isinstance(self.rule.score, NearestCenter) and self.rule.score.metric == "directions":
            conditions.append(_any(f"f.f{j} <> {self.literal(0.0)}" for j in range(self.rule.n_features)))
        return f"({' AND '.join(conditions)})"

    # cluster

    def _cluster(self) -> str:
        """The first best score: a score that is not worse than all later ones is the best if no earlier one was."""
        score = self.rule.score
        if isinstance(score, CenterTree):
            return self._leaf(score, 0)
        is_best = "<=" if isinstance(score, NearestCenter) and score.metric != "directions" else ">="
        labels = self._candidates()
        cases = [
            f"WHEN {' AND '.join(f's.s{label} {is_best} s.s{other}' for other in labels[i + 1 :])} THEN {label}"
            for i, label in enumerate(labels[:-1])
        ]
        return f"CASE {' '.join(cases)} ELSE {labels[-1]} END" if cases else str(labels[-1])

    def _leaf(self, tree: CenterTree, node: int) -> str:
        first = tree.children[node]
        if first < 0:
            return str(tree.clusters[node])
        near, far = self._leaf(tree, first), self._leaf(tree, first + 1)
        return f"CASE WHEN s.s{first} <= s.s{first + 1} THEN {near} ELSE {far} END"

    def _candidates(self) -> list[int]:
        """Clusters that a row can have: components of weight 0 are left out."""
        score = self.rule.score
        if not isinstance(score, MostProbable):
            return list(range(self.rule.n_clusters))
        return [int(j) for j in np.flatnonzero(np.isfinite(score.offset))]

    # numbers

    def _minus(self, value: str, number: float) -> str:
        """The difference; two minus signs in a row would start a comment."""
        sign = "+" if math.copysign(1.0, number) < 0 else "-"
        return f"{value} {sign} {self.literal(abs(float(number)))}"

    def literal(self, number: float) -> str:
        return literal_of(float(number), self.dialect)


def literal_of(number: float, dialect: Dialect) -> str:
    """A literal of exactly this double. Without an exponent it would be a decimal in DuckDB."""
    text = repr(number)
    text = text if "e" in text else f"{text.removesuffix('.0')}e0"
    return exact_quotient(number) if dialect is SQLITE and not is_short(text) else text


def exact_quotient(number: float) -> str:
    """The number as an integer times or divided by powers of two: SQLite rounds long decimals."""
    fraction, exponent = math.frexp(number)
    mantissa, exponent = int(fraction * LARGEST_INTEGER), exponent - 53
    while mantissa % 2 == 0:
        mantissa, exponent = mantissa // 2, exponent + 1
    parts, operator = [f"{mantissa}.0"], "*" if exponent > 0 else "/"
    exponent = abs(exponent)
    while exponent > 0:
        power = min(exponent, 53)
        parts.append(f"{operator}{2**power}.0")
        exponent -= power
    return f"({''.join(parts)})"


def is_short(text: str) -> bool:
    """Whether a number has so few digits, and so small an exponent, that every database reads it exactly."""
    digits, _, exponent = text.lstrip("-").partition("e")
    whole, _, decimals = digits.partition(".")
    power = int(exponent) - len(decimals)
    return len((whole + decimals).strip("0")) <= EXACT_DIGITS and abs(power) <= EXACT_POWER


def identifier(name: str) -> str:
    """A quoted name of a column or table."""
    return '"' + name.replace('"', '""') + '"'


def string(value: str) -> str:
    """A quoted text."""
    return "'" + value.replace("'", "''") + "'"


def _list(items: list[str], indent: int) -> str:
    return ",\n".join(" " * indent + item for item in items)


def _any(conditions: Iterable[str]) -> str:
    return f"({' OR '.join(conditions)})"


def _check_size(rule: PredictionRule) -> None:
    score = rule.score
    has_matrices = isinstance(score, MostProbable) and score.form in ("full", "tied")
    if has_matrices and rule.missing == "ignore":
        raise ParameterError(
            f"{rule.estimator} with missing='ignore' and full or tied covariances cannot be exported to SQL, because "
            "every pattern of missing values needs other matrices: export it to Python, or fit diagonal covariances "
            "('VVI'), or fill missing values."
        )
    n_scores = rule.n_clusters * (rule.n_features + 1 if has_matrices else 1)
    n_scores = len(score.centers) if isinstance(score, CenterTree) else n_scores
    if rule.n_features > MAX_COLUMNS or n_scores > MAX_SCORES:
        raise ParameterError(
            f"the model has {rule.n_features:,} columns and {rule.n_clusters:,} clusters, more than one SQL statement "
            f"can have ({MAX_COLUMNS} columns, {MAX_SCORES:,} scores): export it to ONNX or Python."
        )


def _check_names(rule: PredictionRule, dialect: Dialect) -> None:
    texts = (*rule.columns, *(each.value for each in rule.indicators))
    for text in texts:
        if "\0" in text:
            raise ParameterError(
                f"{text!r} contains a null character, which SQL cannot contain: rename it, or export to Python."
            )
    if dialect.ignores_case:
        folded: dict[str, str] = {}
        for name in rule.columns:
            if (other := folded.setdefault(name.lower(), name)) != name:
                raise ParameterError(
                    f"columns {other!r} and {name!r} are the same in {dialect.name}, which ignores case: rename one of "
                    "them, or export to Python."
                )
