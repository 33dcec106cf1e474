"""The classes that a file may contain. No other class is written or read."""

import re
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from sklearn.base import BaseEstimator

from coterie.algorithms import ESTIMATORS
from coterie.core.stored import CLASSES, Declaration, declaration_of
from coterie.errors import ModelFileError

PACKAGES = (
    "core",
    "density",
    "distances",
    "families",
    "hierarchy",
    "kmeans",
    "medoids",
    "mixture",
)  # whose classes are stored
_PREPROCESSING = {  # transformers, of scikit-learn but for one: module, private attributes, rules
    "SimpleImputer": ("sklearn.impute", ("_fill_dtype", "_fit_dtype"), {"statistics_": "float D"}),
    "StandardScaler": (
        "sklearn.preprocessing", (), dict.fromkeys(("mean_", "scale_", "var_"), "none | real D"),
    ),
    "MinMaxScaler": ("sklearn.preprocessing", (), dict.fromkeys(("min_", "scale_"), "real D")),
    "ColumnReader": ("coterie.preparation.column_reader", (), {}),
    "RobustScaler": ("sklearn.preprocessing", (), dict.fromkeys(("center_", "scale_"), "none | real D")),
}  # fmt: skip
PREPROCESSING = tuple(_PREPROCESSING)
PIPELINE = "Pipeline"
_OF_SKLEARN = _PREPROCESSING | {PIPELINE: ("sklearn.pipeline", (), {})}
PRIVATE = frozenset({"_exponents", "_n_features_out", "_sklearn_output_config"})  # attributes of any estimator
_PUBLIC = re.compile(r"[a-z][a-z0-9_]*_")

BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")  # of NumPy
LEGACY_BIT_GENERATOR = "MT19937"  # that of RandomState
SPARSE = ("csr_array", "csr_matrix", "csc_array", "csc_matrix")
DTYPES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")


def class_of(tag: str) -> type | None:
    """The class with this tag; None if there is none."""
    if tag in ESTIMATORS:
        import_module(ESTIMATORS[tag])  # and with it most classes that it stores
    for package in PACKAGES:
        if tag in CLASSES:
            break
        _import_modules(package)
    return CLASSES.get(tag)


@cache
def _import_modules(package: str) -> None:
    home = import_module(f"coterie.{package}")
    for module in iter_modules(home.__path__):
        import_module(f"{home.__name__}.{module.name}")


def model_name(model: Any) -> str | None:
    """The tag of the class of an estimator; None if files cannot contain it."""
    kind, name = type(model), type(model).__name__
    if name in _OF_SKLEARN:
        return name if model_class(name) is kind else None
    declaration = declaration_of(kind)
    return declaration.tag if declaration is not None and issubclass(kind, BaseEstimator) else None


def model_class(name: str) -> type | None:
    """The class of estimators with this tag; None if there is none."""
    if name in _OF_SKLEARN:
        return getattr(import_module(_OF_SKLEARN[name][0]), name)
    kind = class_of(name)
    return kind if kind is not None and issubclass(kind, BaseEstimator) else None


def model_declaration(name: str) -> Declaration:
    """The declaration of an estimator that files can contain."""
    if name in _OF_SKLEARN:
        _, optional, rules = _OF_SKLEARN[name]
        return Declaration(name, rules, None, optional, None, in_checkpoints=False)
    kind: Any = class_of(name)
    declaration: Any = declaration_of(kind)
    return declaration


def can_be_state(attribute: str, name: str, kind: type) -> bool:
    """Whether an estimator of that name can have this attribute after a fit; attributes of its class are excluded."""
    declaration = model_declaration(name)
    is_private = attribute in PRIVATE or attribute in declaration.rules or attribute in declaration.optional
    return (is_private or _PUBLIC.fullmatch(attribute) is not None) and not hasattr(kind, attribute)


def check_steps(steps: list[tuple[str, Any]]) -> None:
    """Reject a Pipeline unless it is an estimator of coterie after transformers that files can contain."""
    before = [type(step).__name__ for _, step in steps[:-1] if not (step is None or step == "passthrough")]
    last = type(steps[-1][1]).__name__ if steps else "nothing"
    if last not in ESTIMATORS or not set(before) <= set(PREPROCESSING):
        raise ModelFileError(
            f"a Pipeline must end in an estimator of coterie, after {', '.join(PREPROCESSING)}; "
            f"its steps are {', '.join([*before, last])}"
        )
