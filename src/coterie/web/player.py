"""The player of a fit; without JavaScript, a figure of the last step and a table of all steps."""

from typing import Any

import numpy as np

from coterie.web.markup import Markup, tag
from coterie.web.packing import unpack_labels, unpack_points, unpack_rgb
from coterie.web.page import page
from coterie.web.still import point_colours, still

STEPS = {"E": "E step", "M": "M step"}  # names of steps in the table, if they differ from the kind


def player(data: dict[str, Any], key: str) -> Markup:
    """Return an element that the script replaces by a player of `data`, which the page contains with the id `key`.

    Without JavaScript, it shows the last step and a table of all steps.
    """
    last = data["frames"][-1]
    points = unpack_points(data["points"], data["box"])
    picture = still(
        data["axes"], points, _colours(data, len(points)), data["box"], centers=last["centers"],
        ellipses=last["ellipses"], names=data["names"], colors=data["colors"],
        label=f"{data['title']}, end of the fit",
    )  # fmt: skip
    note = tag("p", "The last step of the fit, and a table of all steps. Enable JavaScript to play them.")
    caption = tag("figcaption", last["caption"])
    return tag("figure", tag("noscript", note), picture, caption, _table(data), cls="player", data_player=key)


def player_page(data: dict[str, Any]) -> str:
    """Return a page with one player."""
    title, figure = data["title"], player(data, "trace")
    return page(title, tag("h1", title), figure, scripts=("player",), data={"trace": data})


def _colours(data: dict[str, Any], m: int) -> Any:
    """Return the final colours of the points: those of the last frame that changed them."""
    for frame in reversed(data["frames"]):
        if data["soft"] and frame.get("rgb"):
            return unpack_rgb(frame["rgb"])
        if frame.get("labels"):
            return point_colours(unpack_labels(frame["labels"], len(data["names"])), data["colors"])
    return point_colours(np.full(m, -1), data["colors"])


def _table(data: dict[str, Any]) -> Markup:
    head = tag("tr", [tag("th", text) for text in ("iteration", "step", data["objective"]["name"], "description")])
    rows = [
        tag(
            "tr",
            tag("td", frame["iteration"], cls="num"),
            tag("td", STEPS.get(frame["step"], frame["step"])),
            tag("td", "" if frame["objective"] is None else f"{frame['objective']:,.6g}", cls="num"),
            tag("td", frame["caption"]),
        )
        for frame in data["frames"]
    ]
    table = tag("table", tag("thead", head), tag("tbody", rows))
    return tag("details", tag("summary", "All steps as a table"), table, cls="steps")
