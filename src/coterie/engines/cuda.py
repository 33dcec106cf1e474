"""The engine for rows on one or several GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from traceback import clear_frames
from typing import Any

import torch

from coterie import interrupts, machine
from coterie.core.formatting import format_bytes
from coterie.core.protocols import Memo, Source, Step
from coterie.engines.local import LocalEngine
from coterie.errors import InputError


@dataclass(frozen=True)
class Cuda(LocalEngine):
    """Process the parts of each device one after the other; meanwhile, copy the next part to it if necessary.

    Several devices work at the same time, with one thread each. Results are in the order of the parts, so sums do not
    depend on which device is faster.
    """

    def _run(self, step: Step, source: Source, *memos: list[Memo]) -> Iterator[Any]:
        parts = [(part, *memo) for part, *memo in zip(source.parts(), *memos, strict=True)]
        n_devices = min(len(source.devices), len(parts))  # type: ignore[attr-defined]
        if n_devices == 1:
            yield from self._run_on_one(step, parts)
            return
        lanes = [(step, parts[i::n_devices]) for i in range(n_devices)]
        results = machine.run_in_threads(lambda *lane: list(self._run_on_one(*lane)), lanes, n_devices)
        for i in range(len(parts)):
            yield results[i % n_devices][i // n_devices]

    def _run_on_one(self, step: Step, parts: list[Any]) -> Iterator[Any]:
        for (part, *memo), following in zip(parts, [*parts[1:], None], strict=True):
            interrupts.check()
            yield self._step(step, part, following, *memo)

    @staticmethod
    def _step(step: Step, part: Any, following: Any, *memo: Memo) -> Any:
        try:
            with torch.cuda.device(part.device) if part.device.type == "cuda" else nullcontext():
                chunk = part()
                if following is not None:
                    following[0].start_copy()
                return step(chunk, *memo)
        except torch.OutOfMemoryError as error:
            clear_frames(error.__traceback__)  # so that the memory of their tensors is free
            torch.cuda.empty_cache()
            free, total = torch.cuda.mem_get_info()
            raise InputError(
                f"the memory of the GPU is too small for this step: {format_bytes(free)} of {format_bytes(total)} are "
                "free. End other programs on the GPU, use fewer clusters or float16 rows, or device='cpu'"
            ) from None
