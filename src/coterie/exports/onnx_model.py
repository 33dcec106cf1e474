"""A prediction rule as an ONNX model in double precision.

Inputs are `numbers` (rows, numeric columns) and `categories` (rows, categorical columns) of text, if there are any.
The output `cluster` has a label for each row, -1 for a row without a cluster. Names of columns are in the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import coterie
from coterie.errors import ParameterError
from coterie.exports.category_texts import missing_pattern, pattern
from coterie.exports.prediction_rule import DOMAINS, CenterTree, Indicator, MostProbable, PredictionRule

OPSET, IR_VERSION = 20, 9  # of 2023: the first that compares texts with patterns


def as_onnx(rule: PredictionRule) -> bytes:
    """The serialised ONNX model."""
    try:
        import onnx
    except ImportError as error:
        raise ParameterError('to="onnx" needs the package onnx: run pip install "coterie[onnx]".') from error
    rule.check_matrices("ONNX")
    graph = _Graph(onnx)
    label = _label(graph, rule, graph.features(rule))
    graph.add("Where", [graph.valid, label, graph.constant(np.array(-1, np.int64))], output="cluster")
    return graph.model(rule)


class _Graph:
    """Nodes and constants of a model under construction."""

    def __init__(self, onnx: Any):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.valid = ""  # name of the rows that have a cluster (n,)

    def add(self, kind: str, inputs: Sequence[str], output: str = "", n_outputs: int = 1, **attributes: Any) -> str:
        """Add a node, and return the name of its first output."""
        name = output or f"v{len(self.nodes)}"
        outputs = [name, *(f"{name}_{i}" for i in range(1, n_outputs))]
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), outputs, **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Add an array; floats are float64."""
        array = np.asarray(values)
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def features(self, rule: PredictionRule) -> str:
        """Features of the rows (n, d); `valid` is set."""
        parts: list[str] = []
        invalid: list[str] = []
        if rule.numbers:
            parts.append(self._numbers(rule, invalid))
        for j, indicators in enumerate(rule.categories.values()):
            parts.append(self._categories(rule, j, indicators, invalid))
        features = parts[0] if len(parts) == 1 else self.add("Concat", parts, axis=1)
        if rule.is_directional:
            zero = self.add("Equal", [features, self.constant(0.0)])
            invalid.append(self._all(zero))
        total = invalid[0]
        for other in invalid[1:]:
            total = self.add("Or", [total, other])
        self.valid = self.add("Not", [total])
        return features

    def _numbers(self, rule: PredictionRule, invalid: list[str]) -> str:
        values = self._transformed(rule, self._without_codes(rule), invalid)
        if rule.missing == "fill":
            fill = np.array([number.fill for number in rule.numbers], dtype=np.float64)
            values = self.add("Where", [self.add("IsNaN", [values]), self.constant(fill), values])
        shift, spread, weight = (
            np.array([getattr(number, name) for number in rule.numbers]) for name in ("shift", "spread", "weight")
        )
        if shift.any() or (spread != 1.0).any():
            shifted = self.add("Sub", [values, self.constant(shift)])
            values = self.add("Div", [shifted, self.constant(spread)])
        if (weight != 1.0).any():
            values = self.add("Mul", [values, self.constant(weight)])
        in_range = self.add("LessOrEqual", [self.add("Abs", [values]), self.constant(rule.limit)])
        if rule.missing == "ignore":
            is_missing = self.add("IsNaN", [values])
            if not rule.indicators:
                invalid.append(self._all(is_missing))
            in_range = self.add("Or", [in_range, is_missing])
        invalid.append(self._any(self.add("Not", [in_range])))
        return values

    def _without_codes(self, rule: PredictionRule) -> str:
        """Numbers with NaN for codes of missing values."""
        values = "numbers"
        for code in dict.fromkeys(code for number in rule.numbers for code in number.codes):
            columns = self.constant(np.array([code in number.codes for number in rule.numbers]))
            is_code = self.add("And", [self.add("Equal", [values, self.constant(code)]), columns])
            values = self.add("Where", [is_code, self.constant(np.nan), values])
        return values

    def _transformed(self, rule: PredictionRule, numbers: str, invalid: list[str]) -> str:
        """Numbers with logarithms and square roots of some columns."""
        values = numbers
        for name, (minimum, is_accepted) in DOMAINS.items():
            mask = np.array([number.transform == name for number in rule.numbers])
            if not mask.any():
                continue
            bound, columns = self.constant(minimum), self.constant(mask)
            is_low = self.add("Less" if is_accepted else "LessOrEqual", [numbers, bound])
            invalid.append(self._any(self.add("And", [is_low, columns])))
            inputs = self.add("Add", [numbers, self.constant(1.0)]) if name == "log1p" else numbers
            result = self.add("Sqrt" if name == "sqrt" else "Log", [inputs])
            values = self.add("Where", [columns, result, values])
        return values

    def _categories(self, rule: PredictionRule, j: int, indicators: Sequence[Indicator], invalid: list[str]) -> str:
        column = self.add("Gather", ["categories", self.constant(np.array([j]))], axis=1)
        patterns = [pattern(each.value, each.is_exact) for each in indicators]
        has_category = [self.add("RegexFullMatch", [column], pattern=each) for each in patterns]
        if rule.missing == "none":
            invalid.append(self._any(self.add("RegexFullMatch", [column], pattern=missing_pattern())))
        one_hot = self.add("Concat", has_category, axis=1)
        sizes = self.constant(np.array([each.size for each in indicators]))
        return self.add("Mul", [self.add("Cast", [one_hot], to=self.onnx.TensorProto.DOUBLE), sizes])

    def reduce(self, kind: str, values: str, axis: int, keepdims: int = 0) -> str:
        return self.add(kind, [values, self.constant(np.array([axis]))], keepdims=keepdims)

    def _any(self, condition: str) -> str:
        """Whether the condition holds in some column (n,)."""
        counts = self.add("Cast", [condition], to=self.onnx.TensorProto.INT64)
        return self.add("Greater", [self.reduce("ReduceSum", counts, 1), self.constant(np.array(0))])

    def _all(self, condition: str) -> str:
        """Whether the condition holds in every column (n,)."""
        return self.add("Not", [self._any(self.add("Not", [condition]))])

    def columns(self, features: str, d: int) -> list[str]:
        """The columns of the features, each (n, 1)."""
        if d == 1:
            return [features]
        first = self.add("Split", [features, self.constant(np.ones(d, np.int64))], n_outputs=d, axis=1)
        return [first, *(f"{first}_{i}" for i in range(1, d))]

    def model(self, rule: PredictionRule) -> bytes:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        widths = {"numbers": len(rule.numbers), "categories": len(rule.categories)}
        inputs = [
            helper.make_tensor_value_info(name, types.DOUBLE if name == "numbers" else types.STRING, ["n", width])
            for name, width in widths.items()
            if width
        ]
        output = helper.make_tensor_value_info("cluster", types.INT64, ["n"])
        graph = helper.make_graph(self.nodes, "predict", inputs, [output], initializer=self.constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="coterie",
            producer_version=coterie.__version__,
        )
        names = {"numbers": [number.column for number in rule.numbers], "categories": list(rule.categories)}
        helper.set_model_props(
            model, {"estimator": rule.estimator, **{name: json.dumps(value) for name, value in names.items()}}
        )
        self.onnx.checker.check_model(model)
        return model.SerializeToString(deterministic=True)


def _label(graph: _Graph, rule: PredictionRule, features: str) -> str:
    """The cluster of each row (n,), as if all rows had one."""
    score, ignores = rule.score, rule.missing == "ignore"
    if isinstance(score, MostProbable):
        return graph.add("ArgMax", [_log_densities(graph, score, features, ignores)], axis=0, keepdims=0)
    if isinstance(score, CenterTree):
        return _leaf(graph, score, _distances(graph, "squares", score.centers, features, ignores))
    if rule.is_directional:
        features = _unit_rows(graph, features)
    distances = _distances(graph, score.metric, score.centers, features, ignores)
    return graph.add("ArgMin", [distances], axis=1, keepdims=0)


def _distances(graph: _Graph, metric: str, centers: np.ndarray, features: str, ignores_missing: bool) -> str:
    """Distances to all centers (n, k); columns are added in their order, as `predict` does."""
    total = ""
    for column, means in zip(graph.columns(features, centers.shape[1]), centers.T, strict=True):
        difference = graph.add("Sub", [column, graph.constant(means[None])])
        square = metric != "absolute"
        term = graph.add("Mul", [difference, difference]) if square else graph.add("Abs", [difference])
        if ignores_missing:
            term = graph.add("Where", [graph.add("IsNaN", [column]), graph.constant(0.0), term])
        total = graph.add("Add", [total, term]) if total else term
    return total


def _unit_rows(graph: _Graph, features: str) -> str:
    """Rows at unit length; they are divided by their largest value first, so that squares stay in range."""
    largest = graph.reduce("ReduceMax", graph.add("Abs", [features]), 1, keepdims=1)
    scaled = graph.add("Div", [features, largest])
    return graph.add("Div", [scaled, graph.reduce("ReduceL2", scaled, 1, keepdims=1)])


def _log_densities(graph: _Graph, score: MostProbable, features: str, ignores_missing: bool) -> str:
    """Log densities of the components, up to a constant (k, n)."""
    rows = graph.add("Unsqueeze", [features, graph.constant(np.array([0]))])
    difference = graph.add("Sub", [rows, graph.constant(score.means[:, None])])  # (k, n, d)
    offset = score.offset
    if score.has_matrices:
        y = graph.add("MatMul", [difference, graph.constant(score.factor)])
    else:
        y = graph.add("Mul", [difference, graph.constant(score.column_factors[:, None])])
    if ignores_missing:
        is_missing, zero = graph.add("IsNaN", [y]), graph.constant(0.0)
        y = graph.add("Where", [is_missing, zero, y])
        offset = offset - score.log_scales.sum(axis=1)
    squares = graph.reduce("ReduceSumSquare", y, 2)
    half = graph.add("Mul", [squares, graph.constant(0.5)])
    result = graph.add("Sub", [graph.constant(offset[:, None]), half])
    if not ignores_missing:
        return result
    scales = graph.add("Where", [is_missing, zero, graph.constant(score.log_scales[:, None])])
    return graph.add("Add", [result, graph.reduce("ReduceSum", scales, 2)])


def _leaf(graph: _Graph, tree: CenterTree, distances: str) -> str:
    """The leaf of which all decisions agree with the path to it."""
    splits = [node for node, child in enumerate(tree.children) if child >= 0]
    firsts = [tree.children[node] for node in splits]
    leaves = sorted((cluster, node) for node, cluster in enumerate(tree.clusters) if cluster >= 0)
    parents = {child + side: (i, side) for i, child in enumerate(firsts) for side in (0, 1)}
    # A decision is 1 for the second child and 0 for the first: +1 on a path needs 1, -1 needs 0.
    signs, needed = np.zeros((len(splits), len(leaves))), np.zeros(len(leaves))
    for column, (_, leaf) in enumerate(leaves):
        node = leaf
        while node != 0:
            i, side = parents[node]
            signs[i, column] = 1.0 if side else -1.0
            needed[column] += side
            node = splits[i]
    if not splits:
        return graph.add("ArgMin", [distances], axis=1, keepdims=0)
    first, second = (
        graph.add("Gather", [distances, graph.constant(np.array(firsts) + side)], axis=1) for side in (0, 1)
    )
    is_second = graph.add("Cast", [graph.add("Greater", [first, second])], to=graph.onnx.TensorProto.DOUBLE)
    agreement = graph.add("MatMul", [is_second, graph.constant(signs)])
    return graph.add("ArgMax", [graph.add("Sub", [agreement, graph.constant(needed)])], axis=1, keepdims=0)
