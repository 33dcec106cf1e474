"""The mixture estimator of any family."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from coterie.base import Summary
from coterie.core import loop
from coterie.core.arguments import one_of
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import Powers, multiplied
from coterie.core.stored import stored
from coterie.errors import ParameterError, ScaleError
from coterie.families import CLASSES, Family, Product, as_family
from coterie.families.frame_columns import product_of
from coterie.mixture import family_starts, given, starts
from coterie.mixture.answers import MixtureEstimator
from coterie.mixture.auto import FindsComponents
from coterie.mixture.family_em import MixtureEM
from coterie.mixture.gaussian import GaussianEM, has_covariances_of_structure
from coterie.mixture.mixture import GaussianMixture
from coterie.mixture.search import sound_first

STORED = 1 << 18  # values that a part of sparse rows has about

POWERS = {  # of the unit of the rows, with which parameters grow, of families of lengths
    "gaussian": {"mean": 1, "covariance": 2},
    "student_t": {"location": 1, "scale": 2},
    "exponential": {"rate": -1},
    "gamma": {"rate": -1},
}


def _is_consistent(model: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether the parameters of families that take sparse rows have as many columns as the rows."""
    components, family = model["_components"], model["family_"]
    if not family.takes_sparse:
        return has_covariances_of_structure(model, lengths)
    parts = getattr(components, "parts", ())
    arrays = parts if isinstance(parts, tuple) else getattr(parts, "__dict__", {}).values()
    widths = [array.shape[1] for array in arrays if isinstance(array, np.ndarray) and array.ndim == 2]
    return lengths["D"] in widths and set(widths) <= {1, lengths["D"]}


@stored(
    check=_is_consistent,
    optional="_batches _learned _state _width",
    _components="<mixture.Parameters> | <gaussian_mixture.Components> | <dirichlet_process.Parameters>",
    _fitted_model="<mixture.Model> | <gaussian_mixture.Model> | <dirichlet_process.Model>",
    family_="family",
    weights_="real K",
)
class Mixture(FindsComponents):
    r"""A mixture of any family of distributions, fitted by EM.

    .. math:: \max_{\pi, \theta} \sum_i w_i \log \sum_k \pi_k p(x_i; \theta_k)

    The E-step finds how likely each row is to come from each component, the M-step is the family's own estimate under
    these probabilities [1]_. The likelihood never falls. Counts, yes and no, categories, word counts, directions,
    tables of mixed columns: what a family can fit, this can cluster.

    Do not use it where rows of a cluster do not look like draws of the family: such a cluster is split into several.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. 'auto' estimates it with a Dirichlet process, whose components split and merge as long as
        the evidence lower bound rises. It needs a family with a conjugate prior: Gaussian of structure 'full' or
        'diag', Poisson, Exponential, Bernoulli, Categorical, Multinomial, and products of them. `fit` then ignores
        `init_params`, `n_init`, `accelerate` and `warm_start`, and rejects `known_labels`.
    family : str or `coterie.families.Family`, default='gaussian'
        Distribution of the components: 'bernoulli', 'categorical', 'multinomial', 'poisson' ..., or a family with
        options, such as `Categorical(prior='default')`. See `coterie.families`.
    e_step : {'soft', 'hard', 'stochastic'}, default='soft'
        Posterior probabilities (EM); all to the likeliest component (classification EM); or to a component drawn by
        them (the fit runs for `max_iter` iterations).
    init_params : {'auto', 'k-means++', 'random_from_data', 'random'} or array
        Where to start. 'auto' takes the best of many short runs from rows drawn far from one another (by what log
        density they lose) and at random; the others are one such start. Starts are sought on a sample of the rows where
        these are many. Labels (n,) or responsibilities (n, k) are taken as given. Gaussians start as `GaussianMixture`.
    n_init : int, default=1
        Starts, of which the best is kept.
    prior : optional
        Of each component, in place of the family's own: 'default', or a prior of the family.
    concentration : float or array (k,), default=1
        Of a Dirichlet prior of the weights; 1 is flat. For 'auto' that of the Dirichlet process: more components, the
        larger it is.
    tol : float, default=1e-3
        A fit ends when the log-likelihood still to be gained, by Aitken's estimate, is below `tol` (1 + n / 1000).
    max_iter : int, default=1000
        Maximum number of iterations of each initialisation. 0 returns the initialisation itself.
    accelerate : bool, default=False
        Extrapolate (SQUAREM): the same answer in fewer iterations where components overlap; the likelihood never falls.
    missing : {'error', 'ignore'}, default='error'
        NaN: refuse it, or leave the column out of that row's density, for families whose columns are independent.
    warm_start : bool, default=False
        Start from the last fit.
    engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    weights_ : array (k,)
    components_ : named tuple of arrays
        The family's parameters; the first axis is the component. Of a Product a dict of these, by the families' names.
    family_ : `coterie.families.Family`
        The family, with what it learned of the columns.
    labels_ : array (n,) of int32
        Always what `predict` says of the same rows.
    lower_bound_, lower_bounds_, log_likelihood_, n_parameters_, converged_, n_iter_, history_
        As in `GaussianMixture`. For 'auto', `lower_bound_` and `lower_bounds_` are the evidence lower bound of all
        rows, `history_` is a `coterie.mixture.variational.BoundHistory`, and `components_` are the most probable
        parameters.
    n_components_, counts_, moves_
        For 'auto': how many components there are, their rows in expectation, and the splits and merges that led there
        (`coterie.mixture.moves.Move`).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    An iteration is one pass over the rows: for an exponential family of p statistics about 4 n k p operations, two
    matrix products of blocks that stay in the cache. Responsibilities are never stored.

    References
    ----------
    .. [1] A. P. Dempster, N. M. Laird & D. B. Rubin (1977), Maximum likelihood from incomplete data via the EM
       algorithm, J. Royal Statistical Society B 39, 1-38. https://doi.org/10.1111/j.2517-6161.1977.tb01600.x

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import Mixture
    >>> X = np.array([[0, 9], [1, 8], [0, 11], [7, 1], [8, 0], [6, 2]])
    >>> model = Mixture(2, "poisson", random_state=0).fit(X)
    >>> sorted(model.components_.rate.round(2).tolist())
    [[0.33, 9.33], [7.0, 1.0]]
    >>> model.predict([[1, 10], [9, 1]]).tolist() == model.labels_[[0, 3]].tolist()
    True
    """

    def __init__(
        self,
        n_components=1,
        family="gaussian",
        *,
        e_step="soft",
        init_params="auto",
        n_init=1,
        prior=None,
        concentration=1.0,
        tol=1e-3,
        max_iter=1000,
        accelerate=False,
        missing="error",
        warm_start=False,
        engine="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
        checkpoint=None,
    ):
        # Only a call can confuse the order, not set_params: so it is checked here, and not in fit.
        if isinstance(n_components, Family) or (isinstance(n_components, str) and n_components in CLASSES):
            number = 3 if isinstance(family, Family) or family in CLASSES else family
            raise ParameterError(
                f"the first argument of Mixture is n_components, a whole number or 'auto'; got {n_components!r}. "
                f"Put the family second: Mixture({number!r}, {n_components!r})"
            )
        self.n_components = n_components
        self.family = family
        self.e_step = e_step
        self.init_params = init_params
        self.n_init = n_init
        self.prior = prior
        self.concentration = concentration
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.missing = missing
        self.warm_start = warm_start
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        n_components: int = 1,
        *,
        families: dict[str, Any] | None = None,
        missing: str = "ignore",
        sample_weight: Any = None,
        known_labels: Any = None,
        **options: Any,
    ) -> Self:
        """A mixture fitted to a table of mixed columns (pandas, Polars, Arrow), each with a family of its own.

        Text, categories and yes/no are Categorical. Whole numbers are Bernoulli if they are zeros and ones; Poisson if
        they are not negative, their mean is below 30 and their variance at least half of it; and else Categorical if
        there are at most ten different ones, each five times on average. Other numbers are Gaussian. Columns are
        independent given the component. `predict` and all else take frames with the same columns; `families_` and the
        `repr` say which column got which family.

        Parameters
        ----------
        frame : table (n, d)
        n_components : int, default=1
        families : dict, optional
            Column names to families, or their names, where the choice should be another; None leaves a column out.
        missing : {'ignore', 'error'}, default='ignore'
            A value that is missing drops out of its row, or is an error.
        sample_weight, known_labels
            As in `fit`.
        **options
            As in `Mixture`.
        """
        model = cls(n_components, product_of(frame, families), missing=missing, **options)
        if model.verbose:
            for name, family in model.families_.items():
                print(f"{name}: {family}")
        return model.fit(frame, sample_weight=sample_weight, known_labels=known_labels)

    @property
    def families_(self) -> dict[str, str]:
        """The family of each column, where columns have their own."""
        family = as_family(self.family)
        if not isinstance(family, Product):
            raise AttributeError("families_ is for a Product of families, such as Mixture.from_frame makes")
        return family.by_name()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, known_labels: Any = None) -> Self:
        if not self._auto:
            return super().fit(X, y, sample_weight, known_labels=known_labels)
        if known_labels is not None:
            raise ParameterError("n_components='auto' takes no known_labels: set n_components to a whole number")
        return self._fit_auto(X, sample_weight)

    fit.__doc__ = MixtureEstimator.fit.__doc__

    @available_if(lambda self: not self._auto)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, known_labels: Any = None) -> Self:
        return super().partial_fit(X, y, sample_weight, known_labels=known_labels)

    partial_fit.__doc__ = MixtureEstimator.partial_fit.__doc__

    # rows

    @property
    def _has_lengths(self) -> bool:
        family = as_family(self.family)
        return family.name in POWERS and getattr(family, "prior", None) is None

    def _fit_rescaled(self, error: ScaleError, X: Any, sample_weight: Any, **more: Any) -> Self:
        super()._fit_rescaled(error, X, sample_weight, **more)
        if self._scale.rows:
            parts, powers = self.components_, POWERS[self.family_.name]
            arrays = {name: getattr(parts, name) for name in powers}
            changed = multiplied(arrays, {name: Powers(power, 0) for name, power in powers.items()}, self._scale)
            self.components_ = parts._replace(**changed)
        return self

    @property
    def _sparse(self) -> bool:
        return as_family(self.family).takes_sparse

    @property
    def _counts_rows(self) -> bool:
        return super()._counts_rows or as_family(self.family).has_prior

    @property
    def _name_in_errors(self) -> str:
        return f"Mixture of {type(as_family(self.family)).__name__}"

    def _open_rows(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        source, engine, summary = super()._open_rows(self._coded(X), sample_weight, first, y)
        rows = getattr(source, "X", None)
        if hasattr(rows, "indptr"):  # parts by what is stored; with fewer rows than columns, statistics would be larger
            n, d = source.shape
            source = replace(source, chunk_rows=max(d, STORED * n // max(1, len(rows.data))))
        return source, engine, summary

    def _coded(self, X: Any) -> Any:
        """A frame of mixed columns as one of numbers; other rows as they are."""
        return X if self._table is None else self._table.encode(X)

    @property
    def _table(self) -> Any:
        """What is known of the frame that the family was made for, if it was."""
        return self.family.table if isinstance(self.family, Product) else None

    def _learn_columns(self, X: Any, source: Source) -> None:
        super()._learn_columns(self._coded(X), source)

    def _prepare_rows(self, source: Source, engine: Engine, first: bool) -> Source:
        """Rows that the family takes, as it wants them."""
        family = self._asked_family() if first else self.family_
        if family.surveys:
            survey = engine.sum(partial(_survey, family), source)
            family.check(survey, getattr(source, "columns", None))
        if first:
            has_missing = self._allows_missing and (
                self._auto or family.name != "gaussian"
            )  # whose model has its own way with them
            family = family.learned(survey if family.surveys else None, has_missing)
            self._learned, self._width = family, source.shape[1]
        return source.map_rows(family.translate, engine) if family.translates else source

    def _asked_family(self) -> Family:
        family = as_family(self.family)
        return family if self.prior is None else family.with_prior(self.prior)

    # how the parts come together

    def _model(self, summary: Summary | None = None, dtype: Any = np.float64) -> Any:
        if summary is None:
            return self._fitted_model
        concentration = given.concentration(self.concentration, self.n_components)
        if self._learned.name == "gaussian":
            model = self._as_gaussians(self._learned)._model(summary, dtype)
            told = np.any(concentration != 1.0)
            return replace(model, penalty=replace(model.penalty, concentration=concentration)) if told else model
        family = self._learned.in_units(summary.weight / self.n_components, summary.mean, summary.variance)
        return MixtureEM(self.n_components, family, concentration, e_step_kind=self.e_step, tol=float(self.tol))

    def _as_gaussians(self, family: Any) -> GaussianMixture:
        """The estimator of Gaussians alone that this one is with that family."""
        return GaussianMixture(
            self.n_components,
            covariance_type=family.structure,
            e_step=self.e_step,
            reg_covar=family.reg_covar,
            prior=family.prior,
            tol=self.tol,
            missing=self.missing,
        )

    def _start(self, model: Any, X: Any, sample_weight: Any, rows: int, known: Any) -> Any:
        if self.warm_start and hasattr(self, "_components"):
            return self._warm_start(model)
        start = self.init_params if known is None or known.min() < 0 else known  # nothing to seek if all are known
        if isinstance(start, str):
            return starts.Start(start) if isinstance(model, GaussianEM) else family_starts.FamilyStart(start)
        return self._from_responsibilities(model, X, sample_weight, rows, start)

    def _warm_start(self, model: Any) -> Any:
        same = len(self._components.weights) == self.n_components and self.n_features_in_ == self._width
        if isinstance(model, GaussianEM):
            same = same and getattr(self._fitted_model, "structure", None) == model.structure
        if not same or not self.family_.alike(self._learned):
            raise ParameterError(
                "warm_start cannot go on from a fit with another family, n_components or columns: set warm_start=False"
            )
        return self._components._replace(reseeds=0, events=())

    def _publish(self, model: Any, c: Any, dtype: Any) -> None:
        self._components, self._fitted_model = c, replace(model, start=None)
        self.family_ = self._learned
        self.weights_ = c.weights.astype(dtype)
        k = self.n_components
        if isinstance(model, GaussianEM):
            self.components_ = self.family_.params(c.means, c.covariances, model.form)
            free = k * c.means.shape[1] + model.structure.n_parameters(*c.means.shape)
        else:
            self.components_, free = model.family.shown(c.parts), model.family.n_parameters(k, c.parts)
        self.n_parameters_ = k - 1 + free

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Rows drawn from the mixture (n_samples, d), and the component of each; of a frame, a frame."""
        rows, labels = super().sample(n_samples)
        rows = self.family_.restore(rows)
        return rows if self._table is None else self._table.decode(rows), labels

    @staticmethod
    def _rank(model: Any, rows: int, found: loop.Fit) -> Any:
        if isinstance(model, GaussianEM):
            return sound_first(model, rows, found.params), found.objective
        return found.objective

    def _check_options(self) -> tuple[int, int]:
        if isinstance(self.init_params, str):
            gaussian = as_family(self.family).name == "gaussian"
            one_of("init_params", self.init_params, starts.METHODS if gaussian else family_starts.METHODS)
        return super()._check_options()


def _survey(family: Family, chunk: Chunk) -> Any:
    return family.survey(chunk.X)
