"""Who may talk to the server: requests with the cookie of its token, from its own page, under its own name."""

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HTTP = 80  # the port of addresses without one
SAFE_METHODS = ("GET", "HEAD")
HEADER = "x-coterie"  # a page of another origin cannot set it without the permission of the server
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}

# The page itself asks for the page: after a redirection of another page, or of a file, browsers leave the cookie out.
ENTER = '<!doctype html><meta http-equiv="refresh" content="0; url=/"><link rel="icon" href="data:,">'


class Guard:
    """Middleware that answers requests of other pages, other users and other host names with an error."""

    def __init__(self, app: Application, token: str, host: str, port: int, on_entry: Callable[[], None]) -> None:
        self.app, self.token, self.port, self.on_entry = app, token, port, on_entry
        self.cookie = f"coterie_{port}"  # browsers send cookies to all ports of a host
        self.any_address = host in ("0.0.0.0", "::")
        names = (socket.gethostname(), socket.getfqdn()) if self.any_address else (host,)
        self.names = {_address(name) or name.lower() for name in ("127.0.0.1", "localhost", *names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # there are no WebSockets

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in extra if each[0] not in present)]
            await send(message)

        response = self._answer(scope)
        await (response or self.app)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """An error, or the cookie in exchange for the token; None if the request is allowed."""
        headers, method = Headers(scope=scope), scope["method"]
        host = headers.get("host", "")
        if not self._is_own_host(host):
            return _error(421, "This server answers only under its own address. Use the address that it printed.")
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if scope["path"] == "/" and method == "GET" and tokens is not None:
            if not hmac.compare_digest(tokens[0].encode(), self.token.encode()):
                return _error(401, "The token is wrong. Use the address that the server printed when it started.")
            self.on_entry()
            response = HTMLResponse(ENTER)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
            return response
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        if not hmac.compare_digest(cookie.encode(), self.token.encode()):
            return _error(401, "This page has no access. Open the address that the server printed when it started.")
        if method not in SAFE_METHODS:
            if headers.get("origin") != f"http://{host}":
                return _error(403, "Requests of other pages are rejected: the Origin is not that of this server.")
            if headers.get(HEADER) != "1":
                return _error(403, "Requests without the header X-Coterie are rejected.")
        return None

    def _is_own_host(self, host: str) -> bool:
        """Whether the name is that of this server; a page that rebinds its DNS name to this machine has another."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port or HTTP
        except ValueError:
            return False
        if parts.netloc != host or "@" in host or port != self.port:
            return False
        address = _address(name)
        return (address or name) in self.names or (self.any_address and address is not None)


def _address(text: str) -> str | None:
    """An address in numbers as browsers write it, without brackets; None for a name."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "field": None}}, status)
