"""The app in this process, and requests drawn from what it declares: valid ones, and ones that are changed."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

from coterie.app.events import Events
from coterie.app.request_types import RequestType, request_types
from coterie.app.routes import application
from coterie.app.schema import Either, Entries, Fields, Many, Number, Text, Type, Value
from coterie.app.session_loader import SessionLoader
from coterie.app.state_types import CLUSTER_NAME, COLOR, LABEL, RUN_ID
from fuzz.draw import Draw
from fuzz.finding import LawBroken, require

TOKEN, PORT = "token", 80
ROWS = 40
TABLE = "x,y,kind,{}\n" + "".join(f"{i % 7},{i * i % 11 or ''},{'abc'[i % 3]},{i}\n" for i in range(ROWS))
PATTERNS = {
    RUN_ID.pattern: ("r1", "r2", "r3", "r999"),
    LABEL.pattern: ("0", "1", "2", "7"),
    COLOR.pattern: ("#000000", "#aBcDeF"),
    CLUSTER_NAME.pattern: ("", "1", "two words", "é✓👍", "x" * 80, "<b>", "a\nb"),
}
TEXTS = (
    "x",
    "y",
    "kind",
    "{}",
    "-x",
    "cluster",
    "a",
    "",
    "t.csv",
    "../t.csv",
    "/etc/passwd",
    "é✓👍",
    "a,b",
    "%00",
    "_proto__",
)
DEEP = json.loads("[" * 500 + "]" * 500)
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 2**31, 2**64, 10**290, 1.5, 1e308, float("nan"), float("inf"), "", "0", "00", "٣",
    "-1", "1e9", "nan", "r1", "r٣", "r1/../r2", "\ud83d", "a\udc00b", "\x00", "x" * 5000, "9" * 4400, [], [[]], {},
    {"": {}}, {"\ud83d": 1}, ["r1", "r1"], [1, 1], [0, 0.5], DEEP,
)  # fmt: skip
BODIES = (
    b"",
    b"[" * 100_000,
    b"{" * 1000,
    b'{"k": ' + b"9" * 5000 + b"}",
    b"\xff\xfe",
    b"null",
    b'{"a": 1, "a": 2}',
    b"\x00",
)


@dataclass(frozen=True)
class AppRequest:
    method: str
    path: str  # as the address has it, with its query
    body: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.path[:300]} {self.body[:300]!r}"


@dataclass(frozen=True)
class Answer:
    status: int
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class App:
    """A server without a socket, whose workspaces are in `state`."""

    def __init__(self, state: Path, folder: Path) -> None:
        self.loader = SessionLoader(Events(), folder, state, None)
        self.loader.start()
        self.session = self.loader.session()
        self.application = application(self.loader, self.loader.events, TOKEN, "127.0.0.1", PORT, lambda: None)

    def ask(self, request: AppRequest) -> Answer:
        """The answer, which must be a result or an error in words, and never a bug."""
        answer = asyncio.run(self._ask(request))
        if answer.status >= 400:
            message = answer.json["error"]["message"]
            require(answer.status < 500, f"{request}: {answer.status} {message}")
            require(message.endswith((".", "?", "!")) and len(message) < 2000, f"{request}: {message[:3000]!r}")
        return answer

    def get(self, path: str) -> Answer:
        return self.ask(AppRequest("GET", path, b""))

    def post(self, path: str, body: Any) -> Answer:
        return self.ask(AppRequest("POST", path, body if isinstance(body, bytes) else json.dumps(body).encode()))

    def workspace(self) -> Any:
        answer = self.get("/api/workspace")
        require(answer.status == 200, f"GET /api/workspace: {answer.data[:500]!r}")
        return answer.json

    def wait(self) -> None:
        """Wait until all runs have ended."""
        done = threading.Event()
        self.session.worker.submit(done.set)
        require(done.wait(120), "the runs have not ended after two minutes")

    def close(self) -> None:
        self.session.cancel_runs()
        self.wait()
        self.loader.close()

    async def _ask(self, request: AppRequest) -> Answer:
        path, _, query = request.path.partition("?")
        cookie = f"coterie_{PORT}={TOKEN}"
        names = {"host": "127.0.0.1", "origin": "http://127.0.0.1", "x-coterie": "1", "cookie": cookie}
        headers = [(name.encode(), value.encode()) for name, value in names.items()]
        scope = {
            "type": "http", "method": request.method, "path": unquote(path), "raw_path": path.encode(),
            "query_string": query.encode(), "headers": headers,
            "scheme": "http", "server": ("127.0.0.1", PORT), "http_version": "1.1", "root_path": "",
        }  # fmt: skip
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        try:
            await self.application(scope, receive, send)
        except Exception as error:
            raise LawBroken(f"{request}: {type(error).__name__}: {error}") from error
        return Answer(sent[0]["status"], b"".join(message.get("body", b"") for message in sent))


def drawn_request(draw: Draw) -> AppRequest:
    """A request that the app declares; half of them are changed somewhere."""
    types = request_types(ROWS)
    method, path = draw.one_of(sorted(types))
    type_, is_changed = types[method, path], draw.happens(0.5)
    address = drawn(type_.address, draw)
    address |= {name: drawn(each, draw) for name, each in type_.address.of.items() if f"{{{name}}}" in path}
    if is_changed and draw.happens(0.4):
        address = changed(address, draw)
        address = address if isinstance(address, dict) else {}
    return AppRequest(method, _path(path, address), _body(type_, draw, is_changed))


def _body(type_: RequestType, draw: Draw, is_changed: bool) -> bytes:
    if type_.body is None or isinstance(type_.body, bytes):
        return draw.one_of((b"", b"\x07", b"x,y\n1,2\n3,4\n5,7\n", b"\xff" * 10, b"PK\x05\x06" + bytes(18)))
    if is_changed and draw.happens(0.2):
        return draw.one_of(BODIES)
    value = drawn(type_.body, draw)
    return json.dumps(changed(value, draw) if is_changed else value).encode()


def _path(path: str, address: dict[str, Any]) -> str:
    query: list[tuple[str, str]] = []
    for name, value in address.items():
        texts = [str(each) for each in value[:20]] if isinstance(value, list) else [str(value)]
        texts = [text.encode("utf-8", "replace").decode()[:5000] for text in texts]
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(texts[0] if texts else "", safe=""))
        elif texts and all(text.isdecimal() for text in texts):
            query.append((name, ",".join(texts)))
        else:
            query += [(name, text) for text in texts]
    return path.replace("{", "%7B").replace("}", "%7D") + (f"?{urlencode(query, errors='replace')}" if query else "")


def drawn(type_: Type, draw: Draw) -> Any:
    """A value of a type."""
    match type_:
        case Value():
            return None if type_.type is type(None) else draw.happens(0.5)
        case Number():
            least, most = max(type_.least, -10), min(type_.most, draw.one_of((5, 5, 50, 10**6)))
            value = draw.integer(int(least), int(max(least, most)))
            return value if type_.whole else value * draw.one_of((1, 0.5, 1e-9))
        case Text():
            texts = type_.among or PATTERNS.get(type_.pattern) or TEXTS
            return draw.one_of(tuple(text for text in texts if len(text) <= type_.most))
        case Many():
            items = [drawn(type_.of, draw) for _ in range(draw.integer(type_.least, min(type_.most, type_.least + 3)))]
            return list(range(len(items))) if type_.is_set else items
        case Entries():
            return {drawn(type_.names, draw): drawn(type_.of, draw) for _ in range(draw.integer(0, 3))}
        case Fields():
            names = [name for name in type_.of if name in type_.required or draw.happens(0.5)]
            names = [draw.one_of(tuple(type_.of))] if type_.is_choice else names
            return {name: drawn(type_.of[name], draw) for name in names}
        case Either():
            return drawn(draw.one_of(type_.of), draw)


def changed(value: Any, draw: Draw) -> Any:
    """The value, with something else in one place."""
    if isinstance(value, dict) and value and draw.happens(0.8):
        name = draw.one_of(tuple(value))
        if draw.happens(0.2):
            return {**value, draw.one_of(("", "x", "\ud83d", "r1", "__proto__", "00")): draw.one_of(HOSTILE)}
        if draw.happens(0.1):
            return {key: each for key, each in value.items() if key != name}
        return {**value, name: changed(value[name], draw)}
    if isinstance(value, list) and value and draw.happens(0.8):
        i = draw.integer(0, len(value) - 1)
        return [*value[:i], changed(value[i], draw), *value[i + 1 :]]
    return draw.one_of(HOSTILE)
