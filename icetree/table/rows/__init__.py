"""Rows in one process: DELETE, UPDATE, MERGE, overwriting by a filter."""
