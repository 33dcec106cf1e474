"""What is believed of a component before the rows are seen: conjugate priors, as rows seen before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coterie.core.arguments import as_floats
from coterie.core.errors import ParameterError
from coterie.core.stored import stored


class Pseudo(NamedTuple):
    r"""A prior as statistics of rows that were never there: its log density is
    :math:`t_0 \cdot \eta - \nu_0 A(\eta)` up to a constant, and the mode of the posterior is the likeliest parameter
    for the rows and these."""

    weight: np.ndarray | float = 0.0  # (d,) nu_0, or one for all
    sum_t: np.ndarray | float = 0.0  # (p,) t_0


@stored("prior.Gamma")
@dataclass(frozen=True)
class GammaPrior:
    """Gamma density of a rate (Poisson, Exponential): as if `rate` rows had come to `shape` - 1 in all.

    Each is a number, or one a column.
    """

    shape: Any = 1.0
    rate: Any = 0.0

    def __post_init__(self) -> None:
        _check("GammaPrior", "shape", self.shape, above=True)
        _check("GammaPrior", "rate", self.rate, above=False)


@stored("prior.Beta")
@dataclass(frozen=True)
class BetaPrior:
    """Beta density of a probability (Bernoulli): `a` - 1 ones and `b` - 1 zeros seen before.

    Each is a number, or one a column.
    """

    a: Any = 1.0
    b: Any = 1.0

    def __post_init__(self) -> None:
        _check("BetaPrior", "a", self.a, above=True)
        _check("BetaPrior", "b", self.b, above=True)


@stored("prior.Dirichlet")
@dataclass(frozen=True)
class DirichletPrior:
    """Dirichlet density of probabilities (Multinomial, Categorical): `concentration` - 1 of each seen before.

    A number, or one for each word or category.
    """

    concentration: Any = 1.0

    def __post_init__(self) -> None:
        _check("DirichletPrior", "concentration", self.concentration, above=True)


def as_prior(prior: Any, kind: type, default: Any, family: str) -> Any:
    """`prior` if it is of that kind; "default" means `default`."""
    if prior is None or isinstance(prior, kind):
        return prior
    if isinstance(prior, str) and prior == "default":
        return default
    raise ParameterError(f"prior of {family} must be None, 'default' or a {kind.__name__}; got {prior!r}")


def _check(prior: str, name: str, value: Any, above: bool) -> None:
    try:
        numbers = as_floats(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{prior}: {name} must be a number, or one a column; got {value!r}") from None
    if not np.isfinite(numbers).all() or (numbers < 0).any() or (above and (numbers == 0).any()):
        least = "above 0" if above else "of at least 0"
        raise ParameterError(f"{prior}: {name} must be finite and {least}; got {value!r}")
