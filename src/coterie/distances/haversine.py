"""Haversine distance, on the surface of a sphere."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.stored import stored
from coterie.distances.distance import Distance
from coterie.errors import InputError

POLE = np.pi / 2 * (1 + 1e-6)  # float32 degrees converted to radians may be slightly larger than pi / 2


@stored("distance.Haversine")
@dataclass(frozen=True)
class Haversine(Distance):
    """Great-circle distance on a sphere of radius 1; the columns are latitude and longitude in radians.

    Multiply by 6371 for kilometers on Earth. `np.radians` converts degrees.
    """

    name = "haversine"
    definite = False  # longitudes that differ by a full turn are the same point

    def rows(self, X: Any, name: str = "X") -> Any:
        rows = super().rows(X, name)
        if rows.shape[1] != 2:
            raise InputError(
                f"metric='haversine' needs two columns, latitude and longitude; {name} has {rows.shape[1]}"
            )
        largest = float(np.abs(rows[:, 0]).max(initial=0.0))
        if largest > POLE:
            raise InputError(
                f"metric='haversine' needs latitudes in radians, from -pi/2 to pi/2; {name} has one of absolute value "
                f"{largest:.6g}: convert degrees with np.radians({name})"
            )
        return rows

    def between(self, A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
        (lat, lon), (other_lat, other_lon) = A.T.astype(np.float64), B.T.astype(np.float64)
        square = np.sin((lat[:, None] - other_lat) / 2) ** 2
        square += np.cos(lat)[:, None] * np.cos(other_lat) * np.sin((lon[:, None] - other_lon) / 2) ** 2
        out[:] = 2 * np.arcsin(np.sqrt(np.minimum(square, 1.0)))
