"""The loop of all iterative fits: EM over additive statistics. This package imports almost nothing else of coterie."""
