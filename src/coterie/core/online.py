"""One step of mini-batch EM: the models of the batch loop, with statistics summed over batches."""

from dataclasses import dataclass
from typing import Any

from coterie.core.protocols import Chunk, Params
from coterie.core.stored import stored


@stored("online.State", params="real K D | <gaussian_mixture.Components> | <mixture.Parameters>", seen="<statistics.*>")
@dataclass(frozen=True)
class State:
    """The state of an online fit."""

    params: Params
    seen: Any = None  # statistics of all rows so far, relative to `params`; None before the first batch


def step(model: Any, state: State, chunk: Chunk, decay: float = 1.0) -> tuple[State, Any]:
    """The state after one batch, and the statistics of the batch at the parameters before it.

    The model needs one more method: `model.carry(before, after, stats)` converts statistics relative to the parameters
    `before` to statistics relative to `after`.
    With `decay` < 1, older batches have less weight. An empty batch does not change the state.
    """
    batch, _ = model.e_step(state.params, chunk)
    return state if chunk.X.shape[0] == 0 else add(model, state, batch, decay), batch


def add(model: Any, state: State, batch: Any, decay: float = 1.0) -> State:
    """The state after a batch with these statistics."""
    stats = batch if state.seen is None else state.seen.scaled(decay) + batch
    after = model.m_step(state.params, stats)
    return State(after, model.carry(state.params, after, stats))
