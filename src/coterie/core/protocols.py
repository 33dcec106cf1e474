"""The three interfaces of the library: Model (the algorithm), Engine (where it runs), Source (the data)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from coterie.core.stats import Stats

Array = Any  # of any array library; kernels.for_centers selects kernels by its type
Params = Any  # the value that the M-step of a model returns
Memo = Any  # data that a model caches for one part between passes


class Chunk(NamedTuple):
    """Rows that are processed together."""

    X: Array  # (n, d)
    w: Array | None  # (n,) weights; None: 1 for all
    part: int  # number of this part of the source
    y: Array = None  # (n,) or (n, m) additional data of each row, such as its known label; None: nothing
    first: int = 0  # number of the first of these rows in the source; random numbers depend on the number of the row

    @property
    def weights(self) -> Array:
        """The weight of each row (n,)."""
        return np.ones(self.X.shape[0]) if self.w is None else self.w


Part = Callable[[], Chunk]  # loads its chunk in the process that calls it; picklable
Step = Callable[..., Any]  # step(chunk), or step(chunk, memo)


class EStep(partial[Any]):
    """``EStep(model.e_step, params)`` is a step whose memo depends on `params` and the rows, not on earlier memos.

    Earlier memos change the time it takes. So a lost memo is computed again by the last step alone.
    """


class Source(Protocol):
    """The data: rows in parts, whose bounds depend only on the shape of the data."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def engine(self) -> str:
        """The engine that "auto" selects for this data."""

    def parts(self) -> Sequence[Any]: ...
    def pick(self, rows: Any) -> Chunk:
        """A few rows, by index or slice, in this order; in main memory."""

    def gather(self, rows: Any) -> Chunk:
        """Rows, by index or slice, where the engine computes."""

    def subset(self, rows: Any) -> "Source":
        """Many rows, by index, as a new source."""

    def map_rows(self, function: Callable[[Array], Array], engine: "Engine") -> "Source":
        """A source with rows ``function(X)``, of the same shape and dtype; a sparse X keeps its sparsity pattern."""

    def allocate(self, fill: Any, dtype: Any) -> list[Array | None]:
        """An array of `fill`, one value per row, in parts: views of one array, or None if a part creates its own."""

    def join(self, pieces: list[Any]) -> Array:
        """Row-wise results of all parts, joined in the container type of the data."""


@runtime_checkable
class Engine(Protocol):
    """Runs a step on every part. An engine knows nothing about models."""

    def sum(self, step: Step, source: Source) -> Any:
        """The sum of ``step(chunk)`` over all chunks, by `tree_sum`."""

    def scan(self, step: Step, source: Source, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        """Like `sum`, for steps with memos: ``step(chunk, memo) -> stats, memo``.

        The next pass hands each memo to the step of the same part. The memo stays in the process that holds the part.
        A step may modify its memo in place, so an engine that repeats a step passes a copy, or computes the memo again.
        """

    def map(self, step: Step, source: Source, memos: list[Memo] | None = None) -> list[Any]:
        """The results of ``step(chunk)``, or ``step(chunk, memo)``, for every chunk."""


class ClusterEngine(Engine):
    """Base class of engines of other processes, which store the rows."""

    def place(self, source: Source) -> Any:
        """Store the parts of a source in the processes, as long as it exists."""
        raise NotImplementedError

    def release(self, source: Source) -> None:
        """Free the memory that a source uses in the processes; a later pass would place it again."""
        raise NotImplementedError


class Model(Protocol):
    """An algorithm: the E-step computes statistics of rows, the M-step parameters from these. Small and picklable."""

    @property
    def converges(self) -> bool:
        """Whether to warn if a fit reaches `max_iter` before it has converged."""

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Params: ...

    def initial_memos(self, source: Source) -> list[Memo] | None:
        """The memos of all parts before the first pass; None if the model uses none."""

    def e_step(self, params: Params, chunk: Chunk, memo: Memo | None = None) -> tuple[Stats, Memo]: ...

    def m_step(self, params: Params, stats: Any) -> Params: ...

    def repair(self, params: Params, stats: Any, source: Source, engine: Engine, memos: list[Memo]) -> Params:
        """`params`, with new values where they are undefined (an empty cluster); `memos` are those of the last pass."""

    def objective(self, params: Params, stats: Any) -> float:
        """The value that the fit minimises, at `params`; `stats` were computed with the same parameters."""

    def has_converged(
        self, before: Params, after: Params, stats: Any, history: Sequence[float], stretch: float | None
    ) -> bool:
        """Whether the fit can stop after the step from `before` to `after`, which gave `stats` and the last objective.

        In an accelerated fit, `stretch` is the estimated number of plain steps left; otherwise it is None.
        """

    def assign(self, params: Params, chunk: Chunk, memo: Memo | None = None) -> Array:
        """The label of every row; `memo` is that of the last E-step, which used the same parameters."""


# Optional abilities of a model: `isinstance` tells whether it has them.


@runtime_checkable
class Maximizer(Protocol):
    """A model whose negative objective is a quantity that a fit maximises, such as a log-likelihood."""

    @property
    def maximizes(self) -> str:
        """Name of the quantity."""


@runtime_checkable
class SoftAssignment(Protocol):
    """A model with degrees of membership of each row in all clusters (m, k)."""

    def memberships(self, params: Params, chunk: Chunk) -> Array: ...


@runtime_checkable
class Posterior(Protocol):
    """A model with responsibilities: the probability of each component for a row (m, k)."""

    def probabilities(self, params: Params, chunk: Chunk) -> Array: ...


@runtime_checkable
class JointAssignment(Protocol):
    """A model in which the cluster of a row depends on all rows."""

    def labels_at(self, params: Params, rows: Array) -> Array:
        """The clusters of the rows with these indices."""


@runtime_checkable
class SortedComponents(Protocol):
    """A model whose M-step sorts the components by their weights."""

    def order(self, weight: Array) -> Array: ...


@runtime_checkable
class EStepKind(Protocol):
    """A mixture whose E-step may be 'soft', 'hard' or 'stochastic'."""

    @property
    def e_step_kind(self) -> str: ...


@runtime_checkable
class CovarianceForm(Protocol):
    """A model with covariances of the form 'full', 'tied', 'diag' or 'spherical'."""

    @property
    def form(self) -> str: ...


@runtime_checkable
class Conjugate(Protocol):
    """A family with a conjugate prior, so that the evidence of rows has a closed form."""

    prior: Any

    def with_prior(self, prior: Any) -> Any: ...
    def log_evidence(self, stats: Any) -> Any: ...


# Abilities of estimators, of this library and of others.


@runtime_checkable
class FittedRows(Protocol):
    """An estimator that assigns the rows of the fit differently from new ones, and recognises them."""

    def _is_of_fit(self, X: Any, sample_weight: Any) -> bool: ...


@runtime_checkable
class InformationCriteria(Protocol):
    """An estimator with a likelihood, and so with criteria such as BIC."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float: ...
    def bic(self, X: Any, sample_weight: Any = None) -> float: ...


@runtime_checkable
class Traceable(Protocol):
    """An estimator that can record the steps of its fit."""

    def fit_trace(self, X: Any, sample_weight: Any = None, **fit_params: Any) -> Any: ...


@runtime_checkable
class GaussianClusters(Protocol):
    """A fitted estimator whose clusters have means and covariances."""

    covariance_type: str
    means_: Any
    covariances_: Any


@runtime_checkable
class LocationScale(Protocol):
    """Parameters of components that have a location and a scale matrix, such as those of Student's t."""

    location: Any
    scale: Any


@runtime_checkable
class StepSequence(Protocol):
    """A pipeline: steps with names, of which the last is the estimator."""

    steps: Any


def last_step(model: Any) -> Any:
    """The estimator at the end of a pipeline; any other model unchanged."""
    return model.steps[-1][1] if isinstance(model, StepSequence) else model


def is_estimator(value: Any) -> bool:
    """Whether `value` is an estimator or a class of estimators. A table with a column named "fit" is not."""
    return hasattr(value if isinstance(value, type) else type(value), "fit")


def can_predict(estimator: Any, method: str = "predict") -> bool:
    """Whether an estimator has `predict`, or another method; scikit-learn's own may depend on their options."""
    return hasattr(estimator, method)


def parameters_of(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator by name; empty if it does not declare them."""
    return estimator.get_params(deep=False) if hasattr(type(estimator), "get_params") else {}


def takes_series(estimator: Any) -> bool:
    """Whether the rows of an estimator are time series, which may have different lengths."""
    if hasattr(estimator, "max_iter_barycenter"):
        return True
    metric = parameters_of(estimator).get("metric")
    return (metric if isinstance(metric, str) else getattr(metric, "name", None)) == "dtw"
