"""Server-sent events: every open page gets every event."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

KEEP_ALIVE = 15.0  # seconds between comments on a silent connection
MAX_WAITING = 1000  # events of a page that does not read them; then it has to load its state again


class Events:
    """Sends events from any thread to all open pages."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may publish while its thread registers a listener
        self._listeners: dict[asyncio.Queue[str | None], asyncio.AbstractEventLoop] = {}
        self._is_closed = False

    def publish(self, name: str, data: dict[str, Any]) -> None:
        """Send an event; NaN is not allowed in its data."""
        text = f"event: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
        self._send(text)

    def close(self) -> None:
        """Tell all pages that the server stops, and end their connections."""
        with self._lock:
            self._is_closed = True
        self.publish("stopping", {})
        self._send(None)

    async def listen(self) -> AsyncIterator[str]:
        """The events from now on, as text; comments keep a silent connection open."""
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        with self._lock:
            self._listeners[queue] = asyncio.get_running_loop()
            is_closed = self._is_closed
        try:
            yield "retry: 1000\n\n"
            while not is_closed:
                try:
                    text = await asyncio.wait_for(queue.get(), KEEP_ALIVE)
                except TimeoutError:
                    text = ": alive\n\n"
                if text is None or queue.qsize() > MAX_WAITING:
                    return
                yield text
        finally:
            with self._lock:
                self._listeners.pop(queue, None)

    def _send(self, text: str | None) -> None:
        with self._lock:
            listeners = list(self._listeners.items())
        for queue, loop in listeners:
            if not loop.is_closed():
                loop.call_soon_threadsafe(queue.put_nowait, text)
