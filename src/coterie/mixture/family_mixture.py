"""The mixture estimator of any family."""

from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from coterie.base import Summary, callbacks
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.core.arrays import is_sparse
from coterie.core.attachments import detach
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import Powers, Scale, multiplied
from coterie.core.stored import stored
from coterie.errors import ParameterError, ScaleError
from coterie.families import CLASSES, Family, Product, as_family, forms
from coterie.families.frame_columns import product_of
from coterie.mixture import dirichlet_process, parameter_checks, starts
from coterie.mixture.base_mixture import MixtureEstimator
from coterie.mixture.family_em import MixtureEM
from coterie.mixture.gaussian_em import GaussianEM, has_covariances_of_structure
from coterie.mixture.gaussian_mixture import GaussianMixture
from coterie.mixture.history import BoundRecorder

ONLY_AUTO = ("counts_", "moves_", "n_components_")  # attributes of a fit with n_components='auto' alone
ONLY_FIXED = ("_batches", "_state")  # attributes of a fit with a fixed number of components alone
CHUNK_VALUES = 1 << 18  # approximate number of stored values in a chunk of sparse rows


def _is_consistent(model: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether the parameters have the columns of the rows, and scale matrices the shape of their structure."""
    components, family = model["_components"], model["family_"]
    if family.name == "student_t":
        shape = forms.shape(model["_fitted_model"].family.structure, lengths["K"], lengths["D"])
        return components.parts.scale.shape == shape
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
@dataclass(eq=False, repr=False)
class Mixture(MixtureEstimator):
    r"""Mixture of any family of distributions, fitted by EM.

    .. math:: \max_{\pi, \theta} \sum_i w_i \log \sum_k \pi_k p(x_i; \theta_k)

    The E-step computes the posterior probability of each component for each row. The M-step is the estimate of the
    family with these probabilities as weights [1]_. The likelihood never falls. There are families for counts, yes/no
    answers, categories, word counts, directions and tables of mixed columns.

    Do not use it if the rows of a cluster do not follow the family: such a cluster is split into several components.

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
        'soft' weights rows with posterior probabilities (EM). 'hard' assigns each row to its most probable component
        (classification EM). 'stochastic' assigns each row to a random component with these probabilities; the fit then
        runs for `max_iter` iterations.
    init_params : {'auto', 'k-means++', 'random_from_data', 'random'} or array, default='auto'
        Initialisation. 'auto' takes the best of several runs, from random rows and from rows far from each other (by
        their loss of log density). The other names are one such start. Large tables are initialised on a random sample
        of rows. Labels (n,) or responsibilities (n, k) are used as they are. Gaussians are initialised as by
        `GaussianMixture`.
    search : {'auto', 'thorough', 'none'}, default='auto'
        How `init_params='auto'` looks for a start. 'auto' compares a few runs, and more if no two of them agree on the
        best. 'thorough' compares more, and new starts made from the best. 'none' starts from k-means++.
    n_init : int, default=1
        Number of initialisations; the best result is kept.
    prior : None, 'default' or a prior of the family, default=None
        Prior of each component, which replaces that of `family`.
    concentration : float or array (k,), default=1
        Concentration of the Dirichlet prior of the weights; 1 is flat. For 'auto' it is the concentration of the
        Dirichlet process: a larger value gives more components.
    tol : float, default=1e-3
        Tolerance. Iterations stop when the mean log-likelihood of the rows increases by less than `tol`, as in
        scikit-learn. With ``search='thorough'`` or `accelerate`, they stop when the increase still to come, by Aitken's
        estimate, is below `tol` / 200. The mean is weighted, so that the scale of weights does not matter.
    max_iter : int, default=1000
        Maximum number of iterations of each initialisation. 0 returns the initialisation itself.
    accelerate : bool, default=False
        Extrapolate with SQUAREM: the same result in fewer iterations if components overlap. The likelihood never falls.
    missing : {'error', 'ignore'}, default='error'
        Treatment of NaN: raise an error, or leave the column out of the density of that row (for Gaussians and for
        families with independent columns).
    warm_start : bool, default=False
        Initialise with the parameters of the previous fit.
    device, engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    weights_ : array (k,)
        Weights of the components.
    components_ : named tuple of arrays
        Parameters of the family; the first axis is the component. For a `Product`, a dict of these by family name.
    family_ : `coterie.families.Family`
        The family, with properties of the columns that it learned.
    labels_ : array (n,) of int32
        Most probable component of each row, equal to `predict` of the same rows.
    lower_bound_, lower_bounds_, log_likelihood_, n_parameters_, converged_, n_iter_, history_
        As in `GaussianMixture`. For 'auto', `lower_bound_` and `lower_bounds_` are the evidence lower bound of all
        rows, `history_` is a `coterie.mixture.history.BoundHistory`, and `components_` are the most probable
        parameters.
    n_components_, counts_, moves_
        For 'auto': the number of components, their expected numbers of rows, and the splits and merges of the search
        (`coterie.mixture.split_merge_search.Move`).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    An iteration is one pass over the rows. For an exponential family with p statistics it costs about 4 n k p
    operations, two matrix products of blocks that stay in the cache. Responsibilities are never stored.

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

    family: Any = "gaussian"
    _: KW_ONLY
    prior: Any = None
    concentration: Any = 1.0
    _learned: Any = field(init=False)  # the family with properties of the columns, after the rows were opened

    def __post_init__(self) -> None:
        # Only a call can confuse the order, not set_params: so it is checked here, and not in fit.
        if isinstance(self.n_components, Family) or (
            isinstance(self.n_components, str) and self.n_components in CLASSES
        ):
            number = 3 if isinstance(self.family, Family) or self.family in CLASSES else self.family
            raise ParameterError(
                f"the first argument of Mixture is n_components, a whole number or 'auto'; got {self.n_components!r}. "
                f"Put the family second: Mixture({number!r}, {self.n_components!r})"
            )

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
        """Fit a mixture to a table of mixed columns, with a family for each column.

        Text, categories and yes/no columns are Categorical. Whole numbers are Bernoulli if they are zeros and ones;
        Poisson if they are not negative, their mean is below 30 and their variance is at least half of it; and
        otherwise Categorical if there are at most ten distinct values, each five times on average. Other numbers are
        Gaussian. Columns are independent given the component. `predict` and all other methods need frames with the
        same columns. `families_` and the `repr` show the family of each column.

        Parameters
        ----------
        frame : pandas, Polars or Arrow table (n, d)
            The rows.
        n_components : int or 'auto', default=1
            Number of components.
        families : dict or None, default=None
            Column names to families or their names, to override the choice; None leaves a column out.
        missing : {'ignore', 'error'}, default='ignore'
            Treatment of missing values: leave them out of the density of their row, or raise an error.
        sample_weight, known_labels
            As in `fit`.
        **options
            As in `Mixture`.

        Returns
        -------
        Mixture
            The fitted mixture.
        """
        model = cls(n_components, product_of(frame, families), missing=missing, **options)
        if model.verbose:
            for name, family in model.families_.items():
                print(f"{name}: {family}")
        return model.fit(frame, sample_weight=sample_weight, known_labels=known_labels)

    @property
    def families_(self) -> dict[str, str]:
        """The family of each column, for a `Product` of families."""
        family = as_family(self.family)
        if not isinstance(family, Product):
            raise AttributeError("families_ is for a Product of families, such as that of Mixture.from_frame")
        return family.by_name()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, known_labels: Any = None) -> Self:
        if not self._auto:
            return super().fit(X, y, sample_weight, known_labels=known_labels)
        if known_labels is not None:
            raise ParameterError(
                "n_components='auto' does not support known_labels: set n_components to a whole number"
            )
        return self._fit_auto(X, sample_weight)

    fit.__doc__ = MixtureEstimator.fit.__doc__

    partial_fit = available_if(lambda self: not self._auto)(MixtureEstimator.partial_fit)

    # n_components='auto': a Dirichlet process

    @property
    def _auto(self) -> bool:
        return isinstance(self.n_components, str)

    def _fit_auto(self, X: Any, sample_weight: Any) -> Self:
        max_iter = self._check_auto()
        X = self._read(X)
        try:
            source, engine, summary = self._open(X, sample_weight, first=True)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        family = self._learned = self._learned.in_units(1.0, summary.mean, summary.variance)
        rng, store = as_rng(self.random_state), self._store(source, engine)
        if store is not None:
            rng = store.initial_rng(rng)
        options = {"concentration": float(self.concentration), "tol": float(self.tol)}
        model, moves = dirichlet_process.search(family, source, rng, **options)
        for move in moves if self.verbose else ():
            print(f"{move.what}: {move.n_components} components, lower bound {move.lower_bound:.6g}")
        recorder = BoundRecorder(model)
        callback = callbacks(self.callback, self.verbose, recorder)
        result, labels = self._descend(model, source, engine, 1, max_iter, callback, rng, store, recorder)
        self._learn_columns(X, source)
        c, family = result.params, model.family.family
        self._components, self._fitted_model, self.family_ = c, replace(model, start=None), family
        self.n_components_, self.moves_ = len(c.counts), moves
        self.counts_, self.weights_ = np.asarray(c.counts), c.weights.astype(source.dtype)
        self.components_ = family.estimate(c.parts)
        self.n_parameters_ = self.n_components_ - 1 + family.n_parameters(self.n_components_, self.components_)
        self.labels_, self.n_iter_, self.converged_ = labels, result.passes - 1, result.converged
        self.lower_bound_, self.log_likelihood_ = -float(result.objective), float(result.stats.log_likelihood)
        self.history_ = recorder.history(0)
        self.lower_bounds_ = self.history_.lower_bound[1:]
        return self

    def _check_auto(self) -> int:
        """Check the options of 'auto'; return `max_iter`."""
        if self.n_components != "auto":
            raise ParameterError(
                f"n_components must be a whole number of at least 1 or 'auto'; got {self.n_components!r}"
            )
        one_of("missing", self.missing, ("error", "ignore"))
        if self.e_step != "soft":
            raise ParameterError(f"n_components='auto' needs e_step='soft'; got {self.e_step!r}")
        if np.ndim(self.concentration) != 0 or not_negative("concentration", self.concentration) == 0:
            raise ParameterError(
                f"n_components='auto' needs a concentration that is a number above 0; got {self.concentration!r}"
            )
        not_negative("tol", self.tol)
        callbacks(self.callback, self.verbose)
        return whole_number("max_iter", self.max_iter, 0)

    # rows and weights out of range

    @property
    def _groups(self) -> list[tuple[Family, Any]]:
        """The families and their columns: several for a `Product`."""
        family = as_family(self.family)
        return family.families if isinstance(family, Product) else [(family, slice(None))]

    @property
    def _length_columns(self) -> Any:
        indices = np.arange(self.n_features_in_)
        return np.concatenate([indices[:0], *(indices[columns] for family, columns in self._groups if family.powers)])

    @property
    def _has_lengths(self) -> bool:
        return all(family.powers is not None and self._has_relative_prior(family) for family, _ in self._groups)

    def _has_relative_prior(self, family: Family) -> bool:
        """Whether the prior of a family, if it has one, is in units of the rows; n_components='auto' needs one."""
        prior = getattr(family, "prior", None) if self.prior is None else self.prior
        if family.name == "gaussian":
            return prior is None or isinstance(prior, str)
        return prior is None and not self._auto

    @property
    def _counts_rows(self) -> bool:
        return self._auto or super()._counts_rows or as_family(self.family).has_prior

    def _source(self, X: Any, sample_weight: Any) -> Any:
        return super()._source(self._encoded(X), sample_weight)

    def _with_divided_options(self, scale: Scale) -> Self:
        inner = super()._with_divided_options(scale)
        if self._table is not None:  # the divided rows are encoded
            inner.family = _with_table(self.family, None)
        return inner

    def _take_fit(self, inner: Self, X: Any, sample_weight: Any, scale: Scale) -> Self:
        super()._take_fit(inner, X, sample_weight, scale)
        if scale.rows:
            self.components_ = _in_units(self.family_, self.components_, scale)
        if self._table is not None:
            self._learned, self.family_ = (_with_table(each, self._table) for each in (self._learned, self.family_))
        return self

    def _rescale_sums(self, X: Any, sample_weight: Any) -> None:
        if not self._auto:
            super()._rescale_sums(X, sample_weight)
            return
        log_volume = self._log_volume(float(self.counts_.sum()), X, sample_weight)
        self.lower_bound_, self.log_likelihood_ = self.lower_bound_ - log_volume, self.log_likelihood_ - log_volume
        self.history_ = self.history_.rescaled(log_volume)
        self.lower_bounds_ = self.history_.lower_bound[1:]
        # The search uses a random sample of the rows; its volume is that share of the volume of all rows.
        log_volume *= min(1.0, dirichlet_process.SAMPLE_ROWS / len(self.labels_))
        self.moves_ = tuple(move._replace(lower_bound=move.lower_bound - log_volume) for move in self.moves_)

    # any number of components

    @property
    def _sparse(self) -> bool:
        return as_family(self.family).takes_sparse

    @property
    def _name_in_errors(self) -> str:
        return f"Mixture of {type(as_family(self.family)).__name__}"

    def _open_rows(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        source: Any
        source, engine, summary = super()._open_rows(self._encoded(X), sample_weight, first, y)
        rows: Any = getattr(source, "X", None)
        if is_sparse(rows):  # with fewer rows than columns, the statistics of a chunk are larger than the chunk
            n, d = source.shape
            source = replace(source, chunk_rows=max(d, CHUNK_VALUES * n // max(1, len(rows.data))))
        return source, engine, summary

    def _read(self, X: Any) -> Any:
        return X if self._table is not None else super()._read(X)

    def _encoded(self, X: Any) -> Any:
        """A frame of mixed columns, converted to numbers; other inputs unchanged."""
        return X if self._table is None else self._table.encode(X)

    @property
    def _table(self) -> Any:
        """The columns of the frame that the family was built for; None if it was not built for a frame."""
        return self.family.table if isinstance(self.family, Product) else None

    def _learn_columns(self, X: Any, source: Source) -> None:
        super()._learn_columns(self._encoded(X), source)
        detach(self, *(ONLY_FIXED if self._auto else ONLY_AUTO))

    def _prepare_rows(self, source: Source, engine: Engine, first: bool) -> Source:
        """Check the rows for the family, and convert them to the form that the family needs."""
        family, survey = as_family(self.family) if first else self.family_, None
        if first and self.prior is not None:
            family = family.with_prior(self.prior)
        if family.surveys:
            survey = engine.sum(partial(_survey, family), source)
            family.check(survey, getattr(source, "columns", None))
        if first:
            # EM for Gaussians treats missing values in its model, not in the family.
            has_missing = self._allows_missing and (self._auto or family.name != "gaussian")
            self._learned = family = family.learned(survey, has_missing)
            self._width = source.shape[1]
        return source.map_rows(family.translate, engine) if family.translates else source

    def _new_model(self, summary: Summary, dtype: Any, source: Any, engine: Any) -> Any:
        concentration = parameter_checks.concentration(self.concentration, self.n_components)
        family = self._learned.in_units(summary.weight / self.n_components, summary.mean, summary.variance)
        self._learned = family
        if family.name == "gaussian":
            model = self._as_gaussians(family)._model(summary, dtype)
            if np.all(concentration == 1.0):
                return model
            return replace(model, penalty=replace(model.penalty, concentration=concentration))
        return MixtureEM(self.n_components, family, concentration, e_step_kind=self.e_step, tol=float(self.tol))

    def _as_gaussians(self, family: Any) -> GaussianMixture:
        """The equivalent `GaussianMixture`, for a Gaussian family."""
        same = {name: getattr(self, name) for name in ("n_components", "e_step", "tol", "missing")}
        return GaussianMixture(**same, covariance_type=family.structure, reg_covar=family.reg_covar, prior=family.prior)

    def _warm_start(self, model: Any) -> Any:
        is_same = len(self._components.weights) == self.n_components and self.n_features_in_ == self._width
        if isinstance(model, GaussianEM):
            is_same = is_same and getattr(self._fitted_model, "structure", None) == model.structure
        is_same = is_same and self.family_.alike(self._learned)
        self._check_warm_start(is_same, "another family, n_components or columns")
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
        """Sample rows from the mixture (n_samples, d), a frame if the fit was to a frame, and their components."""
        rows, labels = super().sample(n_samples)
        rows = self.family_.restore(rows)
        return rows if self._table is None else self._table.decode(rows), labels

    @property
    def _init_methods(self) -> tuple[str, ...]:  # type: ignore[override]
        return starts.METHODS if as_family(self.family).name == "gaussian" else starts.FAMILY_METHODS


def _survey(family: Family, chunk: Chunk) -> Any:
    return family.survey(chunk.X).in_main_memory()


def _in_units(family: Family, parts: Any, scale: Scale) -> Any:
    """Parameters of components of divided rows, in the units of the rows; those of a `Product` by family."""
    if isinstance(family, Product):
        values = parts.values() if isinstance(parts, dict) else parts
        converted = [_in_units(each, part, scale) for (each, _), part in zip(family.families, values, strict=True)]
        return dict(zip(parts, converted, strict=True)) if isinstance(parts, dict) else tuple(converted)
    powers = {name: Powers(power, 0) for name, power in (family.powers or {}).items()}
    return parts._replace(**multiplied({name: getattr(parts, name) for name in powers}, powers, scale))


def _with_table(family: Any, table: Any) -> Any:
    """The same product for the columns of another table."""
    family = copy(family)
    family.table = table
    return family
