"""A client of the app, by plain HTTP."""

from __future__ import annotations

import http.client
import json
import struct
import time
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

SECONDS = 60  # for one request, or one run


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def error(self) -> dict[str, Any]:
        return self.json["error"]

    @property
    def blob(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The header and the arrays of a binary answer."""
        (length,) = struct.unpack("<I", self.data[:4])
        assert (4 + length) % 8 == 0
        header, body = json.loads(self.data[4 : 4 + length]), self.data[4 + length :]
        arrays = {}
        for each in header["arrays"]:
            assert each["offset"] % 8 == 0
            flat = np.frombuffer(body, f"<{each['dtype']}", int(np.prod(each["shape"])), each["offset"])
            arrays[each["name"]] = flat.reshape(each["shape"])
        return header, arrays


class Client:
    """Sends requests as the page does; arguments replace or remove (None) its headers."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token, self.address = port, token, "127.0.0.1"

    def ask(self, method: str, path: str, body: Any = None, **headers: str | None) -> Answer:
        host = f"127.0.0.1:{self.port}"
        sent: dict[str, str | None] = {"Cookie": f"coterie_{self.port}={self.token}", "Host": host}
        if method not in ("GET", "HEAD"):
            sent |= {"Origin": f"http://{host}", "X-Coterie": "1"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.address, self.port, timeout=SECONDS)
        try:
            kept = {name: value for name, value in sent.items() if value is not None}
            connection.request(method, path, data, kept)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str, status: int = 200) -> Answer:
        return self._checked("GET", path, None, status)

    def post(self, path: str, body: Any = None, status: int | None = None) -> Answer:
        return self._checked("POST", path, body, status)

    def delete(self, path: str, status: int = 200) -> Answer:
        return self._checked("DELETE", path, None, status)

    def _checked(self, method: str, path: str, body: Any, status: int | None) -> Answer:
        answer = self.ask(method, path, body)
        expected = (200, 201) if status is None else (status,)
        assert answer.status in expected, (method, path, answer.status, answer.data[:500])
        return answer

    def workspace(self) -> dict[str, Any]:
        until = time.monotonic() + SECONDS
        while not (view := self.get("/api/workspace").json)["ready"] and time.monotonic() < until:
            time.sleep(0.05)
        return view

    def start(self, **request: Any) -> str:
        """Start a run, and return its id."""
        return self.post("/api/runs", request).json["id"]

    def wait(self, run: str) -> dict[str, Any]:
        """The result of a run, when it has ended."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            view = self.get(f"/api/runs/{run}").json
            if view["status"] not in ("queued", "running"):
                return view
            time.sleep(0.02)
        raise AssertionError(f"{run} has not ended: {view}")

    def fit(self, **request: Any) -> dict[str, Any]:
        view = self.wait(self.start(**request))
        assert view["status"] == "done", view["error"]
        return view

    def labels(self, run: str) -> np.ndarray:
        """Labels of the displayed rows; -1: none."""
        _, arrays = self.get(f"/api/runs/{run}/labels").blob
        codes = arrays["labels"].astype(np.int64)
        return np.where(codes == np.iinfo(arrays["labels"].dtype).max, -1, codes)

    def events(self) -> Events:
        """The stream of events from now on."""
        return Events(self)


class Events:
    """An open stream of events: ``next("run", "step")`` waits for an event of one of these names."""

    def __init__(self, client: Client) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=SECONDS)
        cookie = f"coterie_{client.port}={client.token}"
        self._connection.request("GET", "/api/events", headers={"Cookie": cookie})
        self._stream = self._connection.getresponse()
        self._stream.readline()  # the server listens from here on

    def next(self, *names: str) -> tuple[str, dict[str, Any]]:
        name = ""
        while line := self._stream.readline():
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            elif text.startswith("data: ") and name in names:
                return name, json.loads(text.removeprefix("data: "))
        raise AssertionError("the stream has ended")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()
        self._connection.close()
