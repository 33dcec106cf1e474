"""The session: one open table with its workspace, shared by all pages that are open."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from coterie.app.events import Events
from coterie.app.execution import Outcome, check_run, details_of, execute, restored
from coterie.app.failures import EXPECTED, FieldError, NotAvailable, as_error, in_page
from coterie.app.files import state_folder, table_below, upload_name
from coterie.app.idle_memory import IdleMemory
from coterie.app.maps import axes_map
from coterie.app.open_table import OpenTable, Prepared
from coterie.app.preparation_options import SETTINGS, changed_columns, preparation_options
from coterie.app.progress_report import ProgressReport, RunCancelled
from coterie.app.run_requests import check_has_tree, child_of, edited, merged, requested_run
from coterie.app.run_views import LiveRun, info_of, run_view
from coterie.app.state import History, Run, Source, State
from coterie.app.store import Store, Workspace
from coterie.app.worker import Worker
from coterie.app.workspace_lock import WorkspaceInUse, WorkspaceLock
from coterie.datasets import DEMOS, demo_file, write_demo

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

    def open_path(self, name: str) -> None:
        """Open a table below the start folder; a workspace of the same file is continued."""
        path = table_below(self.folder, name)
        self.open_file(path)

    def open_file(self, path: Path) -> None:
        """Open a table; if another server has its workspace open, an earlier one or a new one is used."""
        source = _source(path)
        for workspace in self.store.of_source(source):
            with suppress(WorkspaceInUse):
                return self.open_workspace(workspace)
        self._open(source, self.store.create(), History())

    def open_demo(self, name: str) -> None:
        if name not in DEMOS:
            raise FieldError(f'no demo table "{name}": choose one of {", ".join(DEMOS)}.', "file")
        workspace = self.store.create()
        path = write_demo(name, workspace.table_folder() / demo_file(name), overwrite=True)
        self._open(_source(path, is_copy=True), workspace, History())

    def open_copy(self, workspace: Workspace, path: Path) -> None:
        """Open a file in the private folder of a new workspace."""
        self._open(_source(path, is_copy=True), workspace, History())

    def open_pasted(self, text: str, name: str) -> None:
        """Open the cells of a spreadsheet, or another table as text."""
        workspace = self.store.create()
        path = workspace.table_folder() / upload_name(name)
        path.write_text(text, encoding="utf-8", newline="")
        try:
            self.open_copy(workspace, path)
        except FieldError as error:
            raise FieldError(str(error), "paste") from error

    def open_recent(self, workspace_id: str) -> None:
        self.open_workspace(self.store.find(workspace_id))

    def open_last(self) -> None:
        """Open the workspace that was changed last, if its table is still there and unchanged."""
        for workspace in self.store.all()[:1]:
            self.open_workspace(workspace)

    def open_workspace(self, workspace: Workspace) -> None:
        source, history, _ = workspace.load()
        path = Path(source.path)
        if not path.exists():
            raise FieldError(f'the table of this workspace is no longer there: "{source.path}".', "workspace")
        now = _source(path, is_copy=source.is_copy)
        if not source.is_copy and (now.size, now.modified) != (source.size, source.modified):
            raise FieldError(f'"{source.name}" has changed since this workspace was saved. Open the file.', "workspace")
        self._open(now, workspace, history)

    def _open(self, source: Source, workspace: Workspace, history: History) -> None:
        lock = self._locked(workspace)
        self._set_busy(f"reading {source.name}")
        try:
            table = OpenTable(Path(source.path))
            with self.lock:
                self.worker.cancel_all(self.live)
                self._hold(lock)
                self.table, self.source, self.workspace, self.history = table, source, workspace, history
                self._outcomes.clear()
                self._report = None
                self.live = {run_id: self._stored(run_id) for run_id in history.known_runs()}
                if not history.before and not history.now.runs:
                    self._choose_missing()
                self.changed()
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

    def _draw_first_map(self, table: OpenTable) -> None:
        """Compute the map that pages ask for next."""
        with self.lock:
            prepared = self.try_prepared()[0] if self.table is table else None
        if prepared is not None:
            axes_map(table, prepared)
        self.memory.used()

    def _choose_missing(self) -> None:
        """If values are missing, drop few incomplete rows, or fill many. The page shows it; the user can change it."""
        assert self.table is not None
        if not self.table.has_missing or self.history.now.preparation:
            return
        options = self._options(self.history.now)
        dropped = self.table.rows_dropped(options)
        is_few = dropped is not None and dropped <= FEW_DROPPED * self.table.table.n_rows
        state = replace(self.history.now, preparation={"missing": "drop" if is_few else "median"})
        self.history.now = state

    def _stored(self, run_id: str) -> LiveRun:
        assert self.workspace is not None
        info = self.workspace.run_info(run_id)
        if info is None:
            return LiveRun("failed", error={"message": INTERRUPTED, "field": "run"})
        return LiveRun("done", stopped=bool(info.get("stopped")), info=info)

    # --- choices ------------------------------------------------------------------------------------------------------

    def set_columns(self, changes: Mapping[str, Any]) -> None:
        with self.lock:
            table = self.open_table()
            columns = changed_columns(self.history.now, changes, table.kinds)
            name = next(iter(changes), "")
            self._change(f'choice for column "{name}"', replace(self.history.now, columns=columns))

    def set_preparation(self, changes: Mapping[str, Any]) -> None:
        with self.lock:
            self.open_table()
            for name, value in changes.items():
                if value not in SETTINGS.get(name, ()):
                    expected = ", ".join(SETTINGS.get(name, tuple(SETTINGS)))
                    raise FieldError(f"{name} must be one of {expected}; got {value!r}.", name)
            preparation = {**self.history.now.preparation, **changes}
            action = ", ".join(f"{name}: {value}" for name, value in changes.items())
            self._change(action, replace(self.history.now, preparation=preparation))

    def undo(self) -> None:
        self._move(self.history.undo, "undo")

    def redo(self) -> None:
        self._move(self.history.redo, "redo")

    def _move(self, move: Callable[[], bool], name: str) -> None:
        with self.lock:
            if not move():
                raise FieldError(f"There is nothing to {name}.", None, 409)
            self.changed()

    def _change(self, action: str, state: State) -> None:
        self.history.change(action, state)
        self.changed()

    def changed(self) -> None:
        """Store the workspace, and tell all pages."""
        with self.lock:
            self.revision += 1
            if self.workspace is not None and self.source is not None and self.table is not None:
                about = {"rows": self.table.table.n_rows, "runs": len(self.history.now.runs)}
                self.workspace.save(self.source, self.history, about)
        self.events.publish("workspace", {"revision": self.revision})

    # --- runs ---------------------------------------------------------------------------------------------------------

    def start(self, request: Mapping[str, Any]) -> str:
        """Start a run: a fit, or a comparison of numbers of clusters."""
        with self.lock:
            run = requested_run(request, self.history.new_id(), self._options(self.history.now))
            return self._checked(run, f"run {run.algorithm}")

    def open_k(self, run_id: str, k: Any) -> str:
        """One number of clusters of a comparison as a run."""
        with self.lock:
            run = self.run(run_id)
            self.done(run_id)
            return self._checked(child_of(run, self.history.new_id(), "open", k), f"open K = {k}")

    def cut(self, run_id: str, k: Any) -> str:
        """Another cut of a tree as a run."""
        with self.lock:
            run = self.run(run_id)
            check_has_tree(run)
            return self._checked(child_of(run, self.history.new_id(), "cut", k), f"cut into {k}")

    def tree_heights(self, run_id: str) -> Any:
        outcome = self.outcome(run_id)
        Z = None if outcome.content is None else getattr(outcome.content.fitted.model, "linkage_matrix_", None)
        if Z is None:
            raise NotAvailable("This run has no tree.")
        return np.asarray(Z)[:, 2]

    def edit(self, run_id: str, changes: Mapping[str, Any]) -> str:
        """Rename, recolour or merge clusters; a merge is a new run."""
        with self.lock:
            run, live = self.run(run_id), self.done(run_id)
            k = (live.info or {}).get("k") or 0
            if "merge" in changes:
                child, action = merged(run, changes["merge"], k, self.history)
                return self._submit(child, action)
            run, action = edited(run, changes, k)
            self._change(action, self.history.now.with_run(run))
            return run_id

    def remove(self, run_id: str) -> None:
        """Stop a run with the best result so far; a finished run is removed from the list."""
        with self.lock:
            self.run(run_id)
            live = self.live[run_id]
            if live.status in ("queued", "running"):
                live.cancel.set()
                return
            self._change(f"remove run {run_id}", self.history.now.without_run(run_id))

    def set_current(self, run_id: str | None) -> None:
        with self.lock:
            if run_id is not None:
                self.run(run_id)
            self.history.now = replace(self.history.now, current=run_id)
            self.changed()

    def _checked(self, run: Run, action: str) -> str:
        """Submit a run whose options are valid."""
        table = self.open_table()
        try:
            check_run(run, table.path)
        except (*EXPECTED, TypeError) as error:
            raise FieldError(**as_error(error, run.options, table.kinds)) from error
        return self._submit(run, action)

    def _submit(self, run: Run, action: str) -> str:
        self.live[run.id] = LiveRun()
        self._change(action, self.history.now.with_run(run))
        workspace = self.workspace
        self.worker.submit(lambda: self._execute(run, workspace))
        return run.id

    def _execute(self, run: Run, workspace: Workspace | None) -> None:
        """Run a run in the thread of the worker, and store its result."""
        with self.lock:
            live, table = self.live.get(run.id), self.table
            if workspace is not self.workspace or live is None or table is None or workspace is None:
                return  # another table was opened
        if live.cancel.is_set():
            self._finish(run, live, "cancelled")
            return
        live.status, start = "running", time.perf_counter()
        self._publish_run(run, live)
        report = ProgressReport(run, live, self.events, table)
        try:
            parent = None if run.parent is None else self.outcome(run.parent)
            if run.kind == "open" and run.parent is not None:
                self.details(run.parent)
            outcome = execute(run, table, parent, report)
            live.stopped = live.cancel.is_set()
            live.info = info_of(outcome, run, stopped=live.stopped, seconds=time.perf_counter() - start)
            content = outcome.content
            labels = None if content is None else content.fitted.labels
            with self.lock:
                if not self._is_open(run, live):
                    return  # another server may have the workspace by now
                workspace.save_run(run.id, live.info, labels, None if content is None else content.fitted.model)
                self._keep(run.id, outcome, workspace)
            self._finish(run, live, "done")
        except RunCancelled:
            self._finish(run, live, "cancelled")
        except Exception as error:
            live.error = as_error(error, run.options, table.kinds)
            self._finish(run, live, "failed")

    def _is_open(self, run: Run, live: LiveRun) -> bool:
        """Whether the workspace of a run is still open; another one can have a run of the same name."""
        return self.live.get(run.id) is live

    def _finish(self, run: Run, live: LiveRun, status: str) -> None:
        live.status, live.progress = status, None
        self.memory.used()
        with self.lock:
            if self._is_open(run, live):
                self.changed()
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

    def outcome(self, run_id: str) -> Outcome:
        """The result of a run in memory; it is restored from its files if necessary."""
        with self.lock:
            run, live = self.run_of_any_state(run_id), self.done(run_id)
            table, workspace = self.open_table(), self.workspace
            if run_id in self._outcomes:
                self._outcomes.move_to_end(run_id)
                return self._outcomes[run_id]
        assert workspace is not None
        assert live.info is not None
        if run.kind == "choose":
            outcome = execute(run, table, None, lambda _: None)
        else:
            labels, model = workspace.run_labels(run_id), workspace.run_model(run_id)
            outcome = restored(run, table, labels, model, live.info, None)
        self._keep(run_id, outcome, workspace)
        return outcome

    def details(self, run_id: str) -> Any:
        """How K was chosen in a run; None if it was given."""
        return details_of(self.run_of_any_state(run_id), self.outcome(run_id), self.open_table().path)

    def report(self, run: Run, outcome: Outcome) -> Any:
        """All data of the report of a run; the last one is kept."""
        from coterie.app.charts import report_of

        with self._report_lock:
            if self._report is None or self._report[0] != run or self._report[1] is not outcome:
                self._report = run, outcome, report_of(self, run, outcome)
            return self._report[2]

    def run(self, run_id: str) -> Run:
        run = self.history.now.run(run_id)
        if run is None:
            raise NotAvailable(f'There is no run "{run_id}".')
        return run

    def run_of_any_state(self, run_id: str) -> Run:
        """A run to which the user can return, even if it is not in the list now."""
        states = (self.history.now, *(state for _, state in (*self.history.before[::-1], *self.history.after[::-1])))
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
            table, options = self.open_table(), self._options(self.history.now)
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

    def options(self) -> dict[str, Any] | None:
        """The options of the preparation now, as runs store them."""
        return None if self.table is None else self._options(self.history.now)

    def _options(self, state: State) -> dict[str, Any]:
        table = self.open_table()
        return preparation_options(state, table.kinds, table.skipped)

    def _set_busy(self, message: str | None) -> None:
        self.busy = message
        self.events.publish("busy", {"message": message})

    def close(self) -> None:
        """Stop the worker; a run that is not finished is marked when the workspace is opened again."""
        self.worker.cancel_all(self.live)
        self.worker.stop()
        self.memory.close()
        with self.lock:
            self.workspace = None  # a run that ends now must not write: another server may have the workspace
            self._hold(None)


def _source(path: Path, *, is_copy: bool = False) -> Source:
    stat = path.stat()
    return Source(str(path), path.name, stat.st_size, stat.st_mtime_ns, is_copy)
