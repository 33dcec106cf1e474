"""The one idea: every partitional model is EM over additive statistics. Imports nothing else of the library."""
