r"""Logarithms of modified Bessel functions of the first kind, for orders >= -1/2 and arguments >= 0.

With :math:`R = \sqrt{\nu^2 + x^2}`, the power series is used for small R; all its terms are positive. The uniform
expansion [1]_ is used for large R, written in 1/R so that it holds for all orders. Neither overflows or underflows.

.. [1] NIST Digital Library of Mathematical Functions, 10.25.2, 10.41.3. https://dlmf.nist.gov/10.41
"""

import numpy as np
from scipy import special

LARGE = 60.0  # minimum R for which five terms have an error of at most 1e-11
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
    r""":math:`\log(e^{-x} I_\nu(x) / x^\nu)`, which is small even if x is large."""
    R = np.hypot(order, x)
    near = -order * np.log(2.0) - special.gammaln(order + 1.0) + np.log(_series(order, np.where(R < LARGE, x, 0.0)))
    R = np.maximum(R, LARGE)
    difference = order / (R + x) * order  # R - x
    far = difference - order * np.log(order + R) - 0.5 * np.log(2.0 * np.pi * R) + np.log1p(_expansion(order, R))
    return np.where(np.hypot(order, x) < LARGE, near - x, far)


def log_ratio(order: float, x: np.ndarray) -> np.ndarray:
    r""":math:`\log(I_{\nu+1}(x) / I_\nu(x))` for x > 0, with full precision even if it is close to 0."""
    R, S = np.hypot(order, x), np.hypot(order + 1.0, x)
    small = np.where(R < LARGE, x, 1.0)
    near = np.log(small / (2.0 * (order + 1.0)) * _series(order + 1.0, small) / _series(order, small))
    large = np.where(R < LARGE, LARGE, x)
    R, S = np.hypot(order, large), np.hypot(order + 1.0, large)
    growth = (2.0 * order + 1.0) / (R + S)  # S - R
    arcs = order * np.arcsinh(order / large) - (order + 1.0) * np.arcsinh((order + 1.0) / large)
    rest = np.log1p(_expansion(order + 1.0, S)) - np.log1p(_expansion(order, R))
    return np.where(np.hypot(order, x) < LARGE, near, growth + arcs - 0.5 * np.log1p(growth / R) + rest)


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
    """The sum of the terms of the uniform expansion without the first, which is 1."""
    square = (order / R) ** 2
    terms = (np.polynomial.polynomial.polyval(square, coefs) / R**m for m, coefs in enumerate(EXPANSION, 1))
    return sum(terms)
