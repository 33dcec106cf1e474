"""The whole state of a session as JSON, from which pages draw themselves."""

from pathlib import Path
from typing import Any, get_args

import coterie
from coterie.app.algorithm_view import algorithm_views
from coterie.app.column_view import column_views
from coterie.app.failures import in_page
from coterie.app.files import tables_in
from coterie.app.open_table import Prepared
from coterie.app.preparation_options import DEFAULTS, SETTINGS
from coterie.app.run_views import run_view
from coterie.app.session import Session
from coterie.core.formatting import escaped
from coterie.datasets import DEMOS
from coterie.errors import InputError
from coterie.jobs import Budget

MAX_RECENT = 12


def workspace_view(session: Session) -> dict[str, Any]:
    """The workspace as JSON."""
    with session.lock:
        prepared, error = session.try_prepared()
        state = session.history.now
        options = None if session.table is None else session.options()
        return {
            "version": coterie.__version__, "revision": session.revision, "ready": True, "busy": session.busy,
            "table": None if session.table is None else _table_view(session, prepared),
            "preparation": None if session.table is None else _preparation_view(session, prepared, error),
            "algorithms": algorithm_views(None if prepared is None else prepared.prepared.rows.n),
            "budgets": list(get_args(Budget)),
            "runs": [run_view(run, session.live[run.id], options) for run in state.runs], "current": state.current,
            "can_undo": session.history.before[-1][0] if session.history.before else None,
            "can_redo": session.history.after[-1][0] if session.history.after else None,
            "recent": _recent(session), "folder": tables_in(session.folder),
            "demos": [{"name": name, "about": in_page(about)} for name, about in DEMOS.items()],
        }  # fmt: skip


def _table_view(session: Session, prepared: Prepared | None) -> dict[str, Any]:
    assert session.table is not None
    assert session.source is not None
    table, state = session.table.table, session.history.now
    notes = [in_page(note, table.columns) for note in table.notes]
    return {
        "id": session.table.id, "name": session.source.name,
        "path": None if session.source.is_copy else escaped(session.source.path),
        "rows": table.n_rows, "bytes": session.source.size, "notes": notes,
        "displayed": len(session.table.displayed),
        "columns": column_views(session.table.columns, state, None if prepared is None else prepared.prepared),
    }  # fmt: skip


def _preparation_view(session: Session, prepared: Prepared | None, error: dict[str, Any] | None) -> dict[str, Any]:
    settings = {**DEFAULTS, **session.history.now.preparation}
    view = {**settings, "choices": {name: list(values) for name, values in SETTINGS.items()}, "error": error}
    if prepared is None:
        return view | {"scale_used": None, "rows_used": 0, "rows_dropped": 0, "dimensions": 0, "notes": [],
                       "warnings": [], "key": None}  # fmt: skip
    made = prepared.prepared
    rows, names = made.rows, made.table.columns
    notes = [in_page(note, names) for note in made.notes]
    if rows.treatment != "none":
        notes.insert(0, f"missing values: {rows.treatment}.")
    return view | {
        "scale_used": made.preparation.scale, "rows_used": rows.n, "rows_dropped": len(rows.row_mask) - rows.n,
        "dimensions": rows.X.shape[1], "notes": notes, "warnings": [in_page(text, names) for text in made.warnings],
        "key": prepared.key,
    }  # fmt: skip


def _recent(session: Session) -> list[dict[str, Any]]:
    recent = []
    for workspace in session.store.all()[:MAX_RECENT]:
        try:
            source, about = workspace.summary()
        except InputError:
            continue
        modified = workspace.modified
        recent.append({
            "id": workspace.id, "name": source.name, "rows": about.get("rows"), "runs": about.get("runs", 0),
            "when": modified, "exists": Path(source.path).exists(),
            "current": session.workspace is not None and workspace.id == session.workspace.id,
        })  # fmt: skip
    return recent
