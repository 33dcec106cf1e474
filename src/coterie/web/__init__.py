"""Self-contained HTML pages: escaped markup, charts as SVG and PNG, data, and the scripts of interactive figures."""

from coterie.web.clustermap import ClusterMap, swatch
from coterie.web.density import Densities, Density
from coterie.web.markup import Markup, escape, joined, tag
from coterie.web.packing import (
    box_of,
    pack_counts,
    pack_labels,
    pack_points,
    pack_rgb,
    pack_values,
    span,
    unpack_counts,
    unpack_labels,
    unpack_points,
    unpack_rgb,
    unpack_values,
)
from coterie.web.page import as_json, embedded, page
from coterie.web.plane import Plane, tick_texts, ticks
from coterie.web.player import player, player_page
from coterie.web.png import data_uri, png, raster
from coterie.web.still import ellipses_of, point_colours, still

__all__ = [
    "ClusterMap",
    "Densities",
    "Density",
    "Markup",
    "Plane",
    "as_json",
    "box_of",
    "data_uri",
    "ellipses_of",
    "embedded",
    "escape",
    "joined",
    "pack_counts",
    "pack_labels",
    "pack_points",
    "pack_rgb",
    "pack_values",
    "page",
    "player",
    "player_page",
    "png",
    "point_colours",
    "raster",
    "span",
    "still",
    "swatch",
    "tag",
    "tick_texts",
    "ticks",
    "unpack_counts",
    "unpack_labels",
    "unpack_points",
    "unpack_rgb",
    "unpack_values",
]
