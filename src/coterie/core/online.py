"""The only mini-batch loop: the same models, and statistics that carry over from batch to batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coterie.core.protocols import Chunk, Params
from coterie.core.stats import Stats
from coterie.core.stored import stored


@stored("online.State", params="real K D | <gaussian_mixture.Components> | <mixture.Parameters>", seen="<statistics.*>")
@dataclass(frozen=True)
class State:
    """Where an online fit stands."""

    params: Params
    seen: Stats | None = None  # of all rows so far, as the parameters now are


def step(model: Any, state: State, chunk: Chunk, decay: float = 1.0) -> tuple[State, Any]:
    """The state after one batch, and the batch's statistics at the parameters before it.

    Beside what every model has, `model.carry(before, after, stats)` restates statistics that were taken with the
    parameters `before` as if they had been taken with those the M-step made of them.
    A `decay` below 1 lets old batches fade. A batch without rows leaves the state as it is.
    """
    batch, _ = model.e_step(state.params, chunk)
    if chunk.X.shape[0] == 0:
        return state, batch
    stats = batch if state.seen is None else state.seen.scaled(decay) + batch
    after = model.m_step(state.params, stats)
    return State(after, model.carry(state.params, after, stats)), batch
