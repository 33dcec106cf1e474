"""A prediction rule as one SELECT statement.

The cluster is a scalar subquery in layers: features of the row `t`, scores of the features, and a CASE that selects the
first best score. Scores are sums over the features in order. A layer adds only some of the terms, because databases
limit the depth of an expression, and their optimisers are slow for long ones. Every column of the table is referred to
as ``t."name"``, so that no name can be taken for text or for a column of another layer.
"""

from __future__ import annotations

import math
import re

import numpy as np

import coterie
from coterie.core.formatting import count
from coterie.errors import ParameterError
from coterie.exports.category_texts import missing_words, number_keys
from coterie.exports.prediction_rule import (
    DOMAINS,
    CenterTree,
    Indicator,
    MostProbable,
    NearestCenter,
    Number,
    PredictionRule,
)
from coterie.exports.sql_dialects import BY_NAME, Dialect, identifier, literal_of, string
from coterie.preparation.category_meaning import meaning

MAX_COLUMNS = 1500  # SQLite limits the columns of a query to 2000
MAX_SCORES = 1900
MAX_MATRIX = 60  # columns of a mixture with full or tied covariances
FUNCTIONS = {"log": "LN({})", "log1p": "LN(1e0 + {})", "sqrt": "SQRT({})"}  # by transform
PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)  # text that databases read as a number


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
        _check_readings(rule)

    def statement(self, table: str) -> str:
        source = ".".join(map(identifier, table.split(".")))
        query = self._features()
        if self.rule.has_matrices:
            query = self._query([*self._kept(0), *self._rotated()], query)
        n = self.rule.n_features
        for start in range(0, n, self.dialect.terms):
            stop = min(n, start + self.dialect.terms)
            query = self._query([*self._kept(stop), *self._sums(start, stop), *self._checks(start, stop)], query)
        is_valid = "s.valid AND s.present" if self._needs_one else "s.valid"
        cluster = f"CASE WHEN {is_valid} THEN {self._cluster()} END"
        subquery = f"SELECT {cluster}\nFROM (\n{query}\n) AS s"  # not indented: names may contain line breaks
        return f"{self._comment()}SELECT t.*, (\n{subquery}\n) AS cluster\nFROM {source} AS t\n"

    def _comment(self) -> str:
        reasons = [POLICIES[self.rule.missing], "a value is infinite"]
        if self.rule.is_directional:
            reasons.append("all values are 0")
        return (
            f"-- Clusters of {self.rule.estimator} with {count(self.rule.n_clusters, 'cluster')}, for "
            f"{self.dialect.name}. Written by coterie {coterie.__version__}.\n"
            f"-- cluster is NULL where {' or '.join(filter(None, reasons))}.\n"
        )

    # features

    def _features(self) -> str:
        """The query of the features ``f0``, ``f1``, …."""
        numbers = [f"{self._number(number)} AS f{j}" for j, number in enumerate(self.rule.numbers)]
        columns = list(self.rule.categories)
        if not columns:
            return self._query(numbers)
        kept = [f"f.f{j} AS f{j}" for j in range(len(numbers))]
        cells = [self._cell(i, column) for i, column in enumerate(columns)]
        keys = [self._key(i) for i in range(len(columns))]
        first = len(numbers)
        indicators = [
            f"{self._indicator(columns.index(each.column), each)} AS f{first + j}"
            for j, each in enumerate(self.rule.indicators)
        ]
        source = self._query([*kept, *keys], self._query([*numbers, *cells]))
        return self._query([*kept, *indicators], source)

    def _query(self, columns: list[str], source: str = "") -> str:
        tail = f"\nFROM (\n{source}\n) AS f" if source else ""
        return "SELECT\n" + ",\n".join(f"  {column}" for column in columns) + tail + self.dialect.fence

    def _number(self, number: Number) -> str:
        value = self._value(number)
        if number.shift or number.spread != 1.0:
            value = f"({self._minus(value, number.shift)}) / {self.literal(number.spread)}"
        return value if number.weight == 1.0 else f"{value} * {self.literal(number.weight)}"

    def _value(self, number: Number) -> str:
        """The transformed value of a numeric column as a double; missing values are filled, or NULL."""
        column = f"t.{identifier(number.column)}"
        text = self._text(column)
        fill = "NULL" if number.fill is None else self.literal(number.fill)
        values: dict[float | None, list[str]] = {value: [] for value in (None, 0.0, 1.0)}
        for word, each in number.words.items():
            values[each] += [string(word)] + [string(word.upper())] * (not word.isascii())
        words = {value: f"LOWER({text}) IN ({', '.join(each)})" for value, each in values.items() if each}
        is_word = "".join(f" WHEN {words[value]} THEN {self.literal(value)}" for value in (0.0, 1.0) if value in words)
        if self.dialect.has_nan:
            is_word = f" WHEN {words[None]} THEN NULL{is_word}" if words else ""
            source = f"CAST({column} AS {self.dialect.text})" if words else column  # a boolean has no cast to a number
            value = f"CAST({source} AS DOUBLE PRECISION)"
            value = f"CASE{is_word} ELSE {value} END" if is_word else value
            for code in (*map(self.literal, number.codes), "CAST('NaN' AS DOUBLE PRECISION)"):
                value = f"NULLIF({value}, {code})"
            value = self._transformed(number.transform, value)
            return value if number.fill is None else f"COALESCE({value}, {fill})"
        # In SQLite any column can contain text, and a cast of text that is not a number is 0.
        value = f"CAST({column} AS DOUBLE PRECISION)"
        is_missing = [f"{column} IS NULL", f"{column} = ''", *([words[None]] if words else [])]
        is_missing += [f"{value} IN ({', '.join(map(self.literal, number.codes))})"] * bool(number.codes)
        is_number = [f"typeof({column}) IN ('integer', 'real')", f"{column} = CAST({column} AS NUMERIC)"]
        is_number += [words[value] for value in (0.0, 1.0) if value in words]
        value = self._transformed(number.transform, f"CASE{is_word} ELSE {value} END" if is_word else value)
        return (
            f"CASE WHEN {' OR '.join(is_missing)} THEN {fill} WHEN {' OR '.join(is_number)} THEN {value} ELSE 9e999 END"
        )

    def _text(self, column: str) -> str:
        """The text of a cell without blanks around it."""
        return f"TRIM(CAST({column} AS {self.dialect.text}), {self.dialect.blanks})"

    def _transformed(self, transform: str, value: str) -> str:
        """A function of the value; infinity if the value has none, so that the row has no cluster."""
        if not transform:
            return value
        minimum, is_accepted = DOMAINS[transform]
        invalid = "CAST('Infinity' AS DOUBLE PRECISION)" if self.dialect.has_nan else "9e999"
        bound = f"{value} {'<' if is_accepted else '<='} {self.literal(minimum)}"
        return f"CASE WHEN {bound} THEN {invalid} ELSE {FUNCTIONS[transform].format(value)} END"

    def _cell(self, i: int, column: str) -> str:
        """The text of a cell: as it is (``r``), without blanks (``c``), with truth values as numbers (``v``)."""
        column = f"t.{identifier(column)}"
        text = self._text(column)
        number = f"CASE LOWER({text}) WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END"
        cell = f"CAST({column} AS {self.dialect.text}) AS r{i}, {text} AS c{i}, {number} AS v{i}"
        # SQLite writes 15 digits of a number only, so that it is compared as it is.
        return (
            f"{cell}, CASE WHEN typeof({column}) = 'real' THEN {column} END AS n{i}" if self.dialect.is_sqlite else cell
        )

    def _key(self, i: int) -> str:
        """The columns of a cell with the key (``k``) of a number: zeros at the end of a fraction do not count."""
        position = f"{self.dialect.find}(LOWER(f.v{i}) || 'e', 'e')"
        mantissa, exponent = f"SUBSTR(f.v{i}, 1, {position} - 1)", f"SUBSTR(LOWER(f.v{i}), {position})"
        zeros = f"WHEN {mantissa} LIKE '%.%' THEN RTRIM({mantissa}, '0')"
        key = f"CASE WHEN {mantissa} LIKE '%.' THEN NULL {zeros} ELSE {mantissa} END || {exponent}"
        names = ("r", "c", "n") if self.dialect.is_sqlite else ("r", "c")
        return ", ".join([*(f"f.{name}{i} AS {name}{i}" for name in names), f"{key} AS k{i}"])

    def _indicator(self, i: int, each: Indicator) -> str:
        value, zero = meaning(each.value), self.literal(0.0)
        if each.is_exact:
            condition = f"f.r{i} = {string(each.value)}"
        elif isinstance(value, str):
            condition = f"f.c{i} = {string(value)}"
        else:
            condition = f"f.k{i} IN ({', '.join(map(string, number_keys(value)))})"
            if self.dialect.is_sqlite and math.isfinite(float(value)):
                condition = f"(f.n{i} IS NULL AND {condition}) OR f.n{i} = {self.literal(float(value))}"
        is_value = f"WHEN {condition} THEN {self.literal(each.size)} ELSE {zero}"
        if self.rule.missing == "none":
            words = ", ".join(map(string, missing_words()))
            return f"CASE WHEN f.c{i} IS NULL OR LOWER(f.c{i}) IN ({words}) THEN NULL {is_value} END"
        return f"CASE {is_value} END"

    # scores

    def _sums(self, start: int, stop: int) -> list[str]:
        """Sums of the terms of these features, and those of the layer before, for all clusters."""
        score, columns = self.rule.score, []
        for label in self._candidates():
            total = " + ".join(self._term(label, j) for j in range(start, stop))
            if start > 0:
                total = f"f.s{label} + {total}"
            if isinstance(score, MostProbable):
                if self._adds_scales and start == 0:
                    total = f"{self.literal(score.offset[label] - score.log_scales[label].sum())} + {total}"
                elif not self._adds_scales and stop == self.rule.n_features:
                    total = f"{self.literal(score.offset[label])} - {self.literal(0.5)} * ({total})"
            columns.append(f"{total} AS s{label}")
        return columns

    def _term(self, label: int, j: int) -> str:
        """The term of feature `j` in the score of a cluster, or of a node of a tree."""
        score, feature = self.rule.score, f"f.f{j}"
        if self.rule.has_matrices:
            return f"f.y{label}_{j} * f.y{label}_{j}"
        if isinstance(score, MostProbable):
            y = f"({self._minus(feature, score.means[label, j])}) * {self.literal(score.column_factors[label, j])}"
            if not self._adds_scales:
                return f"({y}) * ({y})"
            term = f"{self.literal(score.log_scales[label, j])} - {self.literal(0.5)} * ({y}) * ({y})"
            return self._if_observed(j, term)
        mean = float(score.centers[label, j])
        difference = self._minus(feature, mean)
        if isinstance(score, NearestCenter) and score.metric == "absolute":
            return f"ABS({difference})"
        if self.rule.is_directional:
            return f"{feature} * ({self.literal(mean)})"  # the smallest angle, because centers have length 1
        return self._if_observed(j, f"({difference}) * ({difference})")

    def _rotated(self) -> list[str]:
        """Values ``y`` of U'(x - mean), for matrices U: of component `label`, position `i`."""
        score, columns = self.rule.score, []
        assert isinstance(score, MostProbable)
        for label in self._candidates():
            factor = score.factor[label] if score.form == "full" else score.factor
            for i in range(self.rule.n_features):
                terms = (
                    f"({self._minus(f'f.f{j}', score.means[label, j])}) * ({self.literal(factor[j, i])})"
                    for j in range(i + 1)
                )
                columns.append(f"{' + '.join(terms)} AS y{label}_{i}")
        return columns

    def _kept(self, start: int) -> list[str]:
        """Columns that later layers need: features from `start` on, and their ``y``."""
        names = [f"f{j}" for j in range(start, self.rule.n_features)]
        if start > 0 and self.rule.has_matrices:
            names += [f"y{label}_{j}" for label in self._candidates() for j in range(start, self.rule.n_features)]
        return [f"f.{name} AS {name}" for name in names]

    def _if_observed(self, j: int, term: str) -> str:
        if self.rule.missing != "ignore" or j >= len(self.rule.numbers):
            return term
        return f"CASE WHEN f.f{j} IS NULL THEN {self.literal(0.0)} ELSE {term} END"

    def _checks(self, start: int, stop: int) -> list[str]:
        """Whether these features are valid, and whether one of them is present, if that is needed."""
        valid = " AND ".join([*(["f.valid"] if start else []), *(f"({self._is_valid(j)})" for j in range(start, stop))])
        if not self._needs_one:
            return [f"{valid} AS valid"]
        present = "IS NOT NULL" if self.rule.missing == "ignore" else f"<> {self.literal(0.0)}"
        conditions = [*(["f.present"] if start else []), *(f"f.f{j} {present}" for j in range(start, stop))]
        return [f"{valid} AS valid", f"({' OR '.join(conditions)}) AS present"]

    def _is_valid(self, j: int) -> str:
        limit = repr(self.rule.limit)
        if j >= len(self.rule.numbers):
            return f"f.f{j} IS NOT NULL"
        in_range = f"f.f{j} BETWEEN -{limit} AND {limit}"
        return f"f.f{j} IS NULL OR {in_range}" if self.rule.missing == "ignore" else in_range

    @property
    def _adds_scales(self) -> bool:
        """Whether the constants of a density are added column by column, because values may be missing."""
        return self.rule.missing == "ignore"

    @property
    def _needs_one(self) -> bool:
        """Whether a row needs a value that is not missing, or not 0."""
        return self.rule.is_directional or (self.rule.missing == "ignore" and not self.rule.indicators)

    # cluster

    def _cluster(self) -> str:
        """The first best score: a score that is not worse than all later ones is the best if no earlier one was."""
        score = self.rule.score
        if isinstance(score, CenterTree):
            return self._leaf(score, 0)
        is_best = "<=" if isinstance(score, NearestCenter) and not self.rule.is_directional else ">="
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
        """Clusters or nodes that have a score: components of weight 0 are left out, and so is the root of a tree."""
        score = self.rule.score
        if isinstance(score, CenterTree):
            return list(range(1, len(score.centers)))
        if isinstance(score, NearestCenter):
            return list(range(len(score.centers)))
        return [int(j) for j in np.flatnonzero(np.isfinite(score.offset))]

    # numbers

    def _minus(self, value: str, number: float) -> str:
        """The difference; two minus signs in a row would start a comment."""
        sign = "+" if math.copysign(1.0, number) < 0 else "-"
        return f"{value} {sign} {self.literal(abs(float(number)))}"

    def literal(self, number: float) -> str:
        return literal_of(float(number), self.dialect)


def _check_size(rule: PredictionRule) -> None:
    score = rule.score
    rule.check_matrices("SQL")
    n_scores = rule.n_clusters * (rule.n_features + 1 if rule.has_matrices else 1)
    n_scores = len(score.centers) if isinstance(score, CenterTree) else n_scores
    limit = MAX_MATRIX if rule.has_matrices else MAX_COLUMNS
    n_cells = 0 if rule.has_matrices else len(rule.numbers) + 4 * len(rule.categories)  # of a layer with texts
    n_columns = max(rule.n_features, n_cells)
    if n_columns > limit or n_scores > MAX_SCORES:
        raise ParameterError(
            f"SQL of the model has {n_columns:,} columns and {rule.n_clusters:,} clusters, more than a statement "
            f"can have ({limit:,} columns, {MAX_SCORES:,} scores): export it to ONNX or Python."
        )


def _check_names(rule: PredictionRule, dialect: Dialect) -> None:
    texts = (*rule.columns, *(each.value for each in rule.indicators))
    for text in texts:
        if "\0" in text:
            raise ParameterError(
                f"{text!r} contains a null character, which SQL cannot contain: rename it, or export to Python."
            )
    if "" in rule.columns:
        raise ParameterError("a column has no name, which SQL cannot express: rename it, or export to Python.")
    if dialect.ignores_case:
        folded: dict[str, str] = {}
        for name in rule.columns:
            if (other := folded.setdefault(name.lower(), name)) != name:
                raise ParameterError(
                    f"columns {other!r} and {name!r} are the same in {dialect.name}, which ignores case: rename one of "
                    "them, or export to Python."
                )


def _check_readings(rule: PredictionRule) -> None:
    """Reject numbers that are written for people, such as ``158,84 €``: SQL would need the rules of `coterie fit`."""
    for number in rule.numbers:
        reading = number.reading
        if reading is None or reading.kind != "number":
            continue
        if reading.unit or reading.decimal != "." or (reading.example and not PLAIN.fullmatch(reading.example.strip())):
            raise ParameterError(
                f"column {number.column!r} is read from text such as {reading.example!r}, which SQL cannot read: store "
                "it as numbers and fit again, or export to ONNX or Python, which take numbers. Or use coterie predict."
            )
