r"""Logarithms of modified Bessel functions of the first kind, for any order from -1/2 up and any argument from 0 up.

With :math:`R = \sqrt{\nu^2 + x^2}`, small R take the power series, all of whose terms are positive, and large R the
uniform expansion [1]_, written in 1/R so that it holds for all orders: neither over- nor underflows.

.. [1] NIST Digital Library of Mathematical Functions, 10.25.2, 10.41.3. https://dlmf.nist.gov/10.41
"""

from __future__ import annotations

import numpy as np
from scipy import special

LARGE = 60.0  # R from which five terms are right to 1e-11
EXPANSION = (  # of 1 / R^m: coefficients of (nu / R)^0, ^2, ^4, ...
    np.array([3, -5]) / 24,
    np.array([81, -462, 385]) / 1152,
    np.array([30375, -369603, 765765, -425425]) / 414720,
    np.array([4465125, -94121676, 349922430, -446185740, 185910725]) / 39813120,
    np.array([1519035525, -49286948607, 284499769554, -614135872350, 566098157625, -188699385875]) / 6688604160,
)


def log_bessel(order: float, x: np.ndarray) -> np.ndarray:
    r""":math:`\log(I_\nu(x) / x^\nu)`."""
    return log_scaled_bessel(order, x) + x


def log_scaled_bessel(order: float, x: np.ndarray) -> np.ndarray:
    r""":math:`\log(e^{-x} I_\nu(x) / x^\nu)`, a small number also where x is large."""
    R = np.hypot(order, x)
    near = -order * np.log(2.0) - special.gammaln(order + 1.0) + np.log(_series(order, np.where(R < LARGE, x, 0.0)))
    R = np.maximum(R, LARGE)
    beyond = order / (R + x) * order  # R - x
    far = beyond - order * np.log(order + R) - 0.5 * np.log(2.0 * np.pi * R) + np.log1p(_expansion(order, R))
    return np.where(np.hypot(order, x) < LARGE, near - x, far)


def log_ratio(order: float, x: np.ndarray) -> np.ndarray:
    r""":math:`\log(I_{\nu+1}(x) / I_\nu(x))` for x above 0, to full precision also where it is next to 0."""
    R, S = np.hypot(order, x), np.hypot(order + 1.0, x)
    small = np.where(R < LARGE, x, 1.0)
    near = np.log(small / (2.0 * (order + 1.0)) * _series(order + 1.0, small) / _series(order, small))
    large = np.where(R < LARGE, LARGE, x)
    R, S = np.hypot(order, large), np.hypot(order + 1.0, large)
    growth = (2.0 * order + 1.0) / (R + S)  # S - R
    turn = order * np.arcsinh(order / large) - (order + 1.0) * np.arcsinh((order + 1.0) / large)
    rest = np.log1p(_expansion(order + 1.0, S)) - np.log1p(_expansion(order, R))
    return np.where(np.hypot(order, x) < LARGE, near, growth + turn - 0.5 * np.log1p(growth / R) + rest)


def _series(order: float, x: np.ndarray) -> np.ndarray:
    r""":math:`\sum_m (x^2 / 4)^m / (m! (\nu + 1)_m)`."""
    total = term = np.ones_like(x)
    m, quarter = 0, x**2 / 4.0
    while (term > 1e-17 * total).any():
        m += 1
        term = term * quarter / (m * (order + m))
        total = total + term
    return total


def _expansion(order: float, R: np.ndarray) -> np.ndarray:
    """The sum of the terms of the uniform expansion after the first, which is 1."""
    square = (order / R) ** 2
    terms = (np.polynomial.polynomial.polyval(square, each) / R**m for m, each in enumerate(EXPANSION, 1))
    return sum(terms)
