"""Types of a workspace: of its state, and of what is stored about a run."""

from typing import get_args

from coterie.algorithms import ALGORITHMS
from coterie.app.algorithm_view import OPTION_VIEWS, choices_of, most_of
from coterie.app.blob import MAX_CLUSTERS
from coterie.app.files import MAX_PATH
from coterie.app.preparation_options import CHOICES, SETTINGS
from coterie.app.schema import FLAG, NOTHING, Either, Entries, Fields, Many, Number, Text, Type
from coterie.app.state import KINDS
from coterie.jobs import Budget
from coterie.jobs.option_checks import LARGEST_SEED

RUN_ID = Text(pattern="r[0-9]{1,9}", about="the id of a run, such as r1")
LABEL = Text(pattern="0|[1-9][0-9]{0,8}", about="the number of a cluster")
COLUMN, TEXT = Text(MAX_PATH), Text(1 << 20)
CLUSTER_NAME = Text(
    80, pattern="[^\x00-\x08\x0e-\x1f\x7f\ufffe\uffff]*", about="text of at most 80 letters without control characters"
)
COLOR = Text(pattern="#[0-9a-fA-F]{6}", about="a colour such as #1f77b4")
ALGORITHM, BUDGET, SEED = Text(among=tuple(ALGORITHMS)), Text(among=get_args(Budget)), Number(0, LARGEST_SEED)
SAMPLE = Either((NOTHING, Number(1, 1 << 40)))
COLUMNS = Entries(COLUMN, Fields({name: Text(among=values) for name, values in CHOICES.items()}), "column:{}")
PREPARATION = Fields({name: Text(among=values) for name, values in SETTINGS.items()})
OPTIONS = Fields(
    {
        name: Text(among=choices_of(name)) if choices else Number(minimum or 0, most_of(name), whole=kind == "int")
        for name, (_, kind, choices, minimum, _) in OPTION_VIEWS.items()
    },
    control="option:{}",
)


def number_of_clusters(most: int) -> Either:
    """K of a run: a number, the first and last number, or "auto"."""
    number = Number(1, most)
    return Either((number, Many(number, 2, 2), Text(among=("auto",))))


def _optional(type_: Type) -> Either:
    return Either((NOTHING, type_))


def _stored(required: str, **types: Type) -> Fields:
    """An object of a file, in which a newer version may have written other names."""
    return Fields(types, tuple(required.split()), ignores_others=True)


ANY, COUNT = Number(whole=False), Number(0, 1 << 40)
NUMBER, PATH = _optional(ANY), Text(MAX_PATH, is_unicode=False)
NAMES, TEXTS, COUNTS, NUMBERS = Many(COLUMN), Many(TEXT), Many(COUNT), Many(NUMBER)
RUN = _stored(
    "id kind algorithm k preparation", id=RUN_ID, kind=Text(among=KINDS), algorithm=ALGORITHM,
    k=number_of_clusters(1 << 40), options=OPTIONS, seed=SEED, sample=SAMPLE, budget=BUDGET, parent=_optional(RUN_ID),
    names=Entries(LABEL, CLUSTER_NAME), colors=Entries(LABEL, COLOR),
    groups=_optional(Many(Number(0, MAX_CLUSTERS), 1)),
    preparation=Fields({
        **PREPARATION.of, "id": COLUMN, "weight": COLUMN,
        **dict.fromkeys(("exclude", "include", "one_hot", "transform"), NAMES),
    }, ("missing", "include", "one_hot")),
)  # fmt: skip
STATE = _stored("", columns=COLUMNS, preparation=PREPARATION, runs=Many(RUN), current=_optional(RUN_ID))
STEPS = Many(Many(Either((TEXT, STATE)), 2, 2))
SOURCE = _stored("path name size modified", path=PATH, name=COLUMN, size=COUNT, modified=Number(), is_copy=FLAG)
SUMMARY = _stored("source about", source=SOURCE, about=_stored("", rows=COUNT, runs=COUNT))
WORKSPACE = _stored(
    "format source history", format=Number(1), **SUMMARY.of,
    history=_stored("now", now=STATE, last_id=Number(0, 10**8), before=STEPS, after=STEPS),
)  # fmt: skip

VOTE = Fields({"criterion": TEXT, "k": NUMBER, "confidence": NUMBER, "weight": NUMBER, "note": _optional(TEXT)})
CHOICE = _stored(
    "recommended strength runner_up confidence heading reason votes table clusters_by rows_looked_at rows warnings",
    recommended=COUNT, strength=Text(among=("clear", "weak", "none")), runner_up=_optional(COUNT), confidence=NUMBER,
    heading=TEXT, reason=TEXT, votes=Many(VOTE), table=Many(Entries(TEXT, Either((NOTHING, FLAG, ANY)))),
    clusters_by=TEXT, rows_looked_at=COUNT, rows=COUNT, warnings=TEXTS, ks=COUNTS,
    criteria=Many(Fields({**dict.fromkeys(("criterion", "name"), TEXT), "k": NUMBER, "note": _optional(TEXT),
                          "ks": COUNTS, "values": NUMBERS})),
)  # fmt: skip
CLUSTER = _stored(
    "label rows share silhouette rule stands_out_by",
    label=Number(0, MAX_CLUSTERS), rows=COUNT, share=NUMBER, silhouette=NUMBER,
    rule=_optional(Fields({"text": TEXT, "precision": NUMBER, "coverage": NUMBER})),
    stands_out_by=Many(Fields({"column": COLUMN, "deviation": NUMBER, "share": NUMBER, "overall": NUMBER})),
)  # fmt: skip
INFO = _stored(
    "k scores sizes converged iterations clusters",
    seconds=NUMBER, stopped=FLAG, key=TEXT, k=_optional(Number(0, MAX_CLUSTERS)), scores=Entries(TEXT, NUMBER),
    sizes=COUNTS, silhouette=NUMBER, noise=_optional(COUNT), converged=FLAG, iterations=_optional(COUNT),
    clusters=Many(CLUSTER), choice=_optional(CHOICE), notes=TEXTS, warnings=TEXTS, rows_used=COUNT, columns=NAMES,
    fit=_stored(
        "options notes warnings sweep_ks", seconds=NUMBER, options=Entries(TEXT, Either((NOTHING, FLAG, ANY, TEXT))),
        notes=TEXTS, warnings=TEXTS, sweep_ks=_optional(COUNTS), is_renumbered=FLAG,
    ),
)  # fmt: skip
