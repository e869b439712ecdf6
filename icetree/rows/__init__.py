"""Rows in one process: Arrow data to data files and back, deletes and filters applied."""
