"""One thread that executes runs, one after another."""

import queue
import threading
import traceback
from collections.abc import Callable


class Worker:
    """A thread that executes functions in the order in which they were submitted."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="coterie-runs", daemon=True)
        self._thread.start()

    def submit(self, function: Callable[[], None]) -> None:
        self._queue.put(function)

    def stop(self) -> None:
        """End the thread after the function that it executes."""
        self._queue.put(None)

    def _work(self) -> None:
        while (function := self._queue.get()) is not None:
            try:
                function()
            except Exception:  # the next function must run all the same
                traceback.print_exc()
