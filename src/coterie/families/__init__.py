"""Component families: densities, statistics, estimates and samples of one kind of distribution each."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from coterie.core.errors import ParameterError
from coterie.families.family import Family
from coterie.families.linear import ExponentialFamily
from coterie.families.prior import BetaPrior, DirichletPrior, GammaPrior

__all__ = [
    "Bernoulli",
    "BetaPrior",
    "Categorical",
    "DirichletPrior",
    "Exponential",
    "ExponentialFamily",
    "Family",
    "Gamma",
    "GammaPrior",
    "Gaussian",
    "Multinomial",
    "Poisson",
    "Product",
    "StudentT",
    "VonMisesFisher",
    "as_family",
]

_HOME = {  # class: its file; loaded when it is asked for
    "Bernoulli": "bernoulli",
    "Categorical": "categorical",
    "Exponential": "exponential",
    "Gamma": "gamma",
    "Gaussian": "gaussian",
    "Multinomial": "multinomial",
    "Poisson": "poisson",
    "StudentT": "student_t",
    "VonMisesFisher": "von_mises_fisher",
    "Product": "product",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"coterie.families.{_HOME[name]}"), name)
    raise AttributeError(f"module 'coterie.families' has no attribute {name!r}")


def as_family(family: Any) -> Family:
    """The family called `family`, which may be one already."""
    if isinstance(family, Family):
        return family
    named = {home: name for name, home in _HOME.items() if name != "Product"}  # which is made of others
    if isinstance(family, str) and family in named:
        found: Family = getattr(import_module(f"coterie.families.{family}"), named[family])()
        return found
    names = ", ".join(map(repr, sorted(named)))
    raise ParameterError(f"family must be {names} or a coterie.families.Family; got {family!r}")
