"""The laws, a file a subject. Importing this package registers all of them."""

from fuzz.laws import (  # noqa: F401
    app,
    arguments,
    command_line,
    density,
    distances,
    explanation,
    families,
    fits,
    hierarchy,
    interrupts,
    kmeans_bounds,
    kmeans_precision,
    metrics,
    objectives,
    persistence,
    relations,
    selection,
    sources,
    steps,
)
