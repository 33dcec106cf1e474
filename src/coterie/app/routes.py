"""Addresses of the server: each checks a request, calls a function in a thread, and renders the answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from importlib import import_module
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from coterie.app.events import Events
from coterie.app.security import Guard
from coterie.app.session_loader import SessionLoader

BINARY = "application/octet-stream"
TABLE_HEADER = "x-coterie-table"  # the id of the table that a page shows
OPENING = ("/api/open", "/api/upload", "/api/paste", "/api/workspace/open")  # whatever table a page shows

Handler = Callable[[Request], Awaitable[Response]]
Render = Callable[[Any], Response]


class TooLarge(Exception):
    """A request is larger than its limit."""

    def __init__(self, limit: int, field: str | None) -> None:
        super().__init__(f"The content is larger than {limit >> 20:,} MiB: open it as a file below the start folder.")
        self.field = field


def application(
    loader: SessionLoader, events: Events, token: str, host: str, port: int, on_entry: Callable[[], None]
) -> Any:
    """The ASGI application, with its guard; `on_entry` is called when a browser has come with the token."""
    routes = Routes(loader, events)
    app = Starlette(routes=routes.all(), exception_handlers={Exception: _bug, 404: _unknown, 405: _unknown})
    return Guard(app, token, host, port, on_entry)


class Routes:
    """The handlers of all addresses. What their requests contain is declared in `request_types`."""

    def __init__(self, loader: SessionLoader, events: Events) -> None:
        self.loader, self.events = loader, events
        self._page: str | None = None

    def all(self) -> list[Route]:
        def route(path: str, method: str, handler: Handler) -> Route:
            return Route(path, _explained(handler), methods=[method])

        def view(path: str, method: str, name: str, render: Render = JSONResponse) -> Route:
            return route(path, method, partial(self.answer, path, _function(name), render))

        def change(path: str, method: str, name: str) -> Route:
            return route(path, method, partial(self.answer, path, self._change(_function(name)), JSONResponse))

        return [
            route("/", "GET", self.page),
            route("/api/ping", "GET", self.ping),
            route("/api/events", "GET", self.listen),
            route("/api/workspace", "GET", self.workspace),
            change("/api/open", "POST", "session.open"),
            route("/api/upload", "POST", self.upload),
            change("/api/paste", "POST", "session.open_pasted"),
            change("/api/workspace/open", "POST", "session.open_packed"),
            change("/api/columns", "POST", "session.set_columns"),
            change("/api/preparation", "POST", "session.set_preparation"),
            change("/api/undo", "POST", "session.undo"),
            change("/api/redo", "POST", "session.redo"),
            change("/api/current", "POST", "session.set_current"),
            view("/api/rows", "GET", "row_view.rows"),
            view("/api/rows", "POST", "row_view.rows"),
            view("/api/map", "GET", "views.map_of", _binary),
            view("/api/values", "GET", "views.values_of", _binary),
            view("/api/runs", "POST", "session.start", _created),
            view("/api/runs/{run}", "GET", "views.run_of"),
            change("/api/runs/{run}", "DELETE", "session.remove"),
            view("/api/runs/{run}/labels", "GET", "views.labels_of", _binary),
            view("/api/runs/{run}/trace", "GET", "trace_view.trace_of", _binary),
            view("/api/runs/{run}/tree", "GET", "views.tree_of"),
            view("/api/runs/{run}/clusters/{label}", "GET", "cluster_view.cluster_of"),
            view("/api/runs/{run}/charts/{name}", "GET", "charts.chart_of", HTMLResponse),
            view("/api/runs/{run}/means", "POST", "selected_rows.selected_means"),
            view("/api/runs/{run}/edit", "POST", "views.edited_run", _created),
            view("/api/runs/{run}/cut", "POST", "session.cut", _created),
            view("/api/runs/{run}/open-k", "POST", "session.open_k", _created),
            view("/api/compare", "GET", "comparison.compare"),
            view("/api/compare/moved", "GET", "comparison.moved_rows", _binary),
            view("/api/export/{kind}", "GET", "downloads.export", _download),
        ]

    # --- handlers -----------------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        if self._page is None:
            self._page = await run_in_threadpool(_page)
        return HTMLResponse(self._page)

    async def ping(self, request: Request) -> Response:
        return Response(status_code=204)

    async def listen(self, request: Request) -> Response:
        return StreamingResponse(self.events.listen(), media_type="text/event-stream")

    async def workspace(self, request: Request) -> Response:
        return await self._call(self._workspace_view, JSONResponse) if self.loader.is_ready else JSONResponse(_LOADING)

    async def upload(self, request: Request) -> Response:
        type_, arguments = await self._arguments(request, "/api/upload")
        session = await run_in_threadpool(self.loader.session)
        workspace, path = await run_in_threadpool(session.new_upload, **arguments)
        try:
            with path.open("wb") as file:
                async for part in _parts(request, type_):
                    file.write(part)
                    await asyncio.sleep(0)  # a fast upload must not delay other requests
        except BaseException:
            workspace.delete_unless_saved()
            raise
        return await self._call(self._change(_function("session.open_copy")), JSONResponse, workspace, path)

    async def answer(self, path: str, function: Callable[..., Any], render: Render, request: Request) -> Response:
        """Call a function with what the request contains; an error if another table is open than the page shows."""
        await self._check_table(request)
        try:
            type_, arguments = await self._arguments(request, path)
            if type_.body is not None:
                data = b"".join([part async for part in _parts(request, type_)])
                arguments["body"] = type_.checked_body(data)
            return await self._call(function, render, **arguments)
        finally:  # an answer or an error may mix both tables if another one was opened meanwhile
            await self._check_table(request)

    # --- calls of the session -----------------------------------------------------------------------------------------

    async def _arguments(self, request: Request, path: str) -> tuple[Any, dict[str, Any]]:
        """The type of a request, and what its address contains."""
        from coterie.app.request_types import request_types

        session = await run_in_threadpool(self.loader.session)
        type_ = request_types(session.n_rows)["GET" if request.method == "HEAD" else request.method, path]
        names = dict.fromkeys(request.query_params)
        texts = {name: request.query_params.getlist(name) for name in names}
        return type_, type_.checked_address(texts | {name: [text] for name, text in request.path_params.items()})

    async def _check_table(self, request: Request) -> None:
        shown = request.headers.get(TABLE_HEADER)
        if shown is None or request.url.path in OPENING:
            return
        session = await run_in_threadpool(self.loader.session)
        if session.table is None or shown != session.table.id:
            from coterie.app.failures import FieldError

            raise FieldError("Another table was opened meanwhile. The page shows it now: try again there.", None, 409)

    async def _call(self, function: Callable[..., Any], render: Render, *values: Any, **arguments: Any) -> Response:
        """Call a function of the session in a thread."""

        def call() -> Response:
            session = self.loader.session()
            try:
                return render(function(session, *values, **arguments))
            finally:
                session.memory.used()

        return await run_in_threadpool(call)

    def _change(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with the workspace as its result."""

        def change(session: Any, *values: Any, **arguments: Any) -> Any:
            function(session, *values, **arguments)
            self.loader.problem = None
            return self._workspace_view(session)

        return change

    def _workspace_view(self, session: Any) -> Any:
        return {**_function("workspace_view.workspace_view")(session), "problem": self.loader.problem}


_LOADING = {"ready": False, "revision": -1, "busy": "loading libraries", "table": None, "runs": [], "demos": [],
            "recent": [], "algorithms": [], "current": None}  # fmt: skip
_binary: Render = partial(Response, media_type=BINARY)


def _created(result: Any) -> Response:
    """The id of a new run, or the view of one that was changed."""
    return JSONResponse({"id": result}, 201) if isinstance(result, str) else JSONResponse(result)


def _download(result: Any) -> Response:
    """A file to save, or its text for the page."""
    if result.is_shown:
        return JSONResponse(result.shown())
    if result.reason is not None:
        return JSONResponse({"error": {"message": result.reason, "field": "run"}}, 409)
    name = result.name.encode("ascii", "replace").decode().replace('"', "_").replace("?", "_")
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": "sandbox"}
    return Response(result.data, media_type=result.media_type, headers=headers)


def _function(name: str) -> Callable[..., Any]:
    """A function of the session and other arguments, by its module, which is imported in the thread that calls it."""
    module, _, attribute = name.partition(".")

    def call(session: Any, *values: Any, **arguments: Any) -> Any:
        owner = import_module(f"coterie.app.{module}")
        return getattr(owner.Session if module == "session" else owner, attribute)(session, *values, **arguments)

    return call


def _page() -> str:
    from coterie.report.html.styles import stylesheet
    from coterie.web import Markup, page

    static = files("coterie.app").joinpath("static")
    body = Markup(static.joinpath("app.html").read_text(encoding="utf-8"))
    css = stylesheet() + static.joinpath("app.css").read_text(encoding="utf-8")
    return page("coterie", body, scripts=("app",), css=css, connects=True)


def _explained(handler: Handler) -> Handler:
    """The handler, with errors of the library as sentences."""

    async def explained(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            return JSONResponse({"error": {"message": "The request is incomplete.", "field": None}}, 400)
        except TooLarge as error:
            return JSONResponse({"error": {"message": str(error), "field": error.field}}, 413)
        except (ValueError, OSError, MemoryError, RuntimeError) as error:
            from coterie.app.failures import EXPECTED, as_error

            is_expected = isinstance(error, (*EXPECTED, OSError, MemoryError))
            status = getattr(error, "status", 400 if is_expected else 500)
            return JSONResponse({"error": as_error(error)}, status)

    return explained


async def _parts(request: Request, type_: Any) -> AsyncIterator[bytes]:
    """The content of a request, up to its limit."""
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > type_.most:
            raise TooLarge(type_.most, type_.control)
        yield part


async def _bug(request: Request, error: Exception) -> Response:
    message = f"This is a bug in coterie, please report it: {type(error).__name__}: {error}"
    return JSONResponse({"error": {"message": message, "field": None}}, 500)


async def _unknown(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": {"message": "There is nothing at this address.", "field": None}}, 404)
