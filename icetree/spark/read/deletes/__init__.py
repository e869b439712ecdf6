"""Rows that are gone: which deletes apply to a file, and how Spark leaves the rows out."""
