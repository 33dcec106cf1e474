"""What every request may contain: the parts of its address, and its body. Routes accept nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from coterie.app import state_types as stored
from coterie.app.blob import MAX_CLUSTERS
from coterie.app.charts import CHARTS, SECTIONS
from coterie.app.downloads import EXPORTS
from coterie.app.files import MAX_NAME, MAX_PATH
from coterie.app.maps import KINDS
from coterie.app.schema import NOTHING, Either, Entries, Fields, Many, Number, Text, Type, checked, from_address, parsed
from coterie.datasets import DEMOS

MAX_JSON = 4 << 20  # bytes
MAX_PASTE = 64 << 20
MAX_UPLOAD = 2 << 30
MAX_WORKSPACE = 256 << 20
TEXT, CONTENT = Text(), b""


@dataclass(frozen=True)
class RequestType:
    """The types of a request: names in its address, and its body, if it has one, of at most `most` bytes."""

    address: Fields = field(default_factory=lambda: Fields({}))
    body: Type | bytes | None = None  # `CONTENT` is not JSON
    most: int = MAX_JSON

    @property
    def control(self) -> str | None:
        """The control of errors about the whole body."""
        return getattr(self.body, "control", None) or self.address.control

    def checked_address(self, texts: Mapping[str, list[str]]) -> dict[str, Any]:
        """The values of an address; those that are empty are not there."""
        types = self.address.of
        values = {name: from_address(types.get(name, TEXT), each) for name, each in texts.items() if any(each)}
        return dict(checked(self.address, values))

    def checked_body(self, data: bytes) -> Any:
        """The value of a body."""
        return data if isinstance(self.body, bytes) or self.body is None else checked(self.body, parsed(data or b"{}"))


@lru_cache(4)
def request_types(n_rows: int) -> Mapping[tuple[str, str], RequestType]:
    """The types of all requests about a table with so many rows, by method and address."""
    most = min(n_rows, MAX_CLUSTERS)
    k = Number(1, most)
    run = {"run": stored.RUN_ID}
    two_runs = Fields({"a": stored.RUN_ID, "b": stored.RUN_ID}, ("a", "b"), control="run")
    number = Fields({"k": k}, ("k",))
    rows = Fields({
        **run, "offset": Number(0, 1 << 40), "count": Number(0, 1 << 40), "sort": Text(MAX_PATH), "q": TEXT,
        "cluster": Number(-1, MAX_CLUSTERS), "rows": Many(Number(0, n_rows - 1)),
    }, control="rows")  # fmt: skip

    return {
        ("POST", "/api/open"): RequestType(body=Fields({
            "path": Text(MAX_PATH), "demo": Text(among=tuple(DEMOS)), "recent": Text(MAX_NAME),
        }, is_choice=True, control="file")),
        ("POST", "/api/upload"): RequestType(Fields({"name": TEXT}, ("name",), control="file"), CONTENT, MAX_UPLOAD),
        ("POST", "/api/paste"): RequestType(
            body=Fields({"text": Text(MAX_PASTE), "name": TEXT}, ("text",), control="paste"), most=MAX_PASTE
        ),
        ("POST", "/api/workspace/open"): RequestType(Fields({}, control="workspace"), CONTENT, MAX_WORKSPACE),
        ("POST", "/api/columns"): RequestType(body=stored.COLUMNS),
        ("POST", "/api/preparation"): RequestType(body=stored.PREPARATION),
        ("POST", "/api/undo"): RequestType(),
        ("POST", "/api/redo"): RequestType(),
        ("POST", "/api/current"): RequestType(body=Fields({"run": Either((NOTHING, stored.RUN_ID))}, ("run",))),
        ("GET", "/api/rows"): RequestType(rows),
        ("POST", "/api/rows"): RequestType(rows, CONTENT),
        ("GET", "/api/map"): RequestType(Fields({
            **run, "kind": Text(among=KINDS), "x": stored.COLUMN, "y": stored.COLUMN,
        }, control="map")),
        ("GET", "/api/values"): RequestType(Fields({"columns": Many(stored.COLUMN)})),
        ("POST", "/api/runs"): RequestType(body=Fields({
            "algorithm": stored.ALGORITHM, "kind": Text(among=("fit", "choose")), "k": stored.number_of_clusters(most),
            "options": stored.OPTIONS, "seed": stored.SEED, "sample": stored.SAMPLE, "budget": stored.BUDGET,
        })),
        ("GET", "/api/runs/{run}"): RequestType(Fields(run)),
        ("DELETE", "/api/runs/{run}"): RequestType(Fields(run)),
        ("GET", "/api/runs/{run}/trace"): RequestType(Fields(run)),
        ("GET", "/api/runs/{run}/tree"): RequestType(Fields(run)),
        ("GET", "/api/runs/{run}/labels"): RequestType(Fields({**run, "k": k})),
        ("GET", "/api/runs/{run}/clusters/{label}"): RequestType(Fields({**run, "label": Number(0, MAX_CLUSTERS)})),
        ("GET", "/api/runs/{run}/charts/{name}"): RequestType(Fields({
            **run, "name": Text(among=(*CHARTS, *SECTIONS)),
        })),
        ("POST", "/api/runs/{run}/means"): RequestType(Fields(run), CONTENT),
        ("POST", "/api/runs/{run}/edit"): RequestType(Fields(run), Fields({
            "rename": Entries(stored.LABEL, stored.CLUSTER_NAME, "names"),
            "recolor": Entries(stored.LABEL, Either((NOTHING, stored.COLOR)), "cluster:{}"),
            "merge": Many(Number(0, MAX_CLUSTERS), least=2, is_set=True, control="run"),
        }, is_choice=True)),
        ("POST", "/api/runs/{run}/cut"): RequestType(Fields(run), number),
        ("POST", "/api/runs/{run}/open-k"): RequestType(Fields(run), number),
        ("GET", "/api/compare"): RequestType(two_runs),
        ("GET", "/api/compare/moved"): RequestType(two_runs),
        ("GET", "/api/export/{kind}"): RequestType(Fields({
            **run, "kind": Text(among=(*EXPORTS, "workspace")), "show": Text(among=("0", "1")),
        })),
    }  # fmt: skip
