"""Returns freed memory to the operating system when the server is idle.

A table of a million rows leaves a hundred megabytes of freed memory behind: copies for a map, an answer or a fit. The C
library keeps it for the next allocation. To return it takes milliseconds, too long to do it after every request.
"""

import threading

from coterie.machine import release_memory

SECONDS = 1.0  # without work, after which memory is returned


class IdleMemory:
    """A thread that returns freed memory once after the last call of `used`."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._is_used, self._is_closed = threading.Event(), threading.Event()
        threading.Thread(target=self._work, name="coterie-memory", daemon=True).start()

    def used(self) -> None:
        """Something was computed: return its memory later."""
        self._is_used.set()

    def close(self) -> None:
        self._is_closed.set()
        self._is_used.set()

    def _work(self) -> None:
        while not self._is_closed.is_set():
            self._is_used.wait()
            while self._is_used.is_set():
                self._is_used.clear()
                self._is_closed.wait(self._seconds)
            release_memory()
