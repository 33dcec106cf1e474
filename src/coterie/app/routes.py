"""Addresses of the server: each parses a request, calls the session in a thread, and renders the answer."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from coterie.app.events import Events
from coterie.app.security import Guard
from coterie.app.session_loader import SessionLoader

MAX_JSON = 4 << 20  # bytes of a request
MAX_PASTE = 64 << 20
MAX_UPLOAD = 2 << 30
MAX_WORKSPACE = 256 << 20
BINARY = "application/octet-stream"
TABLE_HEADER = "x-coterie-table"  # the id of the table that a page shows

Handler = Callable[[Request], Awaitable[Response]]


class TooLarge(Exception):
    """A request is larger than its limit."""

    def __init__(self, limit: int, field: str) -> None:
        super().__init__(f"The content is larger than {limit >> 20:,} MiB: open it as a file below the start folder.")
        self.field = field


def application(loader: SessionLoader, events: Events, token: str, host: str, port: int) -> Any:
    """The ASGI application, with its guard."""
    routes = Routes(loader, events)
    app = Starlette(routes=routes.all(), exception_handlers={Exception: _bug, 404: _unknown, 405: _unknown})
    return Guard(app, token, host, port)


class Routes:
    """The handlers of all addresses."""

    def __init__(self, loader: SessionLoader, events: Events) -> None:
        self.loader, self.events = loader, events
        self._page: str | None = None

    def all(self) -> list[Route]:
        def route(path: str, method: str, handler: Handler, *, of_table: bool = True) -> Route:
            return Route(path, _explained(self._of_table(handler) if of_table else handler), methods=[method])

        return [
            route("/", "GET", self.page, of_table=False),
            route("/api/ping", "GET", self.ping, of_table=False),
            route("/api/events", "GET", self.listen, of_table=False),
            route("/api/workspace", "GET", self.workspace, of_table=False),
            route("/api/open", "POST", self.open, of_table=False),
            route("/api/upload", "POST", self.upload, of_table=False),
            route("/api/paste", "POST", self.paste, of_table=False),
            route("/api/workspace/open", "POST", self.open_workspace, of_table=False),
            route("/api/columns", "POST", self.changing("set_columns")),
            route("/api/preparation", "POST", self.changing("set_preparation")),
            route("/api/undo", "POST", self.changing("undo", takes_body=False)),
            route("/api/redo", "POST", self.changing("redo", takes_body=False)),
            route("/api/current", "POST", self.current),
            route("/api/rows", "GET", self.rows),
            route("/api/rows", "POST", self.rows),
            route("/api/map", "GET", self.map),
            route("/api/values", "GET", self.values),
            route("/api/runs", "POST", self.start),
            route("/api/runs/{run}", "GET", self.run),
            route("/api/runs/{run}", "DELETE", self.remove),
            route("/api/runs/{run}/labels", "GET", self.labels),
            route("/api/runs/{run}/trace", "GET", self.trace),
            route("/api/runs/{run}/tree", "GET", self.tree),
            route("/api/runs/{run}/clusters/{label}", "GET", self.cluster),
            route("/api/runs/{run}/charts/{name}", "GET", self.chart),
            route("/api/runs/{run}/means", "POST", self.means),
            route("/api/runs/{run}/edit", "POST", self.edit),
            route("/api/runs/{run}/cut", "POST", self.cut),
            route("/api/runs/{run}/open-k", "POST", self.open_k),
            route("/api/compare", "GET", self.compare),
            route("/api/compare/moved", "GET", self.moved),
            route("/api/export/{kind}", "GET", self.export),
        ]

    # --- the page and its state ---------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        if self._page is None:
            self._page = await run_in_threadpool(_page)
        return HTMLResponse(self._page)

    async def ping(self, request: Request) -> Response:
        return Response(status_code=204)

    async def listen(self, request: Request) -> Response:
        return StreamingResponse(self.events.listen(), media_type="text/event-stream")

    async def workspace(self, request: Request) -> Response:
        if not self.loader.is_ready:
            return JSONResponse(_LOADING)
        view = await self._call(lambda session: _views("workspace_view").workspace_view(session))
        return JSONResponse({**view, "problem": self.loader.problem})

    # --- opening ------------------------------------------------------------------------------------------------------

    async def open(self, request: Request) -> Response:
        body = await _json(request, MAX_JSON)
        ways = {"path": "open_path", "demo": "open_demo", "recent": "open_recent"}
        name = next((key for key in ways if isinstance(body.get(key), str)), None)
        if name is None:
            raise _problem("path, demo or recent is expected, with a text.", "file")
        return await self._changed(lambda session: getattr(session, ways[name])(body[name]))

    async def upload(self, request: Request) -> Response:
        from coterie.app.files import upload_name

        name = upload_name(request.query_params.get("name", ""))
        limit = MAX_UPLOAD
        if int(request.headers.get("content-length") or 0) > limit:
            raise TooLarge(limit, "file")
        session = await run_in_threadpool(self.loader.session)
        workspace = await run_in_threadpool(session.store.create)
        path = workspace.table_folder() / name
        try:
            await _write_body(request, path, limit)
        except BaseException:
            workspace.delete_unless_saved()
            raise
        return await self._changed(lambda session: session.open_copy(workspace, path))

    async def paste(self, request: Request) -> Response:
        body = await _json(request, MAX_PASTE, "paste")
        text, name = body.get("text"), body.get("name", "pasted.csv")
        if not isinstance(text, str) or not text.strip():
            raise _problem("Paste the cells of a table, with a row of column names.", "paste")
        return await self._changed(lambda session: session.open_pasted(text, str(name)))

    async def open_workspace(self, request: Request) -> Response:
        data = await _body(request, MAX_WORKSPACE, "workspace")
        return await self._changed(lambda session: session.open_workspace(session.store.unpack(data)))

    # --- choices ------------------------------------------------------------------------------------------------------

    def changing(self, method: str, *, takes_body: bool = True) -> Handler:
        async def handler(request: Request) -> Response:
            arguments = [await _json(request, MAX_JSON)] if takes_body else []
            return await self._changed(lambda session: getattr(session, method)(*arguments))

        return handler

    async def current(self, request: Request) -> Response:
        body = await _json(request, MAX_JSON)
        return await self._changed(lambda session: session.set_current(body.get("run")))

    # --- rows and maps ------------------------------------------------------------------------------------------------

    async def rows(self, request: Request) -> Response:
        query: dict[str, Any] = dict(request.query_params)
        if isinstance(query.get("rows"), str):
            query["rows"] = [text for text in query["rows"].split(",") if text]
        if request.method == "POST":
            query["bits"] = await _body(request, MAX_JSON, "rows")
        return JSONResponse(await self._call(lambda session: _views("row_view").rows(session, query)))

    async def map(self, request: Request) -> Response:
        query = request.query_params
        return await self._binary(
            lambda session: _views("views").map_of(
                session, query.get("kind", "axes"), query.get("x"), query.get("y"), query.get("run")
            )
        )

    async def values(self, request: Request) -> Response:
        names = request.query_params.getlist("columns")
        return await self._binary(lambda session: session.open_table().values(names))

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def start(self, request: Request) -> Response:
        body = await _json(request, MAX_JSON)
        return JSONResponse({"id": await self._call(lambda session: session.start(body))}, 201)

    async def run(self, request: Request) -> Response:
        run = request.path_params["run"]
        return JSONResponse(await self._call(lambda session: _views("views").run_of(session, run)))

    async def remove(self, request: Request) -> Response:
        run = request.path_params["run"]
        return await self._changed(lambda session: session.remove(run))

    async def labels(self, request: Request) -> Response:
        run, k = request.path_params["run"], request.query_params.get("k")
        return await self._binary(lambda session: _views("views").labels_of(session, run, k))

    async def trace(self, request: Request) -> Response:
        run = request.path_params["run"]
        return await self._binary(lambda session: _views("trace_view").trace_of(session, run))

    async def tree(self, request: Request) -> Response:
        run = request.path_params["run"]
        return JSONResponse(await self._call(lambda session: _views("views").tree_of(session, run)))

    async def cluster(self, request: Request) -> Response:
        run, label = request.path_params["run"], request.path_params["label"]
        return JSONResponse(await self._call(lambda session: _views("cluster_view").cluster_of(session, run, label)))

    async def means(self, request: Request) -> Response:
        run, bits = request.path_params["run"], await _body(request, MAX_JSON, "rows")
        return JSONResponse(
            await self._call(lambda session: _views("selected_rows").selected_means(session, run, bits))
        )

    async def chart(self, request: Request) -> Response:
        run, name = request.path_params["run"], request.path_params["name"]
        return HTMLResponse(await self._call(lambda session: _views("charts").chart_of(session, run, name)))

    async def edit(self, request: Request) -> Response:
        run, body = request.path_params["run"], await _json(request, MAX_JSON)
        changed = await self._call(lambda session: session.edit(run, body))
        if changed != run:
            return JSONResponse({"id": changed}, 201)
        return JSONResponse(await self._call(lambda session: _views("views").run_of(session, run)))

    async def cut(self, request: Request) -> Response:
        run, body = request.path_params["run"], await _json(request, MAX_JSON)
        child = await self._call(lambda session: session.cut(run, body.get("k")))
        return JSONResponse({"id": child}, 201)

    async def open_k(self, request: Request) -> Response:
        run, body = request.path_params["run"], await _json(request, MAX_JSON)
        return JSONResponse({"id": await self._call(lambda session: session.open_k(run, body.get("k")))}, 201)

    async def compare(self, request: Request) -> Response:
        a, b = (request.query_params.get(name, "") for name in ("a", "b"))
        return JSONResponse(await self._call(lambda session: _views("comparison").compare(session, a, b)))

    async def moved(self, request: Request) -> Response:
        a, b = (request.query_params.get(name, "") for name in ("a", "b"))
        return await self._binary(lambda session: _views("comparison").moved_rows(session, a, b))

    async def export(self, request: Request) -> Response:
        kind, query = request.path_params["kind"], request.query_params
        run, is_shown = query.get("run"), query.get("show") == "1"
        result = await self._call(lambda session: _views("downloads").export(session, kind, run))
        if is_shown:
            return JSONResponse(result.shown())
        if result.reason is not None:
            return JSONResponse({"error": {"message": result.reason, "field": "run"}}, 409)
        name = result.name.encode("ascii", "replace").decode().replace('"', "_").replace("?", "_")
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": "sandbox"}
        return Response(result.data, media_type=result.media_type, headers=headers)

    # --- calls of the session -----------------------------------------------------------------------------------------

    def _of_table(self, handler: Handler) -> Handler:
        """The handler, with an error if another table is open than the one that the page names in a header."""

        async def checked(request: Request) -> Response:
            await self._check_table(request)
            try:
                return await handler(request)
            finally:  # an answer or an error may mix both tables if another one was opened meanwhile
                await self._check_table(request)

        return checked

    async def _check_table(self, request: Request) -> None:
        shown = request.headers.get(TABLE_HEADER)
        if shown is None:
            return
        session = await run_in_threadpool(self.loader.session)
        if session.table is None or shown != session.table.id:
            raise _problem("Another table was opened meanwhile. The page shows it now: try again there.", None, 409)

    async def _call(self, function: Callable[[Any], Any]) -> Any:
        """Call a function of the session in a thread."""

        def call() -> Any:
            session = self.loader.session()
            try:
                return function(session)
            finally:
                session.memory.used()

        return await run_in_threadpool(call)

    async def _changed(self, function: Callable[[Any], Any]) -> Response:
        """Change the session, and return the workspace."""

        def change(session: Any) -> Any:
            function(session)
            return _views("workspace_view").workspace_view(session)

        self.loader.problem = None
        return JSONResponse(await self._call(change))

    async def _binary(self, function: Callable[[Any], bytes]) -> Response:
        return Response(await self._call(function), media_type=BINARY)


_LOADING = {"ready": False, "revision": -1, "busy": "loading libraries", "table": None, "runs": [], "demos": [],
            "recent": [], "algorithms": [], "current": None}  # fmt: skip


def _views(module: str) -> Any:
    """A module that needs the libraries; it is imported in the thread that uses it."""
    from importlib import import_module

    return import_module(f"coterie.app.{module}")


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
        except TooLarge as error:
            return JSONResponse({"error": {"message": str(error), "field": error.field}}, 413)
        except (ValueError, OSError, MemoryError, RuntimeError) as error:
            from coterie.app.failures import EXPECTED, as_error

            is_expected = isinstance(error, (*EXPECTED, OSError, MemoryError))
            status = getattr(error, "status", 400 if is_expected else 500)
            return JSONResponse({"error": as_error(error)}, status)

    return explained


def _problem(message: str, field: str | None, status: int = 400) -> ValueError:
    from coterie.app.failures import FieldError

    return FieldError(message, field, status)


async def _body(request: Request, limit: int, field: str) -> bytes:
    """The content of a request, up to a limit."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise TooLarge(limit, field)
        parts.append(part)
    return b"".join(parts)


async def _json(request: Request, limit: int, field: str = "file") -> Mapping[str, Any]:
    try:
        value = json.loads(await _body(request, limit, field) or b"{}")
    except ValueError:
        raise _problem("The request is not JSON.", "file") from None
    if not isinstance(value, dict):
        raise _problem("The request must be a JSON object.", "file")
    return value


async def _write_body(request: Request, path: Path, limit: int) -> None:
    """Write an upload to a file, up to a limit."""
    size = 0
    with path.open("wb") as file:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise TooLarge(limit, "file")
            file.write(part)
            await asyncio.sleep(0)  # a fast upload must not delay other requests


async def _bug(request: Request, error: Exception) -> Response:
    message = f"This is a bug in coterie, please report it: {type(error).__name__}: {error}"
    return JSONResponse({"error": {"message": message, "field": None}}, 500)


async def _unknown(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": {"message": "There is nothing at this address.", "field": None}}, 404)
