"""Self-contained HTML pages: escaped markup, charts as SVG and PNG, data, and the scripts of interactive figures."""

from coterie.web.clustermap import ClusterMap, beyond_text, legend, swatch
from coterie.web.density import Densities, Density
from coterie.web.markup import Markup, tag
from coterie.web.packing import box_of, pack_labels, pack_points, pack_rgb, span
from coterie.web.page import embedded, page
from coterie.web.plane import Plane, beyond_counts, inner_range, outward, tick_texts, ticks
from coterie.web.player import player, player_page
from coterie.web.still import ellipses_of

__all__ = [
    "ClusterMap",
    "Densities",
    "Density",
    "Markup",
    "Plane",
    "beyond_counts",
    "beyond_text",
    "box_of",
    "ellipses_of",
    "embedded",
    "inner_range",
    "legend",
    "outward",
    "pack_labels",
    "pack_points",
    "pack_rgb",
    "page",
    "player",
    "player_page",
    "span",
    "swatch",
    "tag",
    "tick_texts",
    "ticks",
]
