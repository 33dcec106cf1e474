"""The laws, a file a subject. Importing this package registers all of them."""

from fuzz.laws import fits, kmeans_bounds, steps  # noqa: F401
