"""Number the clusters of a fitted estimator in another order, by the rules of what files store of it."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.core.stored import declaration_of
from coterie.distances.series import Series

K = "K"  # the letter of clusters in rules
LABELS = ("labels_", "clusters")  # fields of labels that mixtures and the tree of `BisectingKMeans` do not declare


def renumbered(model: Any, numbers: Array) -> Any:
    """A copy of a fitted estimator in which cluster j has the number ``numbers[j]``; `model` if that is j for all."""
    order = np.argsort(numbers)
    if (order == np.arange(len(order))).all():
        return model
    result, rules = copy(model), {"labels_": "index<K *", **declaration_of(type(model)).rules}  # type: ignore[union-attr]
    rules |= {name: rules["covariances_"] for name in vars(model) if name.startswith("precisions_")}
    is_tied = getattr(vars(model).get("_fitted_model"), "form", "") == "tied"
    vars(result).update(_renumbered_fields(vars(model), rules, order, is_tied))
    if "components_" in vars(model):
        result.components_ = _of_family(model.components_, order)
    return result


def _renumbered_fields(values: Any, rules: Any, order: Array, is_tied: bool) -> dict[str, Any]:
    known = {name: rule for name, rule in rules.items() if name in values}
    return {name: _renumbered(name, values[name], rule, order, is_tied) for name, rule in known.items()}


def _renumbered(name: str, value: Any, rule: str, order: Array, is_tied: bool) -> Any:
    if isinstance(value, list | Series):  # of one series for each cluster
        return value[order] if isinstance(value, Series) else [value[j] for j in order]
    if not isinstance(value, np.ndarray):
        declaration = declaration_of(type(value))
        if declaration is None or not declaration.rules or rule.startswith("<distance"):
            return value
        each = {field: getattr(value, field) for field in declaration.rules}
        fields = _renumbered_fields(each, declaration.rules, order, is_tied)
        if hasattr(value, "parts"):
            fields["parts"] = _of_family(value.parts, order)
        return value._replace(**fields) if hasattr(value, "_replace") else replace(value, **fields)
    rules = [(kind, axes) for kind, *axes in map(str.split, rule.split(" | ")) if len(axes) == value.ndim]
    kind, axes = next((each for each in rules if (K in each[1]) != is_tied), rules[0])
    if kind.endswith(f"<{K}") or name in LABELS:
        value = np.append(np.argsort(order), -1).astype(value.dtype)[value]
    for axis, letter in enumerate(axes):
        value = value.take(order, axis) if letter == K else value
    return value


def _of_family(parts: Any, order: Array) -> Any:
    """Parameters of the components by a family; one for all components, such as a tied covariance, stays."""
    if isinstance(parts, dict):
        return {name: _of_family(part, order) for name, part in parts.items()}
    if isinstance(parts, tuple):
        new = [_of_family(part, order) for part in parts]
        return type(parts)(*new) if hasattr(parts, "_fields") else tuple(new)
    return parts[order] if isinstance(parts, np.ndarray) and len(np.atleast_1d(parts)) == len(order) else parts
