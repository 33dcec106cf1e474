"""The session: one open table with its workspace, shared by all pages that are open."""

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from coterie.app.events import Events
from coterie.app.execution import Outcome, check_run, details_of, execute, restored
from coterie.app.failures import EXPECTED, FieldError, NotAvailable, as_error, in_page
from coterie.app.files import state_folder, table_below, upload_name
from coterie.app.idle_memory import IdleMemory
from coterie.app.maps import axes_and_map
from coterie.app.open_table import OpenTable, Prepared
from coterie.app.preparation_options import changed_columns, preparation_options
from coterie.app.progress_report import ProgressReport
from coterie.app.run_requests import check_has_tree, child_of, edited, merged, requested_run
from coterie.app.run_views import LiveRun, info_of, run_view
from coterie.app.state import History, Run, Source, State
from coterie.app.store import OTHER_RESULT, Store, Workspace
from coterie.app.worker import Worker
from coterie.app.workspace_lock import WorkspaceInUse, WorkspaceLock
from coterie.core.formatting import escaped
from coterie.core.progress import silent
from coterie.datasets import demo_file, write_demo
from coterie.interrupts import Request, outermost

MAX_OUTCOMES = 4  # results in memory; others are described again from their labels and models
FEW_DROPPED = 0.05  # share of incomplete rows up to which they are dropped at first; more are filled
INTERRUPTED = "The server stopped, or another table was opened, during this run. Run it again."


class Session:
    """The workspace that is open, and everything that changes it; its methods can be called from any thread."""

    def __init__(self, events: Events, folder: Path, state: Path | None = None) -> None:
        self.events, self.folder = events, folder
        self.store = Store(state_folder() if state is None else state)
        self.lock = threading.RLock()
        self.revision = 0
        self.busy: str | None = None  # what pages wait for
        self.table: OpenTable | None = None
        self.source: Source | None = None
        self.workspace: Workspace | None = None
        self._workspace_lock: WorkspaceLock | None = None
        self.history = History()
        self.live: dict[str, LiveRun] = {}
        self._outcomes: OrderedDict[str, Outcome] = OrderedDict()
        self._report: tuple[Run, Outcome, Any] | None = None
        self._report_lock = threading.Lock()
        self.worker, self.memory = Worker(), IdleMemory()

    # --- opening tables -----------------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Rows of the open table; without one, more than any table has, because nothing is asked about it."""
        return 1 << 40 if self.table is None else self.table.table.n_rows

    def open(self, body: Mapping[str, str]) -> None:
        """Open a table below the start folder, a demo table, or a recent workspace."""
        ((way, name),) = body.items()
        if way == "path":
            self.open_file(table_below(self.folder, name))
        elif way == "demo":
            workspace = self.store.create()
            self.open_copy(workspace, write_demo(name, workspace.table_folder() / demo_file(name), overwrite=True))
        else:
            self.open_workspace(self.store.find(name))

    def open_file(self, path: Path) -> None:
        """Open a table; if another server has its workspace open, an earlier one or a new one is used."""
        source = _source(path)
        for workspace in self.store.of_source(source):
            with suppress(WorkspaceInUse):
                return self.open_workspace(workspace)
        self._open(source, self.store.create(), History())

    def new_upload(self, name: str = "") -> tuple[Workspace, Path]:
        """A new workspace, and the path in its private folder for a file of that name."""
        safe = upload_name(name)
        workspace = self.store.create()
        return workspace, workspace.table_folder() / safe

    def open_copy(self, workspace: Workspace, path: Path) -> None:
        """Open a file in the private folder of a new workspace."""
        self._open(_source(path, is_copy=True), workspace, History())

    def open_pasted(self, body: Mapping[str, str]) -> None:
        """Open the cells of a spreadsheet, or another table as text."""
        if not body["text"].strip():
            raise FieldError("Paste the cells of a table, with a row of column names.", "paste")
        workspace, path = self.new_upload(body.get("name", "pasted.csv"))
        path.write_text(body["text"], encoding="utf-8", newline="")
        try:
            self.open_copy(workspace, path)
        except FieldError as error:
            raise FieldError(str(error), "paste") from error

    def open_packed(self, body: bytes) -> None:
        """Open a workspace that was exported; its table is in it, or below the start folder."""
        workspace = self.store.unpack(body)
        try:
            source = workspace.load()[0]
            if not source.is_copy:
                table_below(self.folder, source.path)
            self.open_workspace(workspace)
        except BaseException:
            workspace.delete()
            raise

    def open_workspace(self, workspace: Workspace) -> None:
        source, history, _ = workspace.load()
        path = Path(source.path)
        if not path.is_file():
            raise FieldError(f'the table of this workspace is no longer there: "{escaped(source.path)}".', "workspace")
        now = _source(path, is_copy=source.is_copy)
        if not source.is_copy and (now.size, now.modified) != (source.size, source.modified):
            raise FieldError(f'"{source.name}" has changed since this workspace was saved. Open the file.', "workspace")
        self._open(now, workspace, history)

    def _open(self, source: Source, workspace: Workspace, history: History) -> None:
        lock = self._locked(workspace)
        self._set_busy(f"reading {source.name}")
        try:
            table = OpenTable(Path(source.path))
            unknown = {name for state in history.states for name in state.columns} - table.kinds.keys()
            if unknown:
                raise FieldError(f'the table of this workspace has no column "{min(unknown)}".', "workspace")
            if not history.before and not history.now.runs:
                history = replace(history, now=_with_missing(history.now, table))
            with self.lock:
                workspace.save(source, history, _about(table, history))
                self.cancel_runs()
                self._hold(lock)
                self.table, self.source, self.workspace = table, source, workspace
                self._outcomes.clear()
                self._report = None
                self.live = {run_id: self._stored(run_id) for run_id in history.known_runs()}
                self._use(history)
            threading.Thread(target=self._draw_first_map, args=(table,), daemon=True).start()
        except BaseException as error:
            if lock is not self._workspace_lock:
                lock.release()
            workspace.delete_unless_saved()
            if isinstance(error, FieldError) or not isinstance(error, EXPECTED):
                raise
            raise FieldError(in_page(str(error)), "file") from error
        finally:
            self._set_busy(None)

    def _locked(self, workspace: Workspace) -> WorkspaceLock:
        """The lock of a workspace, which this session may have already."""
        held = self._workspace_lock
        return held if held is not None and held.folder == workspace.folder else WorkspaceLock(workspace.folder)

    def _hold(self, lock: WorkspaceLock | None) -> None:
        """Keep a lock, and release the one before."""
        if self._workspace_lock is not None and self._workspace_lock is not lock:
            self._workspace_lock.release()
        self._workspace_lock = lock

    def cancel_runs(self) -> None:
        """Cancel all runs that are waiting or running."""
        for run in self.live.values():
            run.cancel()

    def _draw_first_map(self, table: OpenTable) -> None:
        """Compute the map that pages ask for next."""
        with self.lock:
            prepared = self.try_prepared()[0] if self.table is table else None
        if prepared is not None:
            axes_and_map(table, prepared)
        self.memory.used()

    def _stored(self, run_id: str) -> LiveRun:
        assert self.workspace is not None
        info = self.workspace.run_info(run_id)
        if info is None:
            return LiveRun("failed", error={"message": INTERRUPTED, "field": "run"})
        return LiveRun("done", stopped=bool(info.get("stopped")), info=info)

    # --- choices ------------------------------------------------------------------------------------------------------

    def set_columns(self, body: Mapping[str, Any]) -> None:
        with self.lock:
            columns = changed_columns(self.history.now, body, self.open_table().kinds)
            self._change(f'choice for column "{next(iter(body), "")}"', replace(self.history.now, columns=columns))

    def set_preparation(self, body: Mapping[str, str]) -> None:
        with self.lock:
            self.open_table()
            action = ", ".join(f"{name}: {value}" for name, value in body.items())
            self._change(action, replace(self.history.now, preparation={**self.history.now.preparation, **body}))

    def undo(self) -> None:
        with self.lock:
            if not self.history.before:
                raise FieldError("There is nothing to undo.", None, 409)
            self._commit(self.history.undo())

    def redo(self) -> None:
        with self.lock:
            if not self.history.after:
                raise FieldError("There is nothing to redo.", None, 409)
            self._commit(self.history.redo())

    def _change(self, action: str, state: State) -> None:
        self._commit(self.history.change(action, state))

    def _commit(self, history: History) -> None:
        """Store a history, and use it only then; tell all pages."""
        with self.lock:
            if self.workspace is not None and self.source is not None:
                self.workspace.save(self.source, history, _about(self.open_table(), history))
            self._use(history)

    def _use(self, history: History) -> None:
        self.history, self.revision = history, self.revision + 1
        self.events.publish("workspace", {"revision": self.revision})

    # --- runs ---------------------------------------------------------------------------------------------------------

    def start(self, body: Mapping[str, Any]) -> str:
        """Start a run: a fit, or a comparison of numbers of clusters."""
        with self.lock:
            run = requested_run(body, self.history.new_id, self.options())
            return self._checked(run, f"run {run.algorithm}")

    def open_k(self, run: str, body: Mapping[str, int]) -> str:
        """One number of clusters of a comparison as a run."""
        with self.lock:
            parent, k = self.run(run), body["k"]
            self.done(run)
            return self._checked(child_of(parent, self.history.new_id, "open", k), f"open K = {k}")

    def cut(self, run: str, body: Mapping[str, int]) -> str:
        """Another cut of a tree as a run."""
        with self.lock:
            parent, k = self.run(run), body["k"]
            check_has_tree(parent)
            return self._checked(child_of(parent, self.history.new_id, "cut", k), f"cut into {k}")

    def edit(self, run_id: str, changes: Mapping[str, Any]) -> str:
        """Rename, recolour or merge clusters; a merge is a new run."""
        with self.lock:
            run, live = self.run(run_id), self.done(run_id)
            k = (live.info or {}).get("k") or 0
            if "merge" in changes:
                return self._submit(*merged(run, self.history.new_id, changes["merge"], k))
            run, action = edited(run, changes, k)
            self._change(action, self.history.now.with_run(run))
            return run_id

    def remove(self, run: str) -> None:
        """Stop a run with the best result so far; a finished run is removed from the list."""
        with self.lock:
            self.run(run)
            live = self.live[run]
            if live.status in ("queued", "running"):
                live.cancel()
                return
            self._change(f"remove run {run}", self.history.now.without_run(run))

    def set_current(self, body: Mapping[str, str | None]) -> None:
        with self.lock:
            if body["run"] is not None:
                self.run(body["run"])
            self._commit(replace(self.history, now=replace(self.history.now, current=body["run"])))

    def _checked(self, run: Run, action: str) -> str:
        """Submit a run whose options are valid."""
        table = self.open_table()
        try:
            check_run(run, table.path)
        except (*EXPECTED, TypeError) as error:
            raise FieldError(**as_error(error, run.options, table.kinds)) from error
        return self._submit(run, action)

    def _submit(self, run: Run, action: str) -> str:
        with self.lock:
            self._change(action, self.history.now.with_run(run))
            self.live[run.id] = LiveRun()
            workspace = self.workspace
            self.worker.submit(lambda: self._execute(run, workspace))
            return run.id

    def _execute(self, run: Run, workspace: Workspace | None) -> None:
        """Run a run in the thread of the worker, and store its result."""
        with self.lock:
            live, table = self.live.get(run.id), self.table
            if workspace is not self.workspace or live is None or table is None or workspace is None:
                return  # another table was opened
        if live.is_cancelled:
            self._finish(run, live, "cancelled")
            return
        live.status, start = "running", time.perf_counter()
        self._publish_run(run, live)
        report = ProgressReport(run, live, self.events, table)
        try:
            with live.interrupt.listening(), outermost():  # a part of an earlier result would be taken for it
                parent = None if run.parent is None else self.outcome(run.parent, live.interrupt)
                if run.kind == "open" and run.parent is not None:
                    self.details(run.parent)
            outcome = execute(run, table, parent, report, live.interrupt)
            live.stopped = live.is_cancelled
            live.info = info_of(outcome, stopped=live.stopped, seconds=time.perf_counter() - start)
            content = outcome.content
            labels = None if content is None else content.fitted.labels
            with self.lock:
                if not self._is_open(run, live):
                    return  # another server may have the workspace by now
                workspace.save_run(run.id, live.info, labels, None if content is None else content.fitted.model)
                self._keep(run.id, outcome, workspace)
            self._finish(run, live, "done")
        except KeyboardInterrupt:  # before there was a result
            self._finish(run, live, "cancelled")
        except Exception as error:
            live.error = as_error(error, run.options, table.kinds)
            self._finish(run, live, "failed")

    def _is_open(self, run: Run, live: LiveRun) -> bool:
        """Whether the workspace of a run is still open; another one can have a run of the same name."""
        return self.live.get(run.id) is live

    def _finish(self, run: Run, live: LiveRun, status: str) -> None:
        self.memory.used()
        with self.lock:
            try:
                if self._is_open(run, live):
                    self._commit(self.history)
            finally:  # who sees the status sees the workspace with the result
                live.status, live.progress = status, None
            self._publish_run(run, live)

    def _publish_run(self, run: Run, live: LiveRun) -> None:
        with self.lock:
            if self._is_open(run, live):
                entry = self.history.now.run(run.id) or run
                view = run_view(entry, live, self.options())
                self.events.publish("run", {"table": self.open_table().id, **view})

    def _keep(self, run_id: str, outcome: Outcome, workspace: Workspace) -> None:
        """Keep a result in memory if its workspace is still open."""
        with self.lock:
            if workspace is not self.workspace:
                return
            self._outcomes[run_id] = outcome
            self._outcomes.move_to_end(run_id)
            while len(self._outcomes) > MAX_OUTCOMES:
                self._outcomes.popitem(last=False)

    def outcome(self, run_id: str, interrupt: Request | None = None) -> Outcome:
        """The result of a run in memory; it is restored from its files if necessary."""
        with self.lock:
            run, live = self.run(run_id, of_any_state=True), self.done(run_id)
            table, workspace = self.open_table(), self.workspace
            if run_id in self._outcomes:
                self._outcomes.move_to_end(run_id)
                return self._outcomes[run_id]
        assert workspace is not None
        assert live.info is not None
        if run.kind == "choose":
            outcome = execute(run, table, None, silent, interrupt or Request())
        else:
            try:
                outcome = restored(run, table, workspace, live.info)
            except EXPECTED:
                raise
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # a changed file
                raise FieldError(OTHER_RESULT, "run", 409) from error
        self._keep(run_id, outcome, workspace)
        return outcome

    def details(self, run_id: str) -> Any:
        """How K was chosen in a run; None if it was given."""
        return details_of(self.run(run_id, of_any_state=True), self.outcome(run_id), self.open_table().path)

    def report(self, run: Run, outcome: Outcome) -> Any:
        """All data of the report of a run; the last one is kept."""
        from coterie.app.charts import report_of

        with self._report_lock:
            if self._report is None or self._report[0] != run or self._report[1] is not outcome:
                self._report = run, outcome, report_of(self, run, outcome)
            return self._report[2]

    def run(self, run_id: str, *, of_any_state: bool = False) -> Run:
        """A run of the list; with `of_any_state` also one that is not in it now, to which the user can return."""
        states = self.history.states if of_any_state else [self.history.now]
        run = next((run for state in states if (run := state.run(run_id)) is not None), None)
        if run is None:
            raise NotAvailable(f'There is no run "{run_id}".')
        return run

    def done(self, run_id: str) -> LiveRun:
        live = self.live[run_id]
        if live.status != "done":
            raise FieldError(f"This run has no result: it is {live.status}.", "run", 409)
        return live

    def open_table(self) -> OpenTable:
        if self.table is None:
            raise FieldError("Open a table first.", "file", 409)
        return self.table

    def prepared(self) -> Prepared:
        """The rows as they are prepared now."""
        with self.lock:
            table, options = self.open_table(), self.options()
        try:
            return table.prepared(options)
        except EXPECTED as error:
            raise FieldError(**as_error(error, (), table.kinds)) from error

    def try_prepared(self) -> tuple[Prepared | None, dict[str, Any] | None]:
        """The rows as they are prepared now, or the error of the preparation."""
        if self.table is None:
            return None, None
        try:
            return self.prepared(), None
        except FieldError as error:
            return None, as_error(error)

    def options(self) -> dict[str, Any]:
        """The options of the preparation now, as runs store them."""
        table = self.open_table()
        return preparation_options(self.history.now, table.kinds, table.skipped)

    def _set_busy(self, message: str | None) -> None:
        self.busy = message
        self.events.publish("busy", {"message": message})

    def close(self) -> None:
        """Stop the worker; a run that is not finished is marked when the workspace is opened again."""
        self.cancel_runs()
        self.worker.stop()
        self.memory.close()
        with self.lock:
            self.workspace = None  # a run that ends now must not write: another server may have the workspace
            self._hold(None)


def _source(path: Path, *, is_copy: bool = False) -> Source:
    stat = path.stat()
    return Source(str(path), escaped(path.name), stat.st_size, stat.st_mtime_ns, is_copy)


def _about(table: OpenTable, history: History) -> dict[str, int]:
    """What the list of recent workspaces shows."""
    return {"rows": table.table.n_rows, "runs": len(history.now.runs)}


def _with_missing(state: State, table: OpenTable) -> State:
    """If values are missing, drop few incomplete rows, or fill many. The page shows it; the user can change it."""
    if not table.has_missing or state.preparation:
        return state
    dropped = table.rows_dropped(preparation_options(state, table.kinds, table.skipped))
    is_few = dropped is not None and dropped <= FEW_DROPPED * table.table.n_rows
    return replace(state, preparation={"missing": "drop" if is_few else "median"})
