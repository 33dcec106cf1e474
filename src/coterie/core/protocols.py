"""The three axes of the library: what (Model), where (Engine), from where (Source)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from coterie.core.stats import Stats

Array = Any  # of any array library; kernels.for_centers selects by it
Params = Any  # whatever a model's M-step returns
Memo = Any  # what a model remembers of one part from pass to pass


class Chunk(NamedTuple):
    """Rows that are computed on together."""

    X: Array  # (n, d)
    w: Array | None  # (n,) weights; None: 1 for all
    part: int  # which part of the source this is; it seeds whatever is random in it
    y: Array = None  # (n,) or (n, k) what is known of each row's cluster; None: nothing


Part = Callable[[], Chunk]  # loads its chunk where it is called; picklable
Step = Callable[..., Any]  # step(chunk), or step(chunk, memo)


class Source(Protocol):
    """From where: rows in parts whose bounds depend on the shape of the data alone."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def engine(self) -> str:
        """The engine that "auto" means for this data."""

    def parts(self) -> Sequence[Any]: ...
    def pick(self, rows: Any) -> Chunk:
        """A few rows, given by number or slice, in this order."""

    def subset(self, rows: Any) -> Source:
        """Many rows, given by number, as a source of their own."""

    def changed(self, function: Callable[[Array], Array], engine: Engine) -> Source:
        """The same with rows ``function(X)`` in place of X, of the same shape and type; a sparse X keeps its places."""

    def room(self, fill: Any, dtype: Any) -> list[Array | None]:
        """An array of `fill`, one value a row, in parts: views of one array, or None where a part makes its own."""

    def join(self, pieces: list[Any]) -> Array:
        """Row-wise results of the parts, in the container of the data."""


class Engine(Protocol):
    """Where: takes a step to every part. It never sees a model."""

    def sum(self, step: Step, source: Source) -> Any:
        """The sum of ``step(chunk)`` over all chunks, by `tree_sum`."""

    def scan(self, step: Step, source: Source, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        """Like `sum` for steps that remember: ``step(chunk, memo) -> stats, memo``.

        A memo comes back to its part and stays where the part lives. The step may write to the memo it is given, so an
        engine that could repeat a step hands out a copy.
        """

    def map(self, step: Step, source: Source, memos: list[Memo] | None = None) -> list[Any]:
        """``step(chunk)``, or ``step(chunk, memo)``, of every chunk."""


class Model(Protocol):
    """What: the E-step turns rows into statistics, the M-step statistics into parameters. Small and picklable."""

    @property
    def converges(self) -> bool:
        """Whether a fit that ends without having settled is worth a warning."""

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Params: ...

    def begin(self, source: Source) -> list[Memo] | None:
        """What there is to remember of each part before the first pass; None if that is nothing."""

    def e_step(self, params: Params, chunk: Chunk, memo: Memo | None = None) -> tuple[Stats, Memo]: ...

    def m_step(self, params: Params, stats: Any) -> Params: ...

    def repair(self, params: Params, stats: Any, source: Source, engine: Engine, memos: list[Memo]) -> Params:
        """`params`, with what the statistics left undefined (an empty cluster) put right; memos are the last pass's."""

    def objective(self, params: Params, stats: Any) -> float:
        """What the fit makes small, at the parameters the statistics were taken with: these."""

    def settled(
        self, before: Params, after: Params, stats: Any, history: Sequence[float], stretch: float | None
    ) -> bool:
        """Whether the step from `before` to `after`, which gave `stats` and the last objective, may be the last.

        Where every other step is extrapolated, `stretch` is how many plain steps seem to be left; else it is None.
        """

    def assign(self, params: Params, chunk: Chunk, memo: Memo | None = None) -> Array:
        """The cluster of every row; `memo` is that of the last E-step with the same parameters."""
