"""Charts: functions from the dictionary of a display to an SVG with a table of its numbers."""
