"""Families of mixture components: distributions with their densities, statistics, estimates and samples."""

from importlib import import_module
from typing import Any

from coterie.core.lazy import attach
from coterie.errors import ParameterError
from coterie.families.exponential_family import ExponentialFamily
from coterie.families.family import Family
from coterie.families.prior import BetaPrior, DirichletPrior, GammaPrior

_HOME = {  # class: its module, which is imported at first use
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
__all__ = [*_HOME, "BetaPrior", "DirichletPrior", "ExponentialFamily", "Family", "GammaPrior", "as_family"]
CLASSES = {module: name for name, module in _HOME.items() if name != "Product"}  # a Product needs its groups

__getattr__ = attach(__name__, {name: f"{__name__}.{module}" for name, module in _HOME.items()})


def as_family(family: Any) -> Family:
    """Convert the name of a family to a `Family`; a `Family` is returned unchanged.

    Parameters
    ----------
    family : str or Family
        Such as 'poisson', or ``Poisson()``.

    Returns
    -------
    Family

    Examples
    --------
    >>> from coterie.families import as_family
    >>> as_family("poisson")
    Poisson()
    """
    if isinstance(family, Family):
        return family
    if isinstance(family, str) and family in CLASSES:
        return getattr(import_module(f"coterie.families.{family}"), CLASSES[family])()
    names = ", ".join(map(repr, sorted(CLASSES)))
    raise ParameterError(f"family must be {names} or a coterie.families.Family; got {family!r}")
