"""Scanning: which files, which rows, and why the others not."""
