"""Plain data for reports, computed from a result and the prepared rows."""
