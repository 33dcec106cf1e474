"""The sections of a page, one file each: a report in, markup out."""
