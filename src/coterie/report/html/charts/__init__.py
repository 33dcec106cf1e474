"""Charts: the dictionary of a Display in, one SVG out, with its numbers in a table beneath it."""
