"""The engine for rows on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from traceback import clear_frames
from typing import Any

import torch

from coterie import interrupts
from coterie.core.formatting import format_bytes
from coterie.core.protocols import Memo, Source, Step
from coterie.engines.local import LocalEngine
from coterie.errors import InputError


@dataclass(frozen=True)
class Cuda(LocalEngine):
    """Process one part after the other on the device; meanwhile, copy the next part to it if necessary."""

    def _run(self, step: Step, source: Source, *memos: list[Memo]) -> Iterator[Any]:
        parts = source.parts()
        for part, following, *memo in zip(parts, [*parts[1:], None], *memos, strict=True):
            interrupts.check()
            yield self._step(step, part, following, *memo)

    @staticmethod
    def _step(step: Step, part: Any, following: Any, *memo: Memo) -> Any:
        try:
            chunk = part()
            if following is not None:
                following.start_copy()
            return step(chunk, *memo)
        except torch.OutOfMemoryError as error:
            clear_frames(error.__traceback__)  # so that the memory of their tensors is free
            torch.cuda.empty_cache()
            free, total = torch.cuda.mem_get_info()
            raise InputError(
                f"the memory of the GPU is too small for this step: {format_bytes(free)} of {format_bytes(total)} are "
                "free. End other programs on the GPU, use fewer clusters or float16 rows, or device='cpu'"
            ) from None
