"""Builds a wheel that contains compiled kernels: `make wheel`. `make wheel-test` installs and checks it."""
