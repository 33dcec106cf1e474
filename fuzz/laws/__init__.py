"""The laws, a file a subject. Importing this package registers all of them."""

from fuzz.laws import (  # noqa: F401
    distances,
    families,
    fits,
    hierarchy,
    kmeans_bounds,
    metrics,
    relations,
    selection,
    steps,
)
