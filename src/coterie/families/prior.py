"""Conjugate priors of component parameters, as statistics of pseudo-observations."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from coterie.core.arguments import as_numbers
from coterie.core.stored import stored
from coterie.errors import ParameterError


class Pseudo(NamedTuple):
    r"""A conjugate prior, as statistics of pseudo-observations.

    Its log density is :math:`t_0 \cdot \eta - \nu_0 A(\eta)` up to a constant. The posterior mode is the
    maximum-likelihood estimate for the rows and the pseudo-observations together.
    """

    weight: np.ndarray | float = 0.0  # (d,) nu_0, or one number for all columns
    sum_t: np.ndarray | float = 0.0  # (p,) t_0


@stored("prior.Gamma")
@dataclass(frozen=True)
class GammaPrior:
    """Gamma prior of the rates of Poisson and Exponential.

    For Poisson it is equivalent to `rate` additional rows with the sum `shape` - 1; for Exponential, to `shape` - 1
    additional rows with the sum `rate`.

    Parameters
    ----------
    shape : float or array (d,), default=1.0
        Shape of the Gamma density, above 0; one number, or one per column.
    rate : float or array (d,), default=0.0
        Rate of the Gamma density, at least 0; one number, or one per column.

    Examples
    --------
    >>> from coterie.families import GammaPrior, Poisson
    >>> Poisson(prior=GammaPrior(shape=3, rate=2)).fit([[1], [3]]).rate_.tolist()
    [1.5]
    """

    shape: Any = 1.0
    rate: Any = 0.0

    def __post_init__(self) -> None:
        _check("GammaPrior", "shape", self.shape, above=True)
        _check("GammaPrior", "rate", self.rate, above=False)


@stored("prior.Beta")
@dataclass(frozen=True)
class BetaPrior:
    """Beta prior of the probabilities of Bernoulli, equivalent to `a` - 1 additional ones and `b` - 1 zeros.

    Parameters
    ----------
    a, b : float or array (d,), default=1.0
        Parameters of the Beta density, above 0; one number, or one per column.

    Examples
    --------
    >>> from coterie.families import Bernoulli, BetaPrior
    >>> Bernoulli(prior=BetaPrior(2, 2)).fit([[1], [1]]).probability_.tolist()
    [0.75]
    """

    a: Any = 1.0
    b: Any = 1.0

    def __post_init__(self) -> None:
        _check("BetaPrior", "a", self.a, above=True)
        _check("BetaPrior", "b", self.b, above=True)


@stored("prior.Dirichlet")
@dataclass(frozen=True)
class DirichletPrior:
    """Dirichlet prior of the probabilities of Multinomial and Categorical.

    It is equivalent to `concentration` - 1 additional counts of each word or category.

    Parameters
    ----------
    concentration : float or array, default=1.0
        Concentration of the Dirichlet density, above 0; one number, or one per word or category.

    Examples
    --------
    >>> from coterie.families import DirichletPrior, Multinomial
    >>> Multinomial(prior=DirichletPrior(2)).fit([[2, 0]]).probability_.tolist()
    [0.75, 0.25]
    """

    concentration: Any = 1.0

    def __post_init__(self) -> None:
        _check("DirichletPrior", "concentration", self.concentration, above=True)


def as_prior(prior: Any, kind: type, default: Any, family: str) -> Any:
    """Check that `prior` is None or of this kind; "default" means `default`."""
    if prior is None or isinstance(prior, kind):
        return prior
    if isinstance(prior, str) and prior == "default":
        return default
    raise ParameterError(f"prior of {family} must be None, 'default' or a {kind.__name__}; got {prior!r}")


def log_gamma_size(shape: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """The log normalising constants of Gamma densities."""
    return special.gammaln(shape) - shape * np.log(rate)


def _check(prior: str, name: str, value: Any, above: bool) -> None:
    numbers = as_numbers(f"{prior}: {name}", value, "a number, or one per column")
    if not np.isfinite(numbers).all() or (numbers < 0).any() or (above and (numbers == 0).any()):
        bound = "> 0" if above else ">= 0"
        raise ParameterError(f"{prior}: {name} must be finite and {bound}; got {value!r}")
